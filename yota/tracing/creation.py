"""NumPy's creation functions while a trace runs; they do not dispatch on what they are given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.state import current

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["CREATION", "ITERATION", "array"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy
_original_array = numpy.array


def array(trace: Trace, value: Any, dtype: Any = None, **keywords: Any) -> Any:
    """``np.array(value)`` with traced values anywhere inside of nested lists."""
    result = _stacked(trace, value)
    if dtype is not None and np.dtype(dtype) != result.dtype:
        if np.dtype(dtype).kind == "O":
            raise trace.refuse("an object array cannot hold traced values.", "Leave dtype=object out.")
        result = result.astype(dtype)
    missing = keywords.get("ndmin", 0) - result.ndim
    return np.reshape(result, (1,) * missing + result.shape) if missing > 0 else result


def _stacked(trace: Trace, value: Any) -> Any:
    if is_tracer(value):
        return value.copy("K") if value.ndim else value
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        if not any(map(is_traced, value)):
            return trace.traced(_original_array(value))
        rows = [_stacked(trace, item) for item in value]
        if len({row.shape for row in rows}) > 1:
            raise ValueError("setting an array element with a sequence: the rows have different shapes")
        return np.stack(rows)
    return trace.traced(value)


def _from_value(name: str, copies: bool) -> Callable[..., Any]:
    original = getattr(numpy, name)

    def create(trace: Trace, value: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        if is_tracer(value) and not copies and keywords.get("copy") is not True:
            if not isinstance(value._value(), numpy.ndarray):
                value = trace.wrap(value._current(), numpy.asarray(value._value()))
            return value if dtype is None else value.astype(dtype, copy=False)
        if is_traced(value):
            keywords.pop("copy", None)
            return array(trace, value, dtype, **keywords)
        return fresh(trace, original(value, dtype, *args, **keywords))

    return create


def fresh(trace: Trace, value: Any) -> Any:
    """A new array as a constant of the tape that can be written to; integer arrays stay plain."""
    if type(value) is not numpy.ndarray or value.dtype.kind not in "fc":
        return value
    return trace.constant(value)


_MADE_BY = {"empty": "zeros", "empty_like": "zeros_like"}
"""What memory happens to hold is no part of a function: it would be another tape each time."""


def _filled(name: str) -> Callable[..., Any]:
    original = getattr(numpy, _MADE_BY.get(name, name))

    def create(trace: Trace, *args: Any, **keywords: Any) -> Any:
        args, keywords = _plain_sizes(args), {key: _plain_sizes(value) for key, value in keywords.items()}
        return fresh(trace, original(*args, **keywords))

    return create


def _plain_sizes(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_plain_sizes(item) for item in value)
    if is_tracer(value) and value.dtype.kind in "iu" and not value.ndim:
        return int(value)
    return value


def _full(trace: Trace, shape: Any, fill_value: Any, dtype: Any = None, **keywords: Any) -> Any:
    shape = _plain_sizes(shape)
    if not is_traced(fill_value):
        return fresh(trace, numpy_full(shape, fill_value, dtype, **keywords))
    value = trace.traced(fill_value)
    return np.broadcast_to(value if dtype is None else value.astype(dtype), shape).copy()


def _full_like(
    trace: Trace, a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    sizes = numpy.shape(a) if shape is None else shape
    kind = getattr(a, "dtype", None) or numpy.asarray(a).dtype
    return _full(trace, sizes, fill_value, kind if dtype is None else dtype)


def _like(name: str) -> Callable[..., Any]:
    original = getattr(numpy, _MADE_BY.get(name, name))

    def create(trace: Trace, a: Any, *args: Any, **keywords: Any) -> Any:
        # NumPy looks at the memory order of the prototype, so it must see the concrete array.
        return fresh(trace, original(a._value() if is_tracer(a) else a, *args, **keywords))

    return create


def _arange(trace: Trace, *args: Any, **keywords: Any) -> Any:
    if not any(is_traced(each) and each.dtype.kind == "f" for each in (*args, *keywords.values())):
        return _filled("arange")(trace, *args, **keywords)
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    count = int(np.ceil((stop - start) / step))
    return start + step * numpy_arange(max(count, 0))


def _linspace(
    trace: Trace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    num = int(num)
    if not (is_traced(start) or is_traced(stop)):
        result = numpy_linspace(start, stop, num, endpoint, retstep, dtype, axis)
        return result if retstep else fresh(trace, result)
    start, stop = trace.traced(start), trace.traced(stop)
    intervals = num - 1 if endpoint else num
    ramp = numpy_arange(num).reshape((num,) + (1,) * max(start.ndim, stop.ndim))
    step = (stop - start) / max(intervals, 1)
    ramp = ramp.astype(step.dtype)
    result = start + ramp * step
    if endpoint and num > 1:
        result = np.concatenate([result[:-1], np.broadcast_to(stop, result.shape[1:])[None]])
    result = np.moveaxis(result if dtype is None else result.astype(dtype), 0, axis)
    return (result, step) if retstep else result


def _vectorize(trace: Trace, pyfunc: Any, *args: Any, **keywords: Any) -> Any:
    plain = numpy_vectorize(pyfunc, *args, **keywords)

    def call(*operands: Any, **named: Any) -> Any:
        if named or keywords.get("signature") or not any(map(is_traced, operands)):
            return plain(*operands, **named)
        arrays = np.broadcast_arrays(*operands)
        flat = [np.ravel(each) for each in arrays]
        results = [pyfunc(*items) for items in zip(*flat, strict=True)]
        return np.reshape(array(trace, results), arrays[0].shape)

    return call


def _frompyfunc(trace: Trace, func: Any, nin: int, nout: int, **keywords: Any) -> Any:
    plain = numpy_frompyfunc(func, nin, nout, **keywords)
    recorded = _vectorize(trace, func)

    def call(*operands: Any, **named: Any) -> Any:
        if named or not any(map(is_traced, operands)):
            return plain(*operands, **named)
        if nout != 1:
            raise trace.refuse(f"a function of {nout} results from np.frompyfunc cannot be recorded.", "Write a loop.")
        return recorded(*operands)

    return call


def _fromiter(trace: Trace, iter: Any, dtype: Any, count: int = -1, **keywords: Any) -> Any:
    values = list(iter) if count < 0 else list(itertools.islice(iter, count))
    if is_traced(values):
        return array(trace, values, dtype)
    return fresh(trace, numpy_fromiter(values, dtype, count, **keywords))


def _ndenumerate(trace: Trace, arr: Any) -> Any:
    return ((index, arr[index]) for index in numpy.ndindex(numpy.shape(arr)))


def _nditer(trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.refuse("np.nditer cannot iterate over traced values.", "Use `for value in x.flat`, or np.ndenumerate.")


class Concatenator:
    """``np.r_`` and ``np.c_``: plain pieces as NumPy does it, traced ones by concatenation."""

    def __init__(self, original: Any, columns: bool) -> None:
        self.__wrapped__, self._columns = original, columns

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __getitem__(self, key: Any) -> Any:
        trace = current()
        pieces = key if isinstance(key, tuple) else (key,)
        if trace is None or not any(map(is_traced, pieces)):
            return self.__wrapped__[key]
        if any(isinstance(piece, str) for piece in pieces):
            raise trace.refuse("a string directive in np.r_ or np.c_ is not supported.", "Use np.concatenate.")
        parts = [
            np.atleast_1d(self.__wrapped__[piece] if isinstance(piece, slice) else np.asarray(piece))
            for piece in pieces
        ]
        if self._columns:
            return np.concatenate([each[:, None] if each.ndim == 1 else each for each in parts], axis=-1)
        return np.concatenate(parts)


numpy_full, numpy_arange, numpy_vectorize = numpy.full, numpy.arange, numpy.vectorize
numpy_fromiter, numpy_frompyfunc = numpy.fromiter, numpy.frompyfunc
numpy_linspace: Any = numpy.linspace

CREATION: dict[str, Callable[..., Any]] = {
    "array": _from_value("array", True),
    **{
        name: _from_value(name, False)
        for name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite")
    },
    **{name: _filled(name) for name in ("zeros", "ones", "empty", "eye", "identity", "tri")},
    **{name: _like(name) for name in ("zeros_like", "ones_like", "empty_like")},
    "full": _full,
    "full_like": _full_like,
    "arange": _arange,
    "linspace": _linspace,
    "vectorize": _vectorize,
    "frompyfunc": _frompyfunc,
    "fromiter": _fromiter,
}
"""Recorded forms by name in the numpy namespace; each takes the trace first."""

ITERATION: dict[str, Callable[..., Any]] = {"ndenumerate": _ndenumerate, "nditer": _nditer}
"""The same, for traced arguments alone."""
