"""Shape, order and selection, recorded as reshape, transpose, broadcast_to, concatenate, stack and indexing."""

from __future__ import annotations

import math
import sys
from typing import Any

from yota.tracing.forms import Trace, axes_of, implements, is_tracer, np, original, primitive, records
from yota.tracing.memory import axes_in_memory, memory_order
from yota.tracing.views import view, viewing, write


@implements(np.reshape, by_kind=1)
def _reshape(trace: Trace, a: Any, shape: Any = None, order: str = "C", newshape: Any = None, copy: Any = None) -> Any:
    a = trace.traced(a)
    order = memory_order(trace, a, order)
    target = newshape if shape is None else shape
    sizes = tuple(int(size) for size in (target if isinstance(target, (tuple, list, np.ndarray)) else (target,)))
    if copy:
        a = a.copy(order)
    elif copy is False:
        np.reshape(a._value(), sizes, order, copy=False)  # raises where there is no view
    if order == "F":
        return np.transpose(np.reshape(np.transpose(a), sizes[::-1]))
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        sizes = tuple(a.size // known if size == -1 else size for size in sizes)
    return view(a, "reshape", {"shape": sizes})


@implements(np.ravel)
def _ravel(trace: Trace, a: Any, order: str = "C") -> Any:
    a = trace.traced(a)
    axes = axes_in_memory(trace, a) if order == "K" else None
    moved = a if axes is None else np.transpose(a, axes)
    found = np.reshape(moved, (-1 if a.size else 0,), order="C" if order == "K" else order)
    return viewing(a, found, lambda value: value.ravel(order))


@implements(np.transpose, np.permute_dims, by_kind=1)
def _transpose(trace: Trace, a: Any, axes: Any = None) -> Any:
    a = trace.traced(a)
    order = range(a.ndim)[::-1] if axes is None else np.lib.array_utils.normalize_axis_tuple(axes, a.ndim)
    return view(a, "transpose", {"axes": tuple(order)}) if a.ndim > 1 else view(a, "reshape", {"shape": a.shape})


@implements(np.swapaxes, by_kind=1)
def _swapaxes(trace: Trace, a: Any, axis1: int, axis2: int) -> Any:
    order = list(range(a.ndim))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return np.transpose(a, order)


@implements(np.squeeze, by_kind=1)
def _squeeze(trace: Trace, a: Any, axis: Any = None) -> Any:
    a = trace.traced(a)
    whole = axis is None or (not a.ndim and axis in (0, -1))
    drop = tuple(i for i, extent in enumerate(a.shape) if extent == 1) if whole else axes_of(axis, a.ndim)
    return np.reshape(a, tuple(extent for position, extent in enumerate(a.shape) if position not in drop))


@implements(np.broadcast_to, by_kind=1)
def _broadcast_to(trace: Trace, array: Any, shape: Any, subok: bool = False) -> Any:
    sizes = tuple(int(size) for size in shape) if isinstance(shape, (tuple, list)) else (int(shape),)
    array = trace.traced(array)
    is_there = array.shape == sizes and isinstance(array, np.ndarray)
    return array if is_there else view(array, "broadcast_to", {"shape": sizes})


@implements(np.broadcast_arrays)
def _broadcast_arrays(trace: Trace, *args: Any, subok: bool = False) -> Any:
    shape = np.broadcast_shapes(*(trace.traced(each).shape for each in args))
    return tuple(np.broadcast_to(each, shape) for each in args)


@implements(np.concatenate, by_kind=1)
def _concatenate(trace: Trace, arrays: Any, axis: Any = 0, dtype: Any = None, casting: str = "same_kind") -> Any:
    pieces = [trace.traced(each) for each in arrays]
    if axis is None:
        pieces, axis = [np.ravel(each) for each in pieces], 0
    if dtype is not None:
        pieces = [each.astype(dtype) for each in pieces]
    return trace.apply(primitive("concatenate"), pieces, {"axis": axes_of(axis, pieces[0].ndim)[0]})


@implements(np.stack, by_kind=1)
def _stack(trace: Trace, arrays: Any, axis: int = 0, dtype: Any = None, casting: str = "same_kind") -> Any:
    pieces = [trace.traced(each) for each in arrays]
    if dtype is not None:
        pieces = [each.astype(dtype) for each in pieces]
    return trace.apply(primitive("stack"), pieces, {"axis": axes_of(axis, pieces[0].ndim + 1)[0]})


@implements(np.copyto)
def _copyto(trace: Trace, dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    if casting == "unsafe":
        src = trace.traced(src).astype(dst.dtype, copy=False)
    write(dst, Ellipsis, src if where is True else np.where(where, src, dst))


@implements(np.shape)
def _shape(trace: Trace, a: Any) -> Any:
    return a.shape if trace.sizes is None else tuple(map(trace.sizes.extent, a.shape))


implements(np.ndim)(lambda trace, a: a.ndim)


@implements(np.size)
def _size(trace: Trace, a: Any, axis: Any = None) -> Any:
    extents = _shape(trace, a)
    return math.prod(extents if axis is None else [extents[position] for position in axes_of(axis, a.ndim)])


@implements(np.may_share_memory, np.shares_memory)
def _shares(trace: Trace, a: Any, b: Any, max_work: Any = None) -> Any:
    return np.may_share_memory(trace.values[trace.lift(a)], trace.values[trace.lift(b)])


@implements(np.result_type)
def _result_type(trace: Trace, *values: Any) -> Any:
    return np.result_type(*(trace.values[trace.lift(v)] if is_tracer(v) else v for v in values))


@records("numpy", "from_dlpack")
def _from_dlpack(trace: Trace, x: Any, *, copy: bool | None = None, **_: Any) -> Any:
    """The array itself: it is in NumPy's memory."""
    return x.copy("K") if copy else x[...]


@records("scipy._lib.array_api_compat.common._helpers", "is_writeable_array")
@records("sklearn.externals.array_api_compat.common._helpers", "is_writeable_array")
def _is_writeable(trace: Trace, x: Any) -> bool:
    """Whether elements can be assigned to."""
    value = x._value() if is_tracer(x) else x
    return isinstance(value, np.ndarray) and bool(x.flags.writeable)


@records("numpy.lib._function_base_impl", "_get_indexes")
def _places_of_quantiles(trace: Trace, arr: Any, virtual_indexes: Any, valid_values_count: Any) -> Any:
    """As for an array of places. A traced place at the last element has the slope of the last interval."""
    own = original(sys.modules["numpy.lib._function_base_impl"]._get_indexes)
    given = np.reshape(virtual_indexes, np.shape(virtual_indexes) or (1,))
    found = own(arr, given, valid_values_count)
    previous, following = (np.reshape(each, np.shape(virtual_indexes)) for each in found)
    last = valid_values_count - 1
    if is_tracer(virtual_indexes) and not is_tracer(last) and last > 0:
        ends = np.equal(virtual_indexes, last)
        # Of numbers that are not finite the interval may have none.
        if np.any(ends) and np.all(np.isfinite(arr)):
            previous = np.where(ends, last - 1, previous)
    return previous, following
