"""Interpolation of scipy.interpolate: between points, on grids, by radial functions; quantiles."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from yota.ir.linkages import corners
from yota.tracing.forms import Trace, is_tracer, np, original, paused, records
from yota.tracing.scipy.splines import basis, filled, interval_of, not_a_knot, powers


@records("scipy.interpolate", "interp1d._call_linear_np")
def _by_lines(trace: Trace, self: Any, x_new: Any) -> Any:
    """What lies outside is replaced later: the slope at the last point is that of the last interval."""
    return np.interp(x_new, self.x, self.y, right=self.y[-1])


@records("scipy.interpolate._rgi_cython", "find_indices")
def _find_indices(trace: Trace, grid: Any, xi: Any) -> tuple[Any, Any]:
    """For each coordinate the place of its interval, and which share of that it lies beyond."""
    indices, shares = [], []
    for points, x in zip(map(trace.traced, grid), trace.traced(xi), strict=True):
        if len(points) == 1:
            indices.append(np.full(x.shape, -1))
            shares.append(0.0 * x)
            continue
        places = interval_of(points, x, 0, len(points) - 2)
        indices.append(places)
        shares.append((x - points[places]) / (points[places + 1] - points[places]))
    return np.stack(indices), np.stack(shares)


@records("scipy.interpolate._rgi_cython", "evaluate_linear_2d")
def _evaluate_linear_2d(trace: Trace, values: Any, indices: Any, norm_distances: Any, grid: Any, out: Any) -> Any:
    """By the method that SciPy has for other numbers of dimensions."""
    own = sys.modules["scipy.interpolate"].RegularGridInterpolator._evaluate_linear
    values = trace.traced(values)
    return own(SimpleNamespace(_values=values, values=values), indices, norm_distances)


@records("scipy.interpolate", "RegularGridInterpolator._evaluate_nearest")
def _nearest_on_grid(trace: Trace, self: Any, indices: Any, norm_distances: Any) -> Any:
    places = [place + (share > 0.5) for place, share in zip(indices, norm_distances, strict=True)]
    return trace.traced(self.values)[tuple(places)]


@records("scipy.interpolate", "RegularGridInterpolator._find_out_of_bounds")
def _outside_of_grid(trace: Trace, self: Any, xi: Any) -> Any:
    """SciPy collects this in a plain array."""
    sides = zip(trace.traced(xi), map(trace.traced, self.grid), strict=True)
    return functools.reduce(np.logical_or, [(x < points[0]) | (x > points[-1]) for x, points in sides])


@records("scipy.interpolate", "NdBSpline.__call__")
def _tensor_spline(trace: Trace, self: Any, xi: Any, nu: Any = None, extrapolate: Any = None) -> Any:
    x = trace.traced(xi)
    rows = np.reshape(x, (-1, x.shape[-1]))
    orders = [0] * rows.shape[1] if nu is None else [int(each) for each in nu]
    found: Any = None
    inside: Any = True
    for axis, (t, k, order) in enumerate(zip(self.t, self.k, orders, strict=True)):
        weights = basis(trace, t, int(k), rows[:, axis], order)
        if found is None:
            found = np.tensordot(weights, trace.traced(self.c), axes=1)
        else:
            shape = (*weights.shape, *(1,) * (found.ndim - 2))
            found = np.sum(np.reshape(weights, shape) * found, axis=1)
        inside = np.logical_and(inside, (rows[:, axis] >= t[k]) & (rows[:, axis] <= t[len(t) - k - 1]))
    if not (self.extrapolate if extrapolate is None else extrapolate):
        found = np.where(np.reshape(inside, (-1, *(1,) * (found.ndim - 1))), found, np.nan)
    return np.reshape(found, (*x.shape[:-1], *found.shape[1:]))


@dataclass(frozen=True, eq=False)
class _Iterated:
    """The coefficients that `scipy.interpolate.make_ndbspl` finds by iteration, to about five digits."""

    points: tuple[Any, ...]
    k: Any
    rest: dict[str, Any]

    def __call__(self, values: Any) -> Any:
        """The coefficients of splines; each column has the values of one, and of its coefficients."""
        make = original(sys.modules["scipy.interpolate._ndbspline"].make_ndbspl)
        given = np.reshape(values, (*map(len, self.points), *np.shape(values)[1:]))
        with paused():
            return np.reshape(make(self.points, given, self.k, **self.rest).c, np.shape(values))


@records("scipy.interpolate._ndbspline", "make_ndbspl")
def _interpolating_tensor_spline(trace: Trace, points: Any, values: Any, k: Any = 3, **rest: Any) -> Any:
    """Along one axis after the other; where SciPy iterates, the value is its own, and the derivative is exact."""
    known = None
    if getattr(rest.get("solver"), "__name__", "") != "spsolve":
        if trace.varies(list(points)):
            raise trace.refuse(
                "scipy.interpolate solves for the coefficients by iteration, and the grid is traced.",
                "Pass solver=scipy.sparse.linalg.spsolve.",
            )
        rest["solver"] = original(rest.get("solver") or sys.modules["scipy.sparse.linalg"].gcrotmk)
        plain = tuple(np.copy(trace.values[trace.lift(each)]) for each in points)
        iterated = _Iterated(plain, k, rest)
        rows = np.reshape(trace.traced(values), (int(np.prod([len(each) for each in plain])), -1))
        known = trace.ruled("linear_map", rows, map=iterated)
    values = trace.traced(values)
    degrees = k if np.ndim(k) else [k] * len(points)
    knots = []
    for axis, (x, degree) in enumerate(zip(points, degrees, strict=True)):
        x = trace.traced(x)
        knots.append(not_a_knot(x, int(degree)))
        rows = np.moveaxis(values, axis, 0)
        found = np.linalg.solve(basis(trace, knots[-1], int(degree), x), np.reshape(rows, (len(x), -1)))
        values = np.moveaxis(np.reshape(found, rows.shape), 0, axis)
    if known is not None:
        values = np.reshape(trace.still(known), values.shape) + (values - trace.still(values))
    return sys.modules["scipy.interpolate"].NdBSpline(tuple(knots), values, tuple(degrees))


@records("scipy.interpolate._rbfinterp_xp", "NAME_TO_FUNC.thin_plate_spline")
def _thin_plate(trace: Trace, r: Any, xp: Any) -> Any:
    return np.where(r == 0, 0.0, r * r * np.log(np.where(r == 0, 1.0, r)))


@records("scipy.interpolate._ppoly", "evaluate_nd")
def _evaluate_nd(trace: Trace, c: Any, xs: Any, ks: Any, xp: Any, dx: Any, extrapolate: bool, out: Any) -> None:
    x = trace.traced(xp)
    knots = [trace.traced(each) for each in xs]
    shape = (*map(int, ks), *(len(each) - 1 for each in knots), -1)
    places = [interval_of(each, x[:, axis], 0, len(each) - 2) for axis, each in enumerate(knots)]
    found = np.reshape(trace.traced(c), shape)[(slice(None),) * len(knots) + tuple(places)]
    inside: Any = True
    for axis, each in enumerate(knots):
        at = x[:, axis]
        found = powers(found, (at - each[places[axis]])[:, None], int(dx[axis]))
        inside = np.logical_and(inside, (at >= each[0]) & (at <= each[-1]))
    filled(trace, out, found if extrapolate else np.where(inside[:, None], found, np.nan))


@records("scipy.interpolate._rbfinterp_np", "_build_and_solve_system", "compute_interpolation", named=True)
def _of_any_library(name: str, trace: Trace, *args: Any) -> Any:
    """The form of a step of radial functions: SciPy has it in Python for other libraries' arrays."""
    return getattr(sys.modules["scipy.interpolate._rbfinterp_xp"], name)(*args[:-1], np)


