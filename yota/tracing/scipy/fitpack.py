"""FITPACK's splines in scipy.interpolate that interpolate, or have knots that are given, and their values."""

from __future__ import annotations

from typing import Any

from yota.tracing.forms import Trace, np, records
from yota.tracing.scipy.splines import basis, least_squares, not_a_knot, plain_call, spline

_PACK = "scipy.interpolate._dfitpack"
_ADAPTIVE = "a smoothing spline, whose knots depend on the data,"
_CURE = "Pass s=0, or knots of your own."


@records(_PACK, "splder")
def _derivative(trace: Trace, t: Any, c: Any, k: int, x: Any, nu: int = 1, e: int = 0) -> Any:
    t, x = trace.traced(t), trace.traced(x)
    low, high = t[k], t[len(t) - k - 1]
    outside = np.logical_or(x < low, x > high)
    if e == 2 and bool(np.any(outside)):
        return x, 1
    at = np.minimum(np.maximum(x, low), high) if e == 3 else x
    found = spline(t, trace.traced(c)[: len(t) - k - 1, None], k, at, int(nu))[:, 0]
    return (np.where(outside, 0.0, found) if e == 1 else found), 0


records(_PACK, "splev")(lambda trace, t, c, k, x, e=0: _derivative(trace, t, c, k, x, 0, e))


@records(_PACK, "spalde")
def _derivatives(trace: Trace, t: Any, c: Any, k1: int, x: Any) -> Any:
    """The value and all derivatives at one point."""
    at = np.reshape(trace.traced(x), (1,))
    return np.concatenate([_derivative(trace, t, c, k1 - 1, at, order)[0] for order in range(k1)]), 0


@records(_PACK, "splint")
def _integral(trace: Trace, t: Any, c: Any, k: int, a: Any, b: Any) -> Any:
    """By the spline of degree k + 1 that is its antiderivative; it is zero outside of its knots."""
    t, c = trace.traced(t), trace.traced(c)
    count = len(t) - k - 1
    sums = np.cumsum(c[:count] * (t[k + 1 :] - t[:count])) / (k + 1)
    whole = np.concatenate([np.zeros(1), sums])
    knots = np.concatenate([t[:1], t, t[-1:]])
    ends = np.minimum(np.maximum(np.stack([trace.traced(each) for each in (a, b)]), t[k]), t[count])
    found = spline(knots, whole[:, None], k + 1, ends)[:, 0]
    return found[1] - found[0], np.zeros(len(t))


def _fitted(trace: Trace, x: Any, y: Any, w: Any, t: Any, k: int, s: Any) -> tuple[Any, Any]:
    """Knots and coefficients of a spline that interpolates, or is nearest with the knots ``t``."""
    x, y = trace.traced(x), trace.traced(y)
    if t is not None:
        weights = np.ones(len(x)) if w is None else trace.traced(w)
        return t, least_squares(trace, x, y, weights, trace.traced(t), k)
    if s is None or s > 0:
        raise trace.unrecorded(_ADAPTIVE, _CURE)
    t = not_a_knot(x, k)
    return t, np.linalg.solve(basis(trace, t, k, x), y)


def _padded(c: Any, k: int) -> Any:
    """Coefficients as FITPACK gives them, as many as knots."""
    return np.concatenate([c, np.zeros(k + 1)])


@records("scipy.interpolate", "splrep")
def _splrep(
    trace: Trace, x: Any, y: Any, w: Any = None, k: int = 3, s: Any = None, t: Any = None, full_output: int = 0
) -> Any:
    plain_call("scipy.interpolate", "splrep", x, y, w, k=k, s=s, t=t)
    x = trace.traced(x)
    if t is not None:
        ends = [np.broadcast_to(each, (k + 1,)) for each in (x[:1], x[-1:])]
        t = np.concatenate([ends[0], trace.traced(t), ends[1]])
    knots, c = _fitted(trace, x, y, w, t, k, 0 if s is None and w is None else s)
    found = knots, _padded(c, k), k
    return (found, np.zeros(()), -1, "") if full_output else found


