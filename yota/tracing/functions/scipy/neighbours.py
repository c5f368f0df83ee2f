"""Filters of scipy.ndimage that choose among the neighbours of each element: extremes, medians, ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.windows import axes_of, is_sequence, padded
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _windows(trace: Trace, input: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> Any:
    """The neighbours of each element that a footprint covers, along a new first axis."""
    x = trace.traced(input)
    if footprint is None:
        if size is None:
            raise RuntimeError("no footprint or filter size provided")
        extents = dict(axes_of(x.ndim, axes, size))
        footprint = np.ones([int(extents.get(axis, 1)) for axis in range(x.ndim)], bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != x.ndim or not footprint.any() or is_sequence(mode):
        raise trace.refuse("scipy.ndimage filters are recorded for one mode and a footprint with as many axes.", "")
    origins = dict(axes_of(x.ndim, axes, origin))
    before = [extent // 2 + int(origins.get(axis, 0)) for axis, extent in enumerate(footprint.shape)]
    after = [extent - 1 - each for extent, each in zip(footprint.shape, before, strict=True)]
    whole = padded(trace, x, before, after, mode, cval)
    return np.stack(
        [
            whole[tuple(slice(start, start + extent) for start, extent in zip(place, x.shape, strict=True))]
            for place in np.argwhere(footprint).tolist()
        ]
    )


def _extreme(reduction: str) -> Callable[..., Any]:
    def form(
        trace: Trace, input: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any = None
    ) -> Any:
        return getattr(np, reduction)(_windows(trace, input, size, footprint, mode, cval, origin, axes), axis=0)

    return form


def _extreme_along(reduction: str) -> Callable[..., Any]:
    def form(trace: Trace, input: Any, size: int, axis: int, mode: str, cval: Any, origin: int) -> Any:
        return getattr(np, reduction)(_windows(trace, input, int(size), None, mode, cval, origin, axis), axis=0)

    return form


for _name, _reduction in (("maximum", "max"), ("minimum", "min")):
    records("scipy.ndimage", f"{_name}_filter")(_extreme(_reduction))
    records("scipy.ndimage", f"{_name}_filter1d")(_extreme_along(_reduction))


@records("scipy.ndimage", "median_filter")
def _median(
    trace: Trace, input: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any = None
) -> Any:
    rows = _windows(trace, input, size, footprint, mode, cval, origin, axes)
    return np.sort(rows, axis=0)[len(rows) // 2]


@records("scipy.ndimage", "rank_filter")
def _ranked(
    trace: Trace, input: Any, rank: int, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any = None
) -> Any:
    rows = _windows(trace, input, size, footprint, mode, cval, origin, axes)
    return np.sort(rows, axis=0)[rank]


@records("scipy.ndimage", "percentile_filter")
def _percentile(
    trace: Trace,
    input: Any,
    percentile: float,
    size: Any,
    footprint: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any = None,
) -> Any:
    rows = _windows(trace, input, size, footprint, mode, cval, origin, axes)
    share = percentile + 100.0 if percentile < 0 else percentile
    rank = len(rows) - 1 if share == 100.0 else int(float(len(rows)) * share / 100.0)
    return np.sort(rows, axis=0)[rank]
