"""Choosing elements, writing at chosen places, and sets of values; how many values differ is a guard."""

from __future__ import annotations

import math
from typing import Any

from yota.ir.catalog import primitive
from yota.rules.language.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.methods import is_tracer, unboxed
from yota.tracing.numpy.index_selection import along_axis
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import overwrite


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


@implements(np.select)
def _select(trace: Trace, condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    result = trace.traced(default)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = np.where(condition, choice, result)
    shapes = (np.shape(each) for each in (*condlist, *choicelist))
    return np.broadcast_to(result, np.broadcast_shapes(*shapes))


@implements(np.compress)
def _compress(trace: Trace, condition: Any, a: Any, axis: Any = None) -> Any:
    a, condition = trace.traced(a), trace.traced(condition)
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    return np.take(a, np.nonzero(condition)[0], axis=axis)


def _owned(trace: Trace, array: Any, name: str) -> Any:
    if not is_tracer(array):
        raise trace.refuse(
            f"np.{name} would write a traced value into a plain array, where its derivative is lost.",
            "Make the array inside the function with np.zeros or .copy().",
        )
    return array


@implements(np.put_along_axis)
def _put_along_axis(trace: Trace, arr: Any, indices: Any, values: Any, axis: Any = -1) -> None:
    arr = _owned(trace, arr, "put_along_axis")
    if axis is None:
        arr, axis = arr.flat, 0
    arr[along_axis(arr.shape, trace.traced(indices), axes_of(axis, arr.ndim)[0])] = values


@implements(np.put)
def _put(trace: Trace, a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    a, v = _owned(trace, a, "put"), np.ravel(trace.traced(v))
    ind = np.ravel(np.asarray(ind))
    if mode != "raise":
        ind = np.remainder(ind, a.size) if mode == "wrap" else np.clip(ind, 0, a.size - 1)
    a.flat[ind] = v[np.arange(ind.size) % v.size]


@implements(np.place)
def _place(trace: Trace, arr: Any, mask: Any, vals: Any) -> None:
    arr, vals = _owned(trace, arr, "place"), np.ravel(trace.traced(vals))
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
    if not vals.size:
        raise ValueError("Cannot insert from an empty array!")
    places = np.nonzero(np.ravel(mask))[0]
    arr.flat[places] = vals[np.arange(places.size) % vals.size]


@implements(np.putmask)
def _putmask(trace: Trace, a: Any, mask: Any, values: Any) -> None:
    a, values = _owned(trace, a, "putmask"), np.ravel(trace.traced(values))
    repeated = np.reshape(values[np.arange(a.size) % values.size], a.shape)
    overwrite(a, np.where(mask, repeated, a).astype(a.dtype, copy=False))


@implements(np.fill_diagonal)
def _fill_diagonal(trace: Trace, a: Any, val: Any, wrap: bool = False) -> None:
    a, val = _owned(trace, a, "fill_diagonal"), np.ravel(trace.traced(val))
    if a.ndim < 2 or (a.ndim > 2 and len(set(a.shape)) != 1):
        raise ValueError("All dimensions of input must be of equal length")
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


@implements(np.argpartition)
def _argpartition(trace: Trace, a: Any, kth: Any, axis: Any = -1, kind: Any = None, order: Any = None) -> Any:
    # What is sorted is partitioned at every position.
    return np.argsort(a, axis=axis)


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
    trace: Trace,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
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
