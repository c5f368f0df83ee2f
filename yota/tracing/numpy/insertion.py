"""Making arrays longer or shorter: insert, delete, trim_zeros, block, vander, meshgrid, windows."""

from __future__ import annotations

import sys
from typing import Any

from yota.rules.language.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.memory import laid_as
from yota.tracing.methods import is_tracer
from yota.tracing.numpy.coefficients import trimmed, trims_coefficients
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import Look, derived


@implements(np.insert)
def _insert(trace: Trace, arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr, values = trace.traced(arr), trace.traced(values)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = axes_of(axis, arr.ndim)[0]
    obj = _plain_places(trace, obj)
    extent = arr.shape[axis]
    if arr.dtype.kind in "biu" and values.dtype.kind in "fc":
        raise trace.refuse("np.insert would cast floating values to integers.", "Make the array floating first.")
    places: Any = np.arange(extent)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    count = places.size
    if count == 1:
        values = np.reshape(values, (1,) * (arr.ndim - values.ndim) + values.shape)
        if not places.ndim:
            values = np.moveaxis(values, 0, axis)
        count, places = values.shape[axis], int(places.item())
    values = np.broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1 :])).astype(arr.dtype)
    # Where each element of the result stands in the array with the values behind it.
    order = np.insert(np.arange(extent), places, extent + np.arange(count))
    return np.take(np.concatenate([arr, values], axis=axis), order, axis=axis)


def _plain_places(trace: Trace, places: Any) -> Any:
    if is_tracer(places) and not places.ndim:
        return int(places)
    if is_tracer(places):
        if not trace.varies(places):
            return np.copy(places._value())
        raise trace.refuse("positions that depend on the arguments cannot be inserted or deleted at.", "Use a mask.")
    return places


@implements(np.delete)
def _delete(trace: Trace, arr: Any, obj: Any, axis: Any = None) -> Any:
    arr = trace.traced(arr)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = axes_of(axis, arr.ndim)[0]
    kept = np.delete(np.arange(arr.shape[axis]), _plain_places(trace, obj))
    return np.take(arr, kept, axis=axis)


@implements(np.trim_zeros)
def _trim_zeros(trace: Trace, filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """How much is cut off is a guard."""
    if trims_coefficients(sys._getframe()):
        return trimmed(trace, filt, trim)
    filt = trace.traced(filt)
    mask = np.not_equal(filt, 0)
    result = filt
    for each in axes_of(axis, filt.ndim):
        others = tuple(position for position in range(filt.ndim) if position != each)
        found = np.any(mask, axis=others)
        first, last = 0, filt.shape[each]
        if not bool(np.any(found)):
            last = 0
        else:
            if "f" in trim.lower():
                first = int(np.argmax(found))
            if "b" in trim.lower():
                last -= int(np.argmax(found[::-1]))
        result = result[(slice(None),) * each + (slice(first, last),)]
    return result


@implements(np.block)
def _block(trace: Trace, arrays: Any) -> Any:
    depth = _depth(arrays)
    ndim = max(depth, _most_axes(trace, arrays))

    def joined(part: Any, level: int) -> Any:
        if isinstance(part, list):
            return np.concatenate([joined(each, level + 1) for each in part], axis=level - depth)
        found = trace.traced(part)
        return np.reshape(found, (1,) * (ndim - found.ndim) + found.shape)

    return joined(arrays, 0)


def _depth(part: Any) -> int:
    if isinstance(part, tuple):
        raise TypeError("only lists can be used to arrange blocks, and np.block does not take tuples")
    if not isinstance(part, list):
        return 0
    depths = {_depth(each) for each in part}
    if len(depths) != 1:
        raise ValueError("List depths are mismatched, or a list is empty")
    return 1 + depths.pop()


def _most_axes(trace: Trace, part: Any) -> int:
    if isinstance(part, list):
        return max(_most_axes(trace, each) for each in part)
    return int(trace.traced(part).ndim)


@implements(np.vander)
def _vander(trace: Trace, x: Any, N: Any = None, increasing: bool = False) -> Any:
    x = trace.traced(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    x = x.astype(np.promote_types(x.dtype, int), copy=False)
    count = len(x) if N is None else int(N)
    columns = np.broadcast_to(x[:, None], (len(x), max(count - 1, 0)))
    powers = np.cumprod(np.concatenate([np.ones((len(x), min(count, 1)), x.dtype), columns], axis=1), axis=1)
    return powers if increasing else np.flip(powers, 1)


@implements(np.meshgrid)
def _meshgrid(trace: Trace, *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        order[:2] = 1, 0
    grids = [
        np.reshape(trace.traced(x), (1,) * order[position] + (-1,) + (1,) * (len(xi) - order[position] - 1))
        for position, x in enumerate(xi)
    ]
    found = tuple(grids) if sparse else tuple(np.broadcast_arrays(*grids))
    return tuple(each.copy() for each in found) if copy else found


@implements(np.lib.stride_tricks.sliding_window_view)
def _windows(
    trace: Trace, x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    x = trace.traced(x)
    extents = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if len(axes) != len(extents):
        raise ValueError("window_shape and axis must have the same number of items")
    places = [axes_of(each, x.ndim)[0] for each in axes]
    shape = list(x.shape)
    for place, extent in zip(places, extents, strict=True):
        shape[place] -= extent - 1
        if shape[place] <= 0:
            raise ValueError("window shape cannot be larger than input array shape")

    def gathered(x: Any) -> Any:
        strides = x._value().strides
        for place, extent in zip(places, extents, strict=True):
            starts = np.arange(x.shape[place] - extent + 1)[:, None]
            x = np.moveaxis(np.take(x, starts + np.arange(extent), axis=place), place + 1, -1)
        if places:
            # Windows share elements, and so may be copied where they are reshaped.
            strides = (*strides, *(strides[place] for place in places))
            trace.values[x._variable] = laid_as(x._value(), strides)
        return x

    return derived(x, Look(gathered))