@records("scipy.interpolate", "BarycentricInterpolator.__init__")
def _barycentric(trace: Trace, self: Any, xi: Any, *args: Any, rng: Any = None, **keywords: Any) -> Any:
    """The order in which points are taken, which is random, changes the rounding alone."""
    begin = original(sys.modules["scipy.interpolate"].BarycentricInterpolator.__init__)
    return begin(self, xi, *args, rng=np.random.default_rng(0) if rng is None else rng, **keywords)


_MODULE = "scipy.interpolate._interpnd"


@records(_MODULE, "NDInterpolatorBase.__init__")
def _begin(trace: Trace, self: Any, points: Any, values: Any, *args: Any, **keywords: Any) -> None:
    """As SciPy begins with plain values; the traced ones take their place."""
    moving = trace.traced(points).astype(float, copy=False) if trace.varies(points) else None
    if moving is not None and (keywords.get("rescale") or type(self).__name__ != "LinearNDInterpolator"):
        raise trace.unrecorded("interpolation between traced points with rescale, or by cubics", "Pass plain points.")
    points = np.copy(trace.values[trace.lift(points)])
    begin = original(sys.modules[_MODULE].NDInterpolatorBase.__init__)
    given = trace.traced(values)
    plain = np.copy(trace.values[trace.lift(given)])
    begin(self, points, plain, *args, **keywords)
    if self.values is not None:
        kind = complex if given.dtype.kind == "c" else float
        self.values = np.reshape(given, np.shape(self.values)).astype(kind, copy=False)
    self.points = self.points if moving is None else moving


