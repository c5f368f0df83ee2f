"""Interpolation of scipy.interpolate between points that lie anywhere, of which plain arrays tell the places."""

from __future__ import annotations

import sys
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_MODULE = "scipy.interpolate._interpnd"
_EDGE = 1e-9
"""By how much a point may lie outside of its triangle."""


@records(_MODULE, "NDInterpolatorBase.__init__")
def _begin(trace: Trace, self: Any, points: Any, values: Any, *args: Any, **keywords: Any) -> None:
    """As SciPy begins with plain values; the traced ones take their place."""
    if is_traced(points):
        raise trace.unrecorded("interpolation between traced points", "Pass plain points.")
    begin = sys.modules[_MODULE].NDInterpolatorBase.__init__
    given = trace.traced(values)
    plain = np.copy(trace.values[trace.lift(given)])
    getattr(begin, "recorded_from", begin)(self, points, plain, *args, **keywords)
    if self.values is not None:
        kind = complex if given.dtype.kind == "c" else float
        self.values = np.reshape(given, np.shape(self.values)).astype(kind, copy=False)


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
    if getattr(self, "rescale", False):
        rows = (rows - self.offset) / self.scale
    return rows, x.shape[:-1]


@records(_MODULE, "NDInterpolatorBase.__call__")
def _between(trace: Trace, self: Any, *args: Any) -> Any:
    """Linear in each triangle; which one a point lies in is guarded."""
    if type(self).__name__ != "LinearNDInterpolator":
        raise trace.unrecorded(f"scipy.interpolate.{type(self).__name__}", "Use LinearNDInterpolator.")
    rows, shape = _places(trace, self, args)
    plain = np.asarray(trace.values[trace.lift(rows)], dtype=float)
    found = self.tri.find_simplex(plain)
    outside = found < 0
    transform = self.tri.transform[found]
    count = rows.shape[1]
    shares = np.sum(transform[:, :count] * (rows - transform[:, count])[:, None, :], axis=-1)
    shares = np.concatenate([shares, 1 - np.sum(shares, axis=-1, keepdims=True)], axis=-1)
    moves = not trace.is_constant(trace.lift(rows))
    if moves and (np.any(outside) or not bool(np.all(shares > -_EDGE))):
        raise trace.refuse(
            "a traced point lies outside of all triangles, where nothing tells whether it moves into one.",
            "Leave such points out.",
        )
    corners = trace.traced(self.values)[self.tri.simplices[found]]
    values = np.sum(shares[:, :, None] * corners, axis=1)
    if np.any(outside):
        values = np.where(outside[:, None], self.fill_value, values)
    return np.reshape(values, (*shape, *self.values_shape))


@records("scipy.interpolate", "NearestNDInterpolator.__call__")
def _nearest(trace: Trace, self: Any, *args: Any, **options: Any) -> Any:
    if options:
        raise trace.unrecorded("scipy.interpolate.NearestNDInterpolator with options", "Leave them out.")
    rows, shape = _places(trace, self, args)
    distances = np.sum((rows[:, None, :] - self.points) ** 2, axis=-1)
    values = trace.traced(self.values)[np.argmin(distances, axis=1)]
    return np.reshape(values, (*shape, *values.shape[1:]))
