"""B-splines of scipy.interpolate: values by de Boor's recurrence, coefficients by systems of their basis."""

from __future__ import annotations

import math
import sys
from typing import Any

from yota.tracing.forms import Trace, is_traced, is_tracer, np, original, overwrite, paused, records
from yota.tracing.methods import transformed
from yota.tracing.scipy.sparsetools import pattern

_MOST = 2048
"""Coefficients of a spline by a full matrix: what has more is refused."""


def interval_of(knots: Any, x: Any, low: int, high: int) -> Any:
    """The last of the places from ``low`` to ``high`` whose knot is not above ``x``."""
    return np.searchsorted(knots[low + 1 : high + 1], x, side="right") + low


def spline(t: Any, c: Any, k: int, x: Any, nu: int = 0) -> Any:
    """A derivative of a spline at each ``x``; the columns of ``c`` are splines (de Boor 1972, section 3)."""
    places = interval_of(t, x, k, len(t) - k - 2)
    knots = t[places[:, None] + np.arange(1 - k, k + 1)]
    return _combined(knots, c[places[:, None] + np.arange(-k, 1)], k, x[:, None], nu)


def _combined(knots: Any, d: Any, k: int, x: Any, nu: int) -> Any:
    if nu > k:
        return 0.0 * d[:, 0]
    for r in range(1, k + 1):
        low, high = knots[:, r - 1 : k], knots[:, k : 2 * k - r + 1]
        width = (high - low)[:, :, None]
        if r <= nu:
            d = (k - r + 1) * (d[:, 1:] - d[:, :-1]) / width
        else:
            share = (x - low)[:, :, None] / width
            d = (1 - share) * d[:, :-1] + share * d[:, 1:]
    return d[:, 0]


def basis(trace: Trace, t: Any, k: int, x: Any, nu: int = 0) -> Any:
    """The derivatives of all splines of the basis at each ``x``."""
    count = len(t) - k - 1
    if count > _MOST:
        raise trace.unrecorded(f"a spline of {count} coefficients", f"Take at most {_MOST}.")
    return spline(trace.traced(t), trace.traced(np.eye(count)), k, trace.traced(x), nu)


@records("scipy.interpolate._dierckx", "data_matrix")
def _data_matrix(trace: Trace, x: Any, t: Any, k: int, w: Any, extrapolate: bool = False) -> tuple[Any, Any, int]:
    """The splines that are not zero at each ``x``, times its weight, and the number of the first of them."""
    t, x = trace.traced(t), trace.traced(x)
    places = interval_of(t, x, k, len(t) - k - 2)
    knots = t[places[:, None] + np.arange(1 - k, k + 1)]
    units = np.broadcast_to(np.eye(k + 1), (len(x), k + 1, k + 1))
    found = _combined(knots, trace.traced(units), k, x[:, None], 0)
    return trace.traced(w)[:, None] * found, pattern(trace, places - k), len(t) - k - 1


@records("scipy.interpolate._dierckx", "evaluate_spline")
def _evaluate_spline(trace: Trace, t: Any, c: Any, k: int, x: Any, nu: int, extrapolate: bool) -> Any:
    t, x = trace.traced(t), trace.traced(x)
    found = spline(t, trace.traced(c), k, x, nu)
    if extrapolate:
        return found
    inside = np.logical_and(x >= t[k], x <= t[len(t) - k - 1])
    return np.where(inside[:, None], found, np.nan)