@records(_MODULE, "_ndim_coords_from_arrays")
def _coordinates(trace: Trace, points: Any, ndim: int | None = None) -> Any:
    """Points of one array, or of one for each coordinate; compiled code makes them, also for grids."""
    points = points[0] if isinstance(points, tuple) and len(points) == 1 else points
    if isinstance(points, tuple):
        return np.stack(np.broadcast_arrays(*map(trace.traced, points)), axis=-1).astype(float, copy=False)
    x = trace.traced(points)
    return np.reshape(x, (-1, 1 if ndim is None else ndim)) if x.ndim == 1 else x


def _places(trace: Trace, self: Any, args: tuple[Any, ...]) -> Any:
    """The points to interpolate at, one a row, and the shape of the result without that of values."""
    count = self.points.shape[1]
    x = _coordinates(trace, args, count)
    rows = np.reshape(x, (-1, count))
    if getattr(self, "scale", None) is not None:
        rows = (rows - self.offset) / self.scale
    return rows, x.shape[:-1]


@records(_MODULE, "NDInterpolatorBase.__call__")
def _between(trace: Trace, self: Any, *args: Any) -> Any:
    """Linear in each triangle."""
    if type(self).__name__ != "LinearNDInterpolator":
        raise trace.unrecorded(f"scipy.interpolate.{type(self).__name__}", "Use LinearNDInterpolator.")
    rows, shape = _places(trace, self, args)
    points = trace.traced(self.points if trace.varies(self.points) else self.tri.points)
    if not np.array_equal(type(self.tri)(self.tri.points).simplices, self.tri.simplices):
        raise trace.unrecorded("interpolation in a triangulation of another kind", "Pass the points.")
    if trace.varies([points, rows]):
        found = trace.ruled("_corners", points, trace.traced(rows).astype(float, copy=False))
    else:
        found = corners(*(np.asarray(trace.values[trace.lift(each)], dtype=float) for each in (points, rows)))
    places, inside = found
    last = points[places[:, -1]]
    sides = np.swapaxes(points[places[:, :-1]] - last[:, None, :], 1, 2)
    shares = np.linalg.solve(sides, (rows - last)[:, :, None])
    shares = np.concatenate([shares, 1 - np.sum(shares, axis=1, keepdims=True)], axis=1)
    values = np.sum(shares * trace.traced(self.values)[places], axis=1)
    values = np.where(inside[:, None], values, self.fill_value)
    return np.reshape(values, (*shape, *self.values_shape))


@records("scipy.interpolate", "NearestNDInterpolator.__call__")
def _nearest(trace: Trace, self: Any, *args: Any, **options: Any) -> Any:
    if options:
        raise trace.unrecorded("scipy.interpolate.NearestNDInterpolator with options", "Leave them out.")
    rows, shape = _places(trace, self, args)
    distances = np.sum((rows[:, None, :] - self.points) ** 2, axis=-1)
    values = trace.traced(self.values)[np.argmin(distances, axis=1)]
    return np.reshape(values, (*shape, *values.shape[1:]))


_CLOSED = ("linear", "interpolated_inverted_cdf")
"""Methods for quantiles in which the last element has the probability 1, and none less."""


@records("scipy.stats._quantile", "_quantile_hf")
def _of_sorted(trace: Trace, y: Any, p: Any, n: Any, method: str, weights: Any, xp: Any) -> Any:
    """At the last element a traced probability has the slope of the last interval."""
    own = original(sys.modules["scipy.stats._quantile"]._quantile_hf)
    found = own(y, p, n, method, weights, xp)
    if not is_tracer(p) or weights is not None or method not in _CLOSED or np.shape(y)[-1] < 2:
        return found
    last = np.asarray(n - 1).astype(int)
    step = [np.take_along_axis(y, np.broadcast_to(each, np.shape(p)), -1) for each in (last, np.maximum(last - 1, 0))]
    slope = (step[0] - step[1]) * (n - 1 if method == "linear" else n)
    return np.where(np.equal(p, 1) & np.isfinite(slope), found - slope * (1 - p), found)


@records("scipy.stats._stats_py", "_compute_qth_percentile")
def _at_percentage(trace: Trace, sorted_: Any, per: Any, interpolation_method: str, axis: int) -> Any:
    own = original(sys.modules["scipy.stats._stats_py"]._compute_qth_percentile)
    last = np.shape(sorted_)[axis] - 1
    if not is_tracer(per) or np.ndim(per) or interpolation_method != "fraction" or last < 1:
        return own(sorted_, per, interpolation_method, axis)
    if not 0 <= per <= 100:
        raise ValueError("percentile must be in the range [0, 100]")
    place = per / 100.0 * last
    lower = np.clip(np.floor(place), 0, last - 1)
    one, other = (np.take(sorted_, each.astype(int), axis=axis) for each in (lower, lower + 1))
    return one * (lower + 1 - place) + other * (place - lower)
