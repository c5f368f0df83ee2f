"""NumPy's creation functions while a trace runs; they do not dispatch on what they are given."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from yota.ir.catalog import primitive
from yota.tracing.aliasing import settled
from yota.tracing.captures import acceptable, frozen
from yota.tracing.implementations import BY_KIND
from yota.tracing.memory import laid_out
from yota.tracing.methods import is_traced, is_tracer, of_object, transformed
from yota.tracing.repeated_calls import repeated
from yota.tracing.untyped import np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_original_array = np.array
_PLAIN = (np.ndarray, list, tuple, float, int, complex, bool)
_ORDERS = {"asfortranarray": "F", "ascontiguousarray": "C"}


def array(trace: Trace, value: Any, dtype: Any = None, **keywords: Any) -> Any:
    """``np.array(value)`` with traced values anywhere inside of nested lists."""
    if type(value) in (list, tuple) and dtype is None and not keywords:
        return repeated(trace, array, (value,), {}, lambda: _stacked(trace, value))
    result = as_array(trace, value).copy() if is_tracer(value) and not value.ndim else _stacked(trace, value)
    if dtype is not None and np.dtype(dtype) != result.dtype:
        if np.dtype(dtype).kind == "O":
            raise trace.refuse("an object array cannot hold traced values.", "Leave dtype=object out.")
        result = result.astype(dtype)
    return _with_axes(result, keywords.get("ndmin", 0))


BY_KIND[array] = 1


def _with_axes(value: Any, ndmin: int) -> Any:
    missing = ndmin - value.ndim
    return np.reshape(value, (1,) * missing + value.shape) if missing > 0 else value


def as_array(trace: Trace, value: Any) -> Any:
    """A traced value itself, or an array without axes of the number that it is."""
    plain = value._value()
    if isinstance(plain, np.ndarray):
        return value
    plain = np.asarray(plain)
    return trace.rearranged(trace.lift(value), plain)


def _stacked(trace: Trace, value: Any) -> Any:
    if is_tracer(value):
        return value.copy("K") if value.ndim else value
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        if not any(map(is_traced, value)):
            # Nobody else has this array, so that what it holds need not be compared at each call.
            return trace.constant(frozen(acceptable(_original_array(value))))
        rows = [item._plain() if is_tracer(item) else _stacked(trace, item) for item in value]
        if len({row.shape for row in rows}) > 1:
            raise ValueError("setting an array element with a sequence: the rows have different shapes")
        return laid_out(trace.apply(primitive("stack"), rows, {"axis": 0}), "C")
    return trace.traced(value)


def _from_value(name: str, copies: bool) -> Callable[..., Any]:
    original = getattr(np, name)

    def create(trace: Trace, value: Any, dtype: Any = None, *args: Any, **keywords: Any) -> Any:
        mode = keywords.get("copy", copies)
        keeps_class = name == "asanyarray" or keywords.get("subok")
        if is_tracer(value) and value._plain() is not value:
            plain = value._plain()
            found = create(trace, plain, dtype, *args, **keywords)
            return found if not keeps_class else value if found is plain else value._like(found)
        if is_tracer(value) and getattr(mode, "value", mode) is not True:
            if keywords.get("copy") is False and dtype is not None and np.dtype(dtype) != value.dtype:
                raise ValueError("Unable to avoid copy while creating an array as requested.")
            value = as_array(trace, value)
            kept = value if dtype is None else value.astype(dtype, copy=False)
            kept = laid_out(kept, _ORDERS.get(name, keywords.get("order", args[0] if args else None)))
            return _with_axes(kept, 1 if name in _ORDERS else keywords.get("ndmin", 0))
        if is_traced(value):
            keywords.pop("copy", None)
            found = array(trace, value, dtype, **keywords)
            return laid_out(found, _ORDERS.get(name, keywords.get("order"))) if keywords or name in _ORDERS else found
        if type(value) in _PLAIN:
            return fresh(trace, original(value, dtype, *args, **keywords))
        found = of_object(trace, value, lambda held: original(held, dtype, *args, **keywords))
        return create(trace, found, dtype, *args, **keywords) if is_tracer(found) else fresh(trace, found)

    return create


def fresh(trace: Trace, value: Any) -> Any:
    """A new array as a constant of the tape that can be written to; integer arrays stay plain if they may."""
    kinds = "fciub" if trace.wide else "fciu" if trace.keeps else "fc"
    if type(value) is not np.ndarray or value.dtype.kind not in kinds:
        return value
    found = trace.constant(value)
    trace.unnamed.add(found._variable)
    return found


def filled(trace: Trace, value: Any) -> Any:
    """A new array of which all elements are equal: those that are alike are one constant of the tape."""
    if type(value) is not np.ndarray or not value.size or value.dtype.hasobject:
        return fresh(trace, value)
    key = value.dtype, value.shape, value.strides, value.flat[0].tobytes()
    known = trace.filled.get(key)
    if known is not None:
        return trace.wrap(known, trace.values[known])
    found = fresh(trace, value)
    if is_tracer(found):
        trace.filled[key] = found._variable
    return found


_MADE_BY = {"empty": "zeros", "empty_like": "zeros_like"}
"""What memory happens to hold is no part of a function: it would be another tape each time."""


def _filled(name: str) -> Callable[..., Any]:
    original = getattr(np, _MADE_BY.get(name, name))
    made = fresh if name in ("eye", "identity", "tri") else filled

    def create(trace: Trace, *args: Any, **keywords: Any) -> Any:
        args, keywords = plain_sizes((args, keywords))
        return made(trace, original(*args, **keywords))

    return create


def plain_sizes(value: Any) -> Any:
    """``value``, or what it holds, with plain ints in place of traced ones."""

    def plain(each: Any) -> Any:
        return int(each) if is_tracer(each) and each.dtype.kind in "iu" and not each.ndim else each

    return transformed(value, plain)


def _full(trace: Trace, shape: Any, fill_value: Any, dtype: Any = None, **keywords: Any) -> Any:
    shape = plain_sizes(shape)
    if not is_traced(fill_value):
        made = fresh if np.ndim(fill_value) else filled
        return made(trace, numpy_full(shape, fill_value, dtype, **keywords))
    value = trace.traced(fill_value)
    return np.broadcast_to(value if dtype is None else value.astype(dtype), shape).copy()


def _full_like(
    trace: Trace, a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    sizes = np.shape(a) if shape is None else shape
    kind = getattr(a, "dtype", None) or np.asarray(a).dtype
    if subok and is_tracer(a) and isinstance(a, np.ma.MaskedArray):
        raise trace.refuse("numpy.full_like of a masked array is not recorded.", "Add to numpy.zeros_like(...).")
    return _full(trace, sizes, fill_value, kind if dtype is None else dtype)


def _like(name: str) -> Callable[..., Any]:
    original = getattr(np, _MADE_BY.get(name, name))

    def create(trace: Trace, a: Any, *args: Any, **keywords: Any) -> Any:
        # NumPy looks at the memory order of the prototype, so it must see the concrete array.
        a = array(trace, a) if is_traced(a) and not is_tracer(a) else a
        found = filled(trace, original(a._value() if is_tracer(a) else a, *args, **keywords))
        return a._like(found) if is_tracer(a) and a._plain() is not a and keywords.get("subok", True) else found

    return create


def _arange(trace: Trace, *args: Any, **keywords: Any) -> Any:
    if not any(is_traced(each) and each.dtype.kind == "f" for each in (*args, *keywords.values())):
        return fresh(trace, numpy_arange(*plain_sizes(args), **plain_sizes(keywords)))
    given = {**dict(zip(("start", "stop", "step", "dtype"), args, strict=False)), **keywords}
    start, stop, step = given.get("start", 0), given.get("stop"), given.get("step", 1)
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    count = int(np.ceil((stop - start) / step))
    kind = numpy_arange(*(trace.traced(each)._value() for each in (start, stop, step)), given.get("dtype")).dtype
    return fresh(trace, (start + step * numpy_arange(max(count, 0))).astype(kind))


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
        result = np.concatenate([result[:-1], np.broadcast_to(stop.astype(result.dtype), result.shape[1:])[None]])
    result = np.moveaxis(result if dtype is None else result.astype(dtype), 0, axis)
    return (result, step) if retstep else result


def _vectorize(trace: Trace, pyfunc: Any, *args: Any, **keywords: Any) -> Any:
    plain = numpy_vectorize(pyfunc, *args, **keywords)

    def call(*operands: Any, **named: Any) -> Any:
        if keywords.get("signature") or not any(map(is_traced, (*operands, *named.values()))):
            return numpy_call_vectorized(plain, *operands, **named)
        given: dict[Any, Any] = {**dict(enumerate(operands)), **named}
        excluded = set(keywords.get("excluded") or ())
        spread = [key for key, value in given.items() if key not in excluded and not _is_object(value)]
        arrays = np.broadcast_arrays(*(given[key] for key in spread))
        results = []
        for items in zip(*(np.ravel(each) for each in arrays), strict=True):
            one = {**given, **dict(zip(spread, items, strict=True))}
            results.append(pyfunc(*(one[place] for place in range(len(operands))), **{key: one[key] for key in named}))
        if results and isinstance(results[0], tuple):
            return tuple(np.reshape(array(trace, each), arrays[0].shape) for each in zip(*results, strict=True))
        return np.reshape(array(trace, results), arrays[0].shape)

    return call


def _is_object(value: Any) -> bool:
    """Whether a value has no elements for `numpy.vectorize`, such as the ``self`` of a method."""
    return not is_traced(value) and not isinstance(value, _PLAIN) and _original_array(value).shape == ()


def vectorized(trace: Trace, made: Any, *args: Any, **keywords: Any) -> Any:
    """A call of what `numpy.vectorize` made before the trace began."""
    given = {"excluded": made.excluded, "signature": made.signature}
    return _vectorize(trace, made.pyfunc, **given)(*args, **keywords)


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


def _require(trace: Trace, a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    if not is_tracer(a):
        return numpy_require(a, dtype, requirements)
    wanted = {str(each)[:1].upper() for each in requirements or ()}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    result = a if dtype is None else a.astype(dtype, copy=False)
    result = laid_out(result, "F" if "F" in wanted else "C" if "C" in wanted else "K")
    is_lent = "O" in wanted and result._base is not None
    return result.copy("A") if is_lent or ("W" in wanted and not result.flags.writeable) else result


def _as_laid_out(original: Any, form: Callable[..., Any], trace: Trace, *args: Any, **keywords: Any) -> Any:
    return settled(trace, original, args, keywords, form(trace, *args, **keywords))


numpy_full, numpy_arange, numpy_vectorize = np.full, np.arange, np.vectorize
numpy_call_vectorized: Any = np.vectorize.__call__
numpy_require: Any = np.require
numpy_fromiter, numpy_frompyfunc = np.fromiter, np.frompyfunc
numpy_linspace: Any = np.linspace
numpy_piecewise: Any = np.piecewise

CREATION: dict[str, Callable[..., Any]] = {
    "array": _from_value("array", True),
    **{
        name: _from_value(name, False)
        for name in ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite")
    },
    **{name: _filled(name) for name in ("zeros", "ones", "empty", "eye", "identity", "tri")},
    **{name: _like(name) for name in ("zeros_like", "ones_like", "empty_like")},
    "full": functools.partial(_as_laid_out, np.full, _full),
    "full_like": functools.partial(_as_laid_out, np.full_like, _full_like),
    "arange": _arange,
    "linspace": functools.partial(_as_laid_out, np.linspace, _linspace),
    "vectorize": _vectorize,
    "frompyfunc": _frompyfunc,
    "fromiter": _fromiter,
    "require": _require,
    "piecewise": lambda trace, x, *args, **keywords: numpy_piecewise(trace.traced(x), *args, **keywords),
}
"""Recorded forms by name in the numpy namespace; each takes the trace first."""


def _grid(original: Callable[..., Any], trace: Trace, *args: Any, **keywords: Any) -> Any:
    args, keywords = plain_sizes((args, keywords))
    found = original(*args, **keywords)
    if not trace.keeps:
        return found
    return transformed(found, lambda each: fresh(trace, each))


GRIDS: tuple[tuple[Any, str, Callable[..., Any]], ...] = tuple(
    (owner, name, functools.partial(_grid, getattr(owner, name)))
    for owner, names in (
        (np, ("hanning", "hamming", "blackman", "bartlett", "triu_indices", "tril_indices")),
        (np.fft, ("fftfreq", "rfftfreq")),
    )
    for name in names
)
"""``(module, name, recorded form)`` of functions of sizes; what they give is plain unless a trace keeps it."""
