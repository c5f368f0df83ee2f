"""Filters of scipy.ndimage that choose among the neighbours of each element: extremes, medians, ranks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.windows import axes_of, is_sequence, no_more, padded
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


def _extreme(name: str, reduction: str) -> Callable[..., Any]:
    def form(
        trace: Trace,
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        no_more(trace, name, output, {})
        return getattr(np, reduction)(_windows(trace, input, size, footprint, mode, cval, origin, axes), axis=0)

    return form


def _extreme_along(name: str, reduction: str) -> Callable[..., Any]:
    def form(
        trace: Trace,
        input: Any,
        size: int,
        axis: int = -1,
        output: Any = None,
        mode: str = "reflect",
        cval: Any = 0.0,
        origin: int = 0,
    ) -> Any:
        no_more(trace, name, output, {})
        return getattr(np, reduction)(_windows(trace, input, int(size), None, mode, cval, origin, axis), axis=0)

    return form


def _ranked(name: str, rank: Callable[[Any, int], int]) -> Callable[..., Any]:
    """The form of a filter that takes one of the sorted neighbours; ``rank`` says which, of how many."""

    def chosen(
        trace: Trace,
        which: Any,
        input: Any,
        size: Any = None,
        footprint: Any = None,
        output: Any = None,
        mode: Any = "reflect",
        cval: Any = 0.0,
        origin: Any = 0,
        *,
        axes: Any = None,
    ) -> Any:
        no_more(trace, name, output, {})
        rows = _windows(trace, input, size, footprint, mode, cval, origin, axes)
        return np.sort(rows, axis=0)[rank(which, len(rows))]

    if name == "median_filter":
        return functools.partial(_without_choice, chosen)
    return functools.partial(_with_choice, chosen)


def _without_choice(chosen: Callable[..., Any], trace: Trace, input: Any, *args: Any, **keywords: Any) -> Any:
    return chosen(trace, None, input, *args, **keywords)


def _with_choice(
    chosen: Callable[..., Any], trace: Trace, input: Any, choice: Any = None, *args: Any, **keywords: Any
) -> Any:
    named = [keywords.pop(name) for name in ("rank", "percentile") if name in keywords]
    return chosen(trace, *named, input, *args, **keywords) if named else chosen(trace, choice, input, *args, **keywords)


def _percentile(which: Any, count: int) -> int:
    share = which + 100.0 if which < 0 else which
    return count - 1 if share == 100.0 else int(float(count) * share / 100.0)


_FORMS: dict[str, Callable[..., Any]] = {
    "maximum_filter": _extreme("maximum_filter", "max"),
    "minimum_filter": _extreme("minimum_filter", "min"),
    "maximum_filter1d": _extreme_along("maximum_filter1d", "max"),
    "minimum_filter1d": _extreme_along("minimum_filter1d", "min"),
    "median_filter": _ranked("median_filter", lambda _, count: count // 2),
    "rank_filter": _ranked("rank_filter", lambda which, count: which + count if which < 0 else which),
    "percentile_filter": _ranked("percentile_filter", _percentile),
}

for _name, _form in _FORMS.items():
    records("scipy.ndimage", _name)(_form)
