"""Methods of ufuncs, and ufuncs that are recorded as several primitives."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy

from yota.ir.catalog import primitive
from yota.tracing.implementations import implements
from yota.tracing.methods import is_tracer
from yota.tracing.views import normalise, overwrite

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}


@implements("reduce")
def _reduce(
    trace: Trace, ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **rest: Any
) -> Any:
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is None:
        raise trace.refuse(f"np.{ufunc.__name__}.reduce is not supported on traced values.", "Write it as a loop.")
    if dtype is not None:
        array = array.astype(dtype)
    return getattr(np, name)(trace.traced(array), axis=axis, keepdims=keepdims, **rest)


@implements("accumulate")
def _accumulate(trace: Trace, ufunc: Any, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    name = _ACCUMULATIONS.get(ufunc.__name__)
    if name is not None:
        return getattr(np, name)(array, axis=axis, dtype=dtype)
    rows = np.moveaxis(array, axis, 0)
    results = [rows[0]]
    for row in rows[1:]:
        results.append(ufunc(results[-1], row))
    return np.moveaxis(np.stack(results), 0, axis)


@implements("outer")
def _outer(trace: Trace, ufunc: Any, a: Any, b: Any, **rest: Any) -> Any:
    a, b = trace.traced(a), trace.traced(b)
    return ufunc(np.reshape(a, a.shape + (1,) * b.ndim), b, **rest)


@implements("at")
def _at(trace: Trace, ufunc: Any, array: Any, indices: Any, values: Any = None) -> None:
    if not is_tracer(array):
        raise trace.refuse(
            f"np.{ufunc.__name__}.at would write a traced value into a plain array, where its derivative is lost.",
            "Make the array inside the function with np.zeros.",
        )
    if ufunc not in (numpy.add, numpy.subtract):
        raise trace.refuse(f"np.{ufunc.__name__}.at is not supported on traced values.", "Use np.add.at, or a loop.")
    entries, arrays = normalise(trace, indices, array.shape)
    target = trace.apply(primitive("getitem"), (array, *arrays), {"index": entries}).shape
    piece = np.broadcast_to(values if ufunc is numpy.add else np.negative(values), target)
    added = trace.apply(primitive("scatter"), (piece, *arrays), {"shape": array.shape, "indices": (entries,)})
    overwrite(array, array + added)


@implements("reduceat")
def _reduceat(trace: Trace, ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    rows = np.moveaxis(array, axis, 0)
    bounds = [*(int(index) for index in indices), rows.shape[0]]
    pieces = [
        ufunc.reduce(rows[low:high], axis=0) if low < high else rows[low] for low, high in itertools.pairwise(bounds)
    ]
    return np.moveaxis(np.stack(pieces), 0, axis)


@implements(numpy.divmod)
def _divmod(trace: Trace, x1: Any, x2: Any) -> Any:
    return np.floor_divide(x1, x2), np.remainder(x1, x2)


@implements(numpy.modf)
def _modf(trace: Trace, x: Any) -> Any:
    whole = np.trunc(x)
    return x - whole, whole


@implements(numpy.clip)
def _clip(
    trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None, **rest: Any
) -> Any:
    low = a_min if min is None else min
    high = a_max if max is None else max
    result = trace.traced(a)
    if low is not None:
        result = np.maximum(result, low)
    return result if high is None else np.minimum(result, high)


@implements(numpy.round, numpy.around)
def _round(trace: Trace, a: Any, decimals: int = 0) -> Any:
    return np.rint(a) if not decimals else np.rint(a * 10.0**decimals) / 10.0**decimals


@implements(numpy.real)
def _real(trace: Trace, val: Any) -> Any:
    return trace.apply(primitive("real"), (val,)) if val.dtype.kind == "c" else val


@implements(numpy.imag)
def _imag(trace: Trace, val: Any) -> Any:
    return trace.apply(primitive("imag"), (val,)) if val.dtype.kind == "c" else np.zeros_like(val)


@implements(numpy.angle)
def _angle(trace: Trace, z: Any, deg: bool = False) -> Any:
    angle = np.arctan2(np.imag(z), np.real(z))
    return np.degrees(angle) if deg else angle