@records("scipy.interpolate", "splprep")
def _splprep(
    trace: Trace, x: Any, u: Any = None, k: int = 3, s: Any = None, full_output: int = 0, quiet: int = 1
) -> Any:
    """By the length of the broken line through the points, if ``u`` does not say where they lie."""
    if s is None or s > 0:
        raise trace.unrecorded(_ADAPTIVE, _CURE)
    plain_call("scipy.interpolate", "splprep", x, u=u, k=k, s=s)
    points = np.stack([trace.traced(each) for each in x])
    if u is None:
        lengths = np.concatenate([np.zeros(1), np.cumsum(np.linalg.norm(np.diff(points), axis=0))])
        u = lengths / lengths[-1]
    knots, c = _fitted(trace, u, points.T, None, None, k, 0)
    found = (knots, list(c.T), k), u
    return (found, np.zeros(()), -1, "") if full_output else found


@records(_PACK, "fpcurf0")
def _interpolated(
    trace: Trace, x: Any, y: Any, k: int, w: Any = None, xb: Any = None, xe: Any = None, s: Any = None
) -> Any:
    if xb is not None or xe is not None:
        raise trace.unrecorded("a spline with bbox=", "Leave it out.")
    plain_call(_PACK, "fpcurf0", x, y, k, w=w, s=s)
    knots, c = _fitted(trace, x, y, w, None, k, s)
    return x, y, w, x[0], x[-1], k, s, len(knots), knots, _padded(c, k), 0.0, None, None, -1


@records(_PACK, "fpchec")
def _fault_of_knots(trace: Trace, x: Any, t: Any, k: int) -> Any:
    return plain_call(_PACK, "fpchec", x, t, k)


@records(_PACK, "fpcurfm1")
def _nearest(trace: Trace, x: Any, y: Any, k: int, t: Any, w: Any = None, xb: Any = None, xe: Any = None) -> Any:
    knots, c = _fitted(trace, x, y, w, t, k, None)
    return x, y, w, xb, xe, k, 0.0, len(knots), knots, _padded(c, k), 0.0, None, None, 0


@records(_PACK, "regrid_smth")
def _gridded(
    trace: Trace, x: Any, y: Any, z: Any, xb: Any, xe: Any, yb: Any, ye: Any, kx: int, ky: int, s: Any, maxit: int
) -> Any:
    if s != 0 or any(each is not None for each in (xb, xe, yb, ye)):
        raise trace.unrecorded(_ADAPTIVE, "Pass s=0 and no bbox=.")
    plain_call(_PACK, "regrid_smth", x, y, z, xb, xe, yb, ye, kx, ky, s, maxit)
    x, y = trace.traced(x), trace.traced(y)
    tx, ty = not_a_knot(x, kx), not_a_knot(y, ky)
    table = np.reshape(trace.traced(z), (len(x), len(y)))
    table = np.linalg.solve(basis(trace, tx, kx, x), table)
    table = np.linalg.solve(basis(trace, ty, ky, y), table.T).T
    return len(tx), tx, len(ty), ty, np.ravel(table), 0.0, -1


@records(_PACK, "bispev", "bispeu", "parder", "pardeu", named=True)
def _of_two(name: str, trace: Trace, tx: Any, ty: Any, c: Any, kx: int, ky: int, *rest: Any) -> Any:
    """The form of a tensor-product spline, at the points of a grid, or at each of several points ("...u")."""
    dx, dy, x, y = rest if name.startswith("parde") else (0, 0, *rest)
    tx, ty, x, y = (np.atleast_1d(trace.traced(each)) for each in (tx, ty, x, y))
    # Beyond its ends the spline has the values of the ends.
    x, y = (np.minimum(np.maximum(at, t[k]), t[len(t) - k - 1]) for at, t, k in ((x, tx, kx), (y, ty, ky)))
    table = np.reshape(trace.traced(c), (len(tx) - kx - 1, len(ty) - ky - 1))
    rows = np.matmul(basis(trace, tx, kx, x, dx), table)
    others = basis(trace, ty, ky, y, dy)
    return (np.sum(rows * others, axis=1) if name.endswith("u") else np.matmul(rows, others.T)), 0
