"""Elements by their positions: chosen, written, sorted, repeated, and sets of values; counts of elements are guards."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.forms import Trace, axes_of, implements, np, overwrite, primitive, unboxed
from yota.tracing.memory import laid_as
from yota.tracing.methods import is_tracer
from yota.tracing.views import Look, derived


@implements(np.where, by_kind=3)
def _where(trace: Trace, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return np.nonzero(condition)
    condition = trace.traced(condition)
    if condition.dtype.kind != "b":
        condition = np.not_equal(condition, 0)
    return trace.apply(primitive("where"), (condition, x, y))


@implements(np.nonzero)
def _nonzero(trace: Trace, a: Any) -> Any:
    """Positions of the true elements; their number is a guard, since it is a shape on the tape."""
    mask = np.ravel(a if a.dtype.kind == "b" else np.not_equal(a, 0))
    count = int(np.sum(mask))
    if count in (0, mask.size):
        return tuple(np.nonzero(np.full(a.shape, bool(count))))
    positions = trace.apply(primitive("flatnonzero"), (mask,))
    return tuple(np.unravel_index(positions, a.shape)) if a.ndim > 1 else (positions,)


implements(np.flatnonzero)(lambda trace, a: np.nonzero(np.ravel(a))[0])


@implements(np.unravel_index)
def _unravel_index(trace: Trace, indices: Any, shape: Any, order: str = "C") -> Any:
    results: list[Any] = []
    for extent in reversed(shape):
        results.append(indices % extent)
        indices = indices // extent
    return tuple(results[::-1])


@implements(np.ravel_multi_index)
def _ravel_multi_index(trace: Trace, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    extents = (dims,) if np.ndim(dims) == 0 else tuple(dims)
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    result: Any = 0
    pairs = list(zip(multi_index, extents, modes, strict=True))
    for places, extent, each in pairs if order == "C" else reversed(pairs):
        if each == "raise" and bool(np.any((places < 0) | (places >= extent))):
            raise ValueError("invalid entry in coordinates array")
        if each != "raise":
            places = np.remainder(places, extent) if each == "wrap" else np.clip(places, 0, extent - 1)
        result = result * extent + places
    return result


@implements(np.take)
def _take(trace: Trace, a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    a = trace.traced(a)
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    axis = axes_of(axis, a.ndim)[0]
    if getattr(getattr(indices, "dtype", None), "kind", "") == "b":
        indices = indices.astype(int)  # positions 0 and 1, and no mask
    if mode != "raise":
        indices = trace.traced(indices)
        indices = indices % a.shape[axis] if mode == "wrap" else np.clip(indices, 0, a.shape[axis] - 1)
    return a[(slice(None),) * axis + (indices,)]


@implements(np.diagonal)
def diagonal(trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, *, writeable: bool = False) -> Any:
    """A view of a diagonal, as its last axis."""
    a = trace.traced(a)
    axis1, axis2 = axes_of(axis1, a.ndim)[0], axes_of(axis2, a.ndim)[0]
    rest = [axis for axis in range(a.ndim) if axis not in (axis1, axis2)]
    a = np.transpose(a, (*rest, axis1, axis2))
    rows = np.arange(max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))) - min(offset, 0)
    place = (..., rows, rows + offset)

    def overwritten(base: Any, value: Any) -> Any:
        whole = base.copy("K")
        whole[place] = value
        return whole

    def read(base: Any) -> Any:
        found = base[place]
        # The view lies between the other elements, and so may be copied where it is reshaped.
        strides = np.diagonal(base._value(), offset, -2, -1).strides
        found._trace.values[found._variable] = laid_as(found._value(), strides)
        return found

    return derived(a, Look(read, overwritten if writeable else None))


@implements(np.diag)
def _diag(trace: Trace, v: Any, k: int = 0) -> Any:
    v = trace.traced(v)
    if v.ndim == 2:
        return np.diagonal(v, k)
    size = v.shape[0] + abs(k)
    rows = np.arange(v.shape[0]) - min(k, 0)
    result = trace.constant(np.zeros((size, size), v.dtype))
    result[rows, rows + k] = v
    return result


implements(np.diagflat)(lambda trace, v, k=0: np.diag(np.ravel(trace.traced(v)), k))


@implements(np.repeat)
def _repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    # The shape depends on how often each element is repeated.
    counts = [int(each) for each in np.ravel(repeats)] if is_tracer(repeats) else repeats
    positions = np.repeat(np.arange(a.shape[axis]), counts)
    axis = axis % a.ndim
    times = len(positions) // max(a.shape[axis], 1)
    if times > 0 and np.size(counts) == 1:
        # The adjoint of a broadcast is a sum, which costs less than adding at places.
        spread = np.broadcast_to(np.expand_dims(a, axis + 1), (*a.shape[: axis + 1], times, *a.shape[axis + 1 :]))
        return np.reshape(spread, (*a.shape[:axis], len(positions), *a.shape[axis + 1 :]))
    return np.take(a, positions, axis=axis)


@implements(np.choose)
def _choose(trace: Trace, a: Any, choices: Any, mode: str = "raise") -> Any:
    a = trace.traced(a)
    count = len(choices)
    if mode == "raise" and bool(np.any((a < 0) | (a >= count))):
        raise ValueError("invalid entry in choice array")
    if mode == "wrap":
        a = np.remainder(a, count)
    elif mode == "clip":
        a = np.clip(a, 0, count - 1)
    arrays = [trace.traced(choices[number]) for number in range(count)]
    result = arrays[-1]
    for number in range(count - 2, -1, -1):
        result = np.where(np.equal(a, number), arrays[number], result)
    shape = np.broadcast_shapes(a.shape, *(each.shape for each in arrays))
    return unboxed(np.broadcast_to(result, shape))


@implements(np.select, checked=True)
def _select(trace: Trace, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    kinds = (each if type(each) in (int, float, complex) else np.asarray(each).dtype for each in (*choicelist, default))
    dtype = np.result_type(*kinds)
    result = np.asarray(default).astype(dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, np.asarray(choice).astype(dtype), result)
    shapes = (np.shape(each) for each in (*condlist, *choicelist))
    return np.broadcast_to(result, np.broadcast_shapes(*shapes))


@implements(np.compress)
def _compress(trace: Trace, condition: Any, a: Any, axis: Any = None) -> Any:
    a, condition = trace.traced(a), trace.traced(condition)
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    return np.take(a, np.nonzero(condition)[0], axis=axis)


@implements(np.put_along_axis, checked=True)
def _put_along_axis(trace: Trace, arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    arr, axis = (arr.flat, 0) if axis is None else (arr, axes_of(axis, arr.ndim)[0])
    indices = trace.traced(indices)
    places: list[Any] = [
        np.arange(extent).reshape((-1,) + (1,) * (arr.ndim - 1 - at)) for at, extent in enumerate(arr.shape)
    ]
    places[axis] = indices
    arr[tuple(places)] = values


@implements(np.put)
def _put(trace: Trace, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    v = np.ravel(trace.traced(v))
    ind = np.ravel(np.asarray(ind))
    if mode != "raise":
        ind = np.remainder(ind, a.size) if mode == "wrap" else np.clip(ind, 0, a.size - 1)
    a.flat[ind] = v[np.arange(ind.size) % v.size]


@implements(np.place)
def _place(trace: Trace, arr: Any, mask: Any, vals: Any) -> None:
    vals = np.ravel(trace.traced(vals))
    if vals.size == 1 and not trace.varies(vals) and np.shape(mask) == arr.shape:
        # Whatever the number of places is. One that varies may have a slope without bound where nothing is written.
        overwrite(arr, np.where(mask, vals[0], arr).astype(arr.dtype, copy=False))
        return
    mask = trace.traced(mask)
    if vals.size and vals.size == arr.size == mask.size and bool(np.all(mask)):
        overwrite(arr, np.reshape(vals, arr.shape).astype(arr.dtype, copy=False))
        return
    if not bool(np.any(mask)):
        return
    places = np.nonzero(np.ravel(mask))[0]
    arr.flat[places] = vals[np.arange(places.size) % vals.size]


@implements(np.putmask)
def _putmask(trace: Trace, a: Any, mask: Any, values: Any) -> None:
    values = np.ravel(trace.traced(values))
    repeated = np.reshape(values[np.arange(a.size) % values.size], a.shape)
    overwrite(a, np.where(mask, repeated, a).astype(a.dtype, copy=False))


@implements(np.fill_diagonal, checked=True)
def _fill_diagonal(trace: Trace, a: Any, val: Any, wrap: bool = False) -> None:
    val = np.ravel(trace.traced(val))
    step = 1 + sum(int(np.prod(a.shape[axis:])) for axis in range(1, a.ndim))
    end = a.size if wrap or a.ndim > 2 else min(a.size, a.shape[1] * a.shape[1])
    places = np.arange(0, end, step)
    a.flat[places] = val[np.arange(len(places)) % val.size]


@implements(np.lexsort)
def _lexsort(trace: Trace, keys: Any, axis: int = -1) -> Any:
    keys = [np.atleast_1d(trace.traced(keys[number])) for number in range(len(keys))]
    axis = axes_of(axis, keys[0].ndim)[0]
    order = np.argsort(keys[0], axis=axis, kind="stable")
    for key in keys[1:]:
        step = np.argsort(np.take_along_axis(key, order, axis), axis=axis, kind="stable")
        order = np.take_along_axis(order, step, axis)
    return order


# What is sorted is partitioned at every position.
implements(np.argpartition)(lambda trace, a, kth, axis=-1, kind=None, order=None: np.argsort(a, axis=axis))
implements(np.partition)(lambda trace, a, kth, axis=-1, kind=None, order=None: np.sort(a, axis=axis))


@implements(np.searchsorted)
def _searchsorted(trace: Trace, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a = trace.traced(a)
    if sorter is not None:
        a = a[np.asarray(sorter)]
    return trace.apply(primitive("searchsorted"), (a, v), {"side": side})


@implements(np.unique)
def _unique(
    trace: Trace,
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    ar = trace.traced(ar)
    if not sorted and ar.dtype.kind == "c":
        raise trace.refuse("np.unique with sorted=False leaves the order of complex numbers open.", "Leave sorted out.")
    shape = ar.shape if axis is None else None
    if axis is None:
        rows, axis = np.reshape(ar, (ar.size, 1)), 0
        lines = np.ravel(ar)
    else:
        axis = axes_of(axis, ar.ndim)[0]
        lines = np.moveaxis(ar, axis, 0)
        rows = np.reshape(lines, (lines.shape[0], math.prod(lines.shape[1:])))
    order = np.lexsort(tuple(rows[:, column] for column in reversed(range(rows.shape[1]))))
    first = _first_of_run(rows[order], equal_nan and shape is not None)
    places = np.nonzero(first)[0]
    index = order[places]
    results = [np.moveaxis(lines[index], 0, axis)]
    if return_index:
        results.append(index)
    if return_inverse:
        inverse = (np.cumsum(first) - 1)[np.argsort(order, kind="stable")]
        results.append(inverse if shape is None else np.reshape(inverse, shape))
    if return_counts:
        results.append(np.diff(np.concatenate([places, np.array([lines.shape[0]])])))
    return results[0] if len(results) == 1 else tuple(results)


def _first_of_run(rows: Any, equal_nan: bool) -> Any:
    """Which of the sorted rows differ from the one before."""
    later, earlier = rows[1:], rows[:-1]
    differs = np.not_equal(later, earlier)
    if equal_nan and rows.dtype.kind in "fc":
        differs = np.logical_and(differs, np.logical_not(np.logical_and(np.isnan(later), np.isnan(earlier))))
    start = np.ones(min(rows.shape[0], 1), bool)
    return np.concatenate([start, np.any(differs, axis=1)])


@implements(np.isin)
def _isin(
    trace: Trace, element: Any, test_elements: Any, assume_unique: Any = False, invert: Any = False, **_: Any
) -> Any:
    element, tests = trace.traced(element), np.sort(np.ravel(trace.traced(test_elements)))
    if not tests.size:
        found = np.zeros(element.shape, bool)
    else:
        places = np.minimum(np.searchsorted(tests, element), tests.size - 1)
        found = np.equal(tests[places], element)
    return np.logical_not(found) if invert else found


@implements(np.setdiff1d)
def _setdiff1d(trace: Trace, ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    values = np.ravel(trace.traced(ar1)) if assume_unique else np.unique(trace.traced(ar1))
    return values[np.isin(values, ar2, invert=True)]


@implements(np.array_equiv)
def _array_equiv(trace: Trace, a1: Any, a2: Any) -> bool:
    a1, a2 = trace.traced(a1), trace.traced(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool(np.all(np.equal(a1, a2)))
