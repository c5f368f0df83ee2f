"""Images of scipy.ndimage between their pixels: splines of any order, continued beyond the ends of each axis."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any

from yota.tracing.forms import Trace, np, original, records
from yota.tracing.scipy.ndimage import store

_NEAREST, _WRAP, _REFLECT, _MIRROR, _CONSTANT, _GRID_WRAP, _GRID_CONSTANT = range(7)
"""SciPy's numbers of its modes."""
_MOST = 2048
"""Pixels along an axis of which a filter is a full matrix: what has more is refused."""


def _folded(at: Any, extent: int, mode: int) -> Any:
    """Places beyond the ends, moved inside; they count pixels, and may be whole."""
    if extent <= 1:
        return 0 * at
    if mode == _NEAREST:
        return np.clip(at, 0, extent - 1)
    if mode == _MIRROR:
        rest = np.mod(at, 2 * extent - 2)
        return np.where(rest > extent - 1, 2 * extent - 2 - rest, rest)
    if mode == _REFLECT:
        rest = np.mod(2 * at + 1, 4 * extent) - 1
        rest = np.where(rest > 2 * extent - 1, 4 * extent - 2 - rest, rest)
        return rest // 2 if at.dtype.kind == "i" else rest / 2
    if mode == _WRAP:
        return np.where((at >= 0) & (at <= extent - 1), at, np.mod(at, extent - 1))
    return np.mod(at, extent) if mode == _GRID_WRAP else at


def _weights(share: Any, order: int) -> Any:
    """The uniform B-splines that are not zero, by the place in an interval (de Boor 1972)."""
    found = [0.0 * share + 1.0]
    for degree in range(1, order + 1):
        edged = [0.0, *found, 0.0]
        found = [
            ((share + degree - place) * edged[place] + (1 - share + place) * edged[place + 1]) / degree
            for place in range(degree + 1)
        ]
    return np.stack(found)


def _sampled(trace: Trace, x: Any, places: Sequence[Any], order: int, mode: int, cval: Any) -> Any:
    """The spline with coefficients ``x`` at each of several places, whose coordinates are given by axis."""
    count = len(places)
    inside: Any = True
    known: Any = True
    weight: Any = 1.0
    rows = []
    for axis, (at, extent) in enumerate(zip(places, x.shape, strict=True)):
        at = trace.traced(at)
        if mode == _CONSTANT:
            within = np.logical_and(at >= 0, at <= extent - 1)
            inside, at = np.logical_and(inside, within), np.where(within, at, 0.0)
        at = _folded(at, extent, mode)
        half = 0.0 if order % 2 else 0.5
        low = np.floor(at + half)
        if order == 1 and extent > 1 and mode in (_CONSTANT, _WRAP):
            # The last pixel is the end of the last interval.
            low = np.minimum(low, extent - 2)
        span = np.arange(order + 1) - order // 2
        shape = (1,) * axis + (-1,) + (1,) * (count - 1 - axis)
        index = low.astype(int) + np.reshape(span, (-1,) + (1,) * at.ndim)
        if mode == _GRID_CONSTANT:
            held = np.logical_and(index >= 0, index < extent)
            known = np.logical_and(known, np.reshape(held, shape + at.shape))
            index = np.clip(index, 0, extent - 1)
        else:
            # Of coefficients, SciPy continues those as a mirror does of which it knows no better.
            index = _folded(index, extent, _MIRROR if mode in (_CONSTANT, _WRAP) else mode)
        rows.append(np.reshape(index, shape + at.shape))
        own = _weights(at + half - low, order)
        weight = weight * np.reshape(own, shape + at.shape)
    values = x[tuple(np.broadcast_arrays(*rows))]
    if mode == _GRID_CONSTANT:
        values = np.where(known, values, cval)
    found = np.sum(weight * values, axis=tuple(range(count)))
    return np.where(inside, found, cval) if mode == _CONSTANT else found


@records("scipy.ndimage._nd_image", "geometric_transform")
def _transformed(
    trace: Trace, x: Any, mapping: Any, coordinates: Any, matrix: Any, offset: Any, out: Any, *given: Any
) -> None:
    order, mode, cval, npad, arguments, keywords = given
    x = trace.traced(x)
    if coordinates is not None:
        places = list(trace.traced(coordinates))
    elif mapping is not None:
        found = [mapping(each, *(arguments or ()), **(keywords or {})) for each in np.ndindex(*out.shape)]
        stacked = np.stack([np.stack([trace.traced(part) for part in each]) for each in found], axis=1)
        places = list(np.reshape(stacked, (x.ndim, *out.shape)))
    else:
        grid = np.indices(out.shape).astype(float)
        moved = np.tensordot(trace.traced(matrix), grid, axes=1)
        places = list(moved + np.reshape(trace.traced(offset), (-1,) + (1,) * len(out.shape)))
    store(trace, out, _sampled(trace, x, [each + float(npad) for each in places], order, mode, cval))


@records("scipy.ndimage._nd_image", "zoom_shift")
def _zoomed(
    trace: Trace, x: Any, zoom: Any, shift: Any, out: Any, order: int, mode: int, cval: Any, npad: int, grid_mode: Any
) -> None:
    x = trace.traced(x)
    places = []
    for axis, extent in enumerate(out.shape):
        at = np.arange(extent).astype(float)
        at = at if shift is None else at + shift[axis]
        if zoom is not None:
            at = (at + 0.5) * zoom[axis] - 0.5 if grid_mode else at * zoom[axis]
        shape = (1,) * axis + (-1,) + (1,) * (len(out.shape) - 1 - axis)
        places.append(np.broadcast_to(np.reshape(at + float(npad), shape), out.shape))
    store(trace, out, _sampled(trace, x, places, order, mode, cval))


@records("scipy.ndimage._nd_image", "spline_filter1d")
def _coefficients(trace: Trace, x: Any, order: int, axis: int, out: Any, mode: int) -> None:
    """The filter is linear: its matrix is what it makes of each unit vector."""
    x = trace.traced(x)
    extent = x.shape[axis]
    if extent > _MOST:
        raise trace.unrecorded(f"a spline filter along {extent} pixels", f"Take at most {_MOST}.")
    found = np.moveaxis(np.tensordot(_matrix(order, extent, mode), x, axes=(1, axis)), 0, axis)
    store(trace, out, found)


@functools.lru_cache(16)
def _matrix(order: int, extent: int, mode: int) -> Any:
    found = np.eye(extent)
    original(sys.modules["scipy.ndimage._nd_image"].spline_filter1d)(np.eye(extent), order, 0, found, mode)
    found.flags.writeable = False
    return found