def not_a_knot(x: Any, k: int) -> Any:
    """The knots of an interpolating spline, which is one polynomial over the first intervals and the last."""
    if k % 2:
        inner = x[(k + 1) // 2 : len(x) - (k + 1) // 2]
    else:
        inner = ((x[1:] + x[:-1]) / 2)[k // 2 : len(x) - 1 - k // 2]
    return np.concatenate([np.broadcast_to(x[:1], (k + 1,)), inner, np.broadcast_to(x[-1:], (k + 1,))])


@records("scipy.interpolate", "make_interp_spline")
def _make_interp_spline(
    trace: Trace, x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0
) -> Any:
    own = vars(sys.modules["scipy.interpolate._bsplines"])
    x, y = trace.traced(x), np.moveaxis(trace.traced(y), axis, 0)
    x, y = (each if each.dtype.kind in "fc" else each.astype(float) for each in (x, y))
    axis %= y.ndim
    if bool(np.any(x[1:] <= x[:-1])):
        raise ValueError("Expect x to be a 1D strictly increasing sequence.")
    periodic = bc_type == "periodic"
    ends = (None, None) if bc_type in (None, "not-a-knot", "periodic") else bc_type
    ends = (ends, ends) if isinstance(ends, str) else ends
    if k < 2 and t is None:
        t, c = np.concatenate([x[:k], x, x[-1:]]), y
    else:
        if t is None:
            t = own["_periodic_knots"](x, k) if periodic else _knots(x, k, ends)
        rows, sides = [basis(trace, trace.traced(t), k, x)], [y]
        conditions = [_conditions(own, end, y) for end in ends]
        for place, (orders, values) in zip((0, -1), conditions, strict=True):
            for order, value in zip(orders, values, strict=True):
                rows.insert(len(rows) if place else -1, basis(trace, t, k, x[place:][:1], order))
                sides.insert(len(sides) if place else -1, np.broadcast_to(value, (1, *y.shape[1:])))
        for order in range(1, k) if periodic else ():
            both = [basis(trace, t, k, x[place:][:1], order) for place in (0, -1)]
            rows.append(both[0] - both[1])
            sides.append(np.zeros((1, *y.shape[1:])))
        matrix, side = np.concatenate(rows), np.concatenate(sides)
        if len(matrix) != matrix.shape[1]:
            raise ValueError("The number of derivatives at boundaries does not match.")
        c = np.reshape(np.linalg.solve(matrix, np.reshape(side, (len(side), -1))), side.shape)
    return own["BSpline"].construct_fast(t, c, k, extrapolate="periodic" if periodic else True, axis=axis)


def _knots(x: Any, k: int, ends: Any) -> Any:
    if ends[0] is None and ends[1] is None:
        return not_a_knot(x, k)
    return np.concatenate([np.broadcast_to(x[:1], (k,)), x, np.broadcast_to(x[-1:], (k,))])


def _conditions(own: Any, end: Any, y: Any) -> Any:
    """The orders and values of the derivatives at one end."""
    if end is None:
        return (), ()
    orders, values = zip(*own["_convert_string_aliases"](end, y.shape[1:]), strict=True)
    return tuple(map(int, orders)), values


def plain_call(module: str, name: str, *args: Any, **keywords: Any) -> Any:
    """What SciPy's function gives for the values of these arguments, with its errors and warnings."""

    def value(each: Any) -> Any:
        return each._value() if is_tracer(each) else each

    with paused():
        return original(getattr(sys.modules[module], name))(*transformed(args, value), **transformed(keywords, value))


@records("scipy.interpolate", "make_lsq_spline")
def _make_lsq_spline(
    trace: Trace, x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, method: str = "qr"
) -> Any:
    plain_call("scipy.interpolate", "make_lsq_spline", x, y, t, k, w, axis)
    own = vars(sys.modules["scipy.interpolate._bsplines"])
    x, y, t = trace.traced(x), np.moveaxis(trace.traced(y), axis, 0), trace.traced(t)
    weights = np.ones(len(x)) if w is None else trace.traced(w)
    c = least_squares(trace, x, y, weights, t, k)
    return own["BSpline"].construct_fast(t, c, k, axis=axis % y.ndim)


def least_squares(trace: Trace, x: Any, y: Any, w: Any, t: Any, k: int) -> Any:
    """The coefficients of the spline that is nearest to weighted data."""
    rows = np.reshape(y, (len(y), -1))
    factor, rest = np.linalg.qr(w[:, None] * basis(trace, t, k, x))
    found = np.linalg.solve(rest, np.matmul(factor.T, w[:, None] * rows))
    return np.reshape(found, (len(found), *y.shape[1:]))


@records("scipy.interpolate._cubic", "PchipInterpolator._find_derivatives")
def _monotone_slopes(trace: Trace, x: Any, y: Any, xp: Any = None) -> Any:
    """Harmonic means of the slopes beside each point, and 0 at an extremum and beside what is flat."""
    known = vars(sys.modules["scipy.interpolate._cubic"])["PchipInterpolator"]._edge_case
    x, y = trace.traced(x), trace.traced(y)
    rows, x = (y, x) if y.ndim > 1 else (y[:, None], x[:, None])
    widths = x[1:] - x[:-1]
    slopes = (rows[1:] - rows[:-1]) / widths
    if len(y) == 2:
        return np.reshape(np.concatenate([slopes, slopes]), y.shape)
    steady = np.sign(slopes[1:]) * np.sign(slopes[:-1]) > 0
    before, after = (np.where(steady, each, 1.0) for each in (slopes[:-1], slopes[1:]))
    first, second = 2 * widths[1:] + widths[:-1], widths[1:] + 2 * widths[:-1]
    inner = np.where(steady, 1.0 / ((first / before + second / after) / (first + second)), 0.0)
    ends = [
        known(widths[end], widths[next], slopes[end], slopes[next], xp=sys.modules["numpy"])[None]
        for end, next in ((0, 1), (-1, -2))
    ]
    return np.reshape(np.concatenate([ends[0], inner, ends[1]]), y.shape)


def _pieces(x: Any, at: Any) -> Any:
    """For each place the number of its piece: breakpoints ascend or descend."""
    if bool(x[-1] >= x[0]):
        return interval_of(x, at, 0, len(x) - 2)
    return len(x) - 2 - (np.searchsorted(np.flip(x)[1:-1], at, side="left"))


def _within(x: Any, at: Any) -> Any:
    low, high = (x[0], x[-1]) if bool(x[-1] >= x[0]) else (x[-1], x[0])
    return np.logical_and(at >= low, at <= high)


def _given(trace: Trace, out: Any, found: Any, x: Any, at: Any, extrapolate: bool) -> None:
    """Write what was found into the array that is given for it; outside of all pieces it is not a number."""
    if not extrapolate:
        found = np.where(_within(x, at)[:, None], found, np.nan)
    filled(trace, out, found)


def filled(trace: Trace, out: Any, found: Any) -> None:
    """Write ``found`` into the whole of ``out``."""
    if not is_traced(out):
        raise trace.refuse("a spline's values would be written into a plain array.", "Make it inside the function.")
    overwrite(out, np.broadcast_to(found, out.shape).astype(out.dtype, copy=False))


def powers(c: Any, s: Any, dx: int) -> Any:
    """A derivative of polynomials, whose highest coefficients come first; a negative order integrates from 0."""
    order = len(c) - 1
    total = None
    for number in range(len(c)):
        power = order - number
        if power < dx:
            break
        factor = 1.0
        for each in range(power - dx + 1, power + 1) if dx >= 0 else range(power + 1, power - dx + 1):
            factor = factor * each if dx >= 0 else factor / each
        total = factor * c[number] if total is None else total * s + factor * c[number]
    if total is None:
        return 0.0 * (c[0] + s)
    for _ in range(max(-dx, 0)):
        total = total * s
    return total


@records("scipy.interpolate._ppoly", "evaluate")
def _evaluate(trace: Trace, c: Any, x: Any, xp: Any, dx: int, extrapolate: bool, out: Any) -> None:
    c, x, at = trace.traced(c), trace.traced(x), trace.traced(xp)
    places = _pieces(x, at)
    _given(trace, out, powers(c[:, places], (at - x[places])[:, None], int(dx)), x, at, extrapolate)


@records("scipy.interpolate._ppoly", "integrate")
def _integrate(trace: Trace, c: Any, x: Any, a: Any, b: Any, extrapolate: bool, out: Any) -> None:
    c, x = trace.traced(c), trace.traced(x)
    if not extrapolate and not bool(np.all(_within(x, np.stack([trace.traced(a), trace.traced(b)])))):
        filled(trace, out, np.nan)
        return
    forward = bool(x[-1] >= x[0])
    low, high = (x[:-1], x[1:]) if forward else (x[1:], x[:-1])
    first = np.arange(len(low)) == (0 if forward else len(low) - 1)
    last = first[::-1]
    low, high = np.where(first, -np.inf, low), np.where(last, np.inf, high)
    ends = [np.minimum(np.maximum(trace.traced(each), low), high) - x[:-1] for each in (b, a)]
    parts = [powers(c, each[:, None], -1) for each in ends]
    filled(trace, out, np.sum(parts[0] - parts[1], axis=0))


@records("scipy.interpolate._ppoly", "fix_continuity")
def _fix_continuity(trace: Trace, c: Any, x: Any, order: int) -> None:
    """Coefficients that make derivatives up to ``order`` continuous, the highest first."""
    step = (trace.traced(x)[1:-1] - x[:-2])[:, None]
    for power in range(int(order), -1, -1):
        row = len(c) - 1 - power
        terms = [math.comb(len(c) - 1 - each, power) * c[each, :-1] * step ** (row - each) for each in range(row)]
        increments = np.cumsum(sum(terms), axis=0)
        c[row, 1:] = c[row, :1] + increments


@records("scipy.interpolate._ppoly", "evaluate_bernstein")
def _evaluate_bernstein(trace: Trace, c: Any, x: Any, xp: Any, nu: int, extrapolate: bool, out: Any) -> None:
    """By de Casteljau's algorithm."""
    c, x, at = trace.traced(c), trace.traced(x), trace.traced(xp)
    places = _pieces(x, at)
    width = (x[places + 1] - x[places])[:, None]
    share = (at - x[places])[:, None] / width
    d = c[:, places]
    for _ in range(min(int(nu), len(c))):
        d = (len(d) - 1) * (d[1:] - d[:-1]) / width if len(d) > 1 else 0.0 * d
    while len(d) > 1:
        d = (1 - share) * d[:-1] + share * d[1:]
    _given(trace, out, d[0], x, at, extrapolate)
