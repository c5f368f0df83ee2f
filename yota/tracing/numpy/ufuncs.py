"""Methods of ufuncs, in few ops where the ufunc allows it, and ufuncs that are recorded as several primitives."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from yota.tracing.aliasing import plainly
from yota.tracing.forms import Trace, axes_of, implements, is_tracer, np, overwrite, primitive, turned
from yota.tracing.implementations import OF_COMPLEX
from yota.tracing.indices import normalise
from yota.tracing.numpy.reductions import as_dtype
from yota.tracing.views import view

_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_ACCUMULATIONS = {"add": "cumsum", "multiply": "cumprod"}
_ASSOCIATIVE = frozenset({"maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "logical_and", "logical_or"})


@implements("reduce")
def _reduce(
    trace: Trace, ufunc: Any, array: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **rest: Any
) -> Any:
    where, initial = rest.pop("where", True), rest.get("initial")
    array = trace.traced(array) if dtype is None else trace.traced(array).astype(dtype)
    if not array.ndim and axis in (0, -1):
        # A number has no axis; NumPy's reductions take it along its first all the same.
        axis = None
    rest = {} if initial is None else rest
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is not None:
        return getattr(np, name)(array, axis=axis, keepdims=keepdims, where=where, **rest)
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise trace.refuse(f"np.{ufunc.__name__}.reduce is not supported on traced values.", "Write it as a loop.")
    wanted = plainly(trace, ufunc.reduce, (array,), {"axis": axis, "keepdims": keepdims, "where": where, **rest})
    if not array.size:
        return np.broadcast_to(_cast(trace, wanted if initial is None else initial, wanted.dtype), wanted.shape)
    array = _cast(trace, array, wanted.dtype)
    start = None if initial is None else as_dtype(trace, initial, wanted.dtype)
    if where is not True and ufunc in (np.fmax, np.fmin):
        array, where = np.where(where, array, start), True
    form = _FORMS.get(ufunc.__name__)
    if form is not None and (where is not True or array.size > 2 * wanted.size):
        result = form(array, axis, keepdims, where)
        return _cast(trace, result if initial is None else ufunc(start, result), wanted.dtype)
    if where is not True:
        raise trace.refuse(f"np.{ufunc.__name__}.reduce with where= is not supported.", "Select the elements first.")
    return _in_turn(ufunc, array, axis, keepdims, start)


def _cast(trace: Trace, value: Any, dtype: Any) -> Any:
    return trace.traced(value).astype(dtype, copy=False)


def _in_turn(ufunc: Any, array: Any, axis: Any, keepdims: bool, initial: Any) -> Any:
    """One op for each element along the axes; NumPy begins with the identity, if there is one."""
    axes = sorted(axes_of(axis, array.ndim), reverse=True)
    single = all(array.shape[axis] == 1 for axis in axes)
    if initial is None and ufunc.identity is not None and single:
        array = ufunc(np.asarray(ufunc.identity, array.dtype), array)
    elif initial is not None and not axes:
        array = ufunc(initial, array)
    for each in axes:
        rows = np.moveaxis(array, each, 0)
        result = rows[0] if initial is None else ufunc(initial, rows[0])
        for row in rows[1:]:
            result = ufunc(result, row)
        array, initial = np.expand_dims(result, each) if keepdims else result, None
    return array


def _log_sum(
    power: Callable[[Any], Any], log: Callable[[Any], Any], array: Any, axis: Any, keepdims: bool, where: Any
) -> Any:
    """Shifted by the largest exponent (Blanchard, Higham and Higham 2021, IMA J. Numer. Anal. 41, section 1)."""
    if where is not True:
        array = np.where(where, array, np.asarray(-math.inf, array.dtype))
    axes = axes_of(axis, array.ndim)
    zero, one = np.array([0, 1], array.dtype)
    largest = array._trace.still(np.max(array, axis=axes, keepdims=True, initial=-math.inf))
    total = np.sum(power(array - np.where(np.isfinite(largest), largest, zero)), axis=axes, keepdims=True)
    result = log(np.where(largest == -math.inf, one, total)) + np.where(largest < math.inf, largest, zero)
    return result if keepdims else np.squeeze(result, axis=axes)


def _negated(array: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """The exclusive or of truths: whether an odd number of them hold."""
    found = np.not_equal(array, 0)
    if where is not True:
        found = np.logical_and(found, where)
    return np.equal(np.sum(found, axis=axis, keepdims=keepdims) % 2, 1)


_FORMS: dict[str, Any] = {
    "logaddexp": functools.partial(_log_sum, np.exp, np.log),
    "logaddexp2": functools.partial(_log_sum, np.exp2, np.log2),
    "fmax": lambda array, axis, keepdims, where: np.nanmax(array, axis=axis, keepdims=keepdims),
    "fmin": lambda array, axis, keepdims, where: np.nanmin(array, axis=axis, keepdims=keepdims),
    "logical_xor": _negated,
}


@implements("accumulate")
def _accumulate(trace: Trace, ufunc: Any, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    array = trace.traced(array)
    if not array.ndim:
        raise TypeError("cannot accumulate on a scalar")
    name = _ACCUMULATIONS.get(ufunc.__name__)
    if name is not None:
        return getattr(np, name)(array, axis=axis, dtype=dtype)
    wanted = plainly(trace, ufunc.accumulate, (array,), {"axis": axis, "dtype": dtype})
    rows = np.moveaxis(_cast(trace, array, wanted.dtype), axis, 0)
    if ufunc.__name__ in _ASSOCIATIVE:
        return np.moveaxis(_doubling(ufunc, rows), 0, axis)
    results = [rows[0]] if len(rows) else []
    for row in rows[1:]:
        results.append(ufunc(results[-1], row))
    return np.moveaxis(np.stack(results), 0, axis) if results else _cast(trace, wanted, wanted.dtype)


_MANY_SEGMENTS = 8
"""From so many segments on, operations on all of them take the place of a slice for each."""


@implements("reduceat")
def _reduceat(trace: Trace, ufunc: Any, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    places = [int(index) for index in indices]
    wanted = plainly(trace, ufunc.reduceat, (array, places), {"axis": axis, "dtype": dtype})
    if not wanted.size:
        return trace.traced(wanted)
    rows = np.moveaxis(_cast(trace, array, wanted.dtype), axis, 0)
    return np.moveaxis(_reduced(ufunc, rows, np.array(places), wanted.dtype), 0, axis)


def _reduced(ufunc: Any, rows: Any, starts: Any, dtype: Any) -> Any:
    """The reduction of each segment of rows; a segment that ends before its start is the row there."""
    lengths = np.maximum(np.diff(starts, append=len(rows)), 1)
    longest, count = lengths.max(), len(starts)
    if count >= _MANY_SEGMENTS and (lengths == longest).all() and (np.diff(starts) == longest).all():
        whole = rows[starts[0] : starts[0] + count * longest]
        return ufunc.reduce(whole.reshape(count, longest, *rows.shape[1:]), axis=1, dtype=dtype)
    if count >= _MANY_SEGMENTS and ufunc is np.add:
        places = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        found = np.zeros_like(rows, shape=(count, *rows.shape[1:]))
        np.add.at(found, np.repeat(np.arange(count), lengths), rows[places])
        return found
    ends = starts + lengths
    pieces = [
        ufunc.reduce(rows[low:high], axis=0, dtype=dtype) if high - low > 1 else rows[low]
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    return np.stack(pieces)


def _doubling(ufunc: Any, rows: Any) -> Any:
    """Running results over windows of 1, 2, 4, ... rows (Hillis and Steele 1986, CACM 29, data parallel scans)."""
    step = 1
    while step < len(rows):
        rows = np.concatenate([rows[:step], ufunc(rows[:-step], rows[step:])])
        step *= 2
    return rows


@implements("at")
def _at(trace: Trace, ufunc: Any, array: Any, indices: Any, *operand: Any) -> None:
    """Rounds of assignments at positions that differ: a position that repeats has its turn in a later round."""
    if not is_tracer(array):
        raise trace.refuse(
            f"np.{ufunc.__name__}.at would write a traced value into a plain array, where its derivative is lost.",
            "Make the array inside the function with np.zeros.",
        )
    # NumPy's error, if the ufunc does not take such numbers.
    ufunc(*(np.zeros(0, trace.traced(each).dtype) for each in (array, *operand)))
    if ufunc in (np.add, np.subtract):
        _add_at(trace, array, indices, operand[0] if ufunc is np.add else np.negative(operand[0]))
        return
    targets = np.arange(array.size).reshape(array.shape)[_constant(trace, ufunc, indices)]
    places = targets.ravel()
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], places[order])
    turns = np.empty(len(places), int)
    turns[order] = np.arange(len(places)) - starts
    values = [np.ravel(np.broadcast_to(each, targets.shape)) for each in operand]
    flat = np.ravel(array).copy()
    for turn in range(turns.max(initial=-1) + 1):
        chosen = np.flatnonzero(turns == turn)
        flat[places[chosen]] = ufunc(flat[places[chosen]], *(each[chosen] for each in values))
    overwrite(array, np.reshape(flat, array.shape))


def _constant(trace: Trace, ufunc: Any, indices: Any) -> Any:
    """Indices as plain arrays."""
    entries = indices if isinstance(indices, tuple) else (indices,)
    if any(is_tracer(entry) and not trace.is_constant(trace.lift(entry)) for entry in entries):
        raise trace.refuse(
            f"np.{ufunc.__name__}.at at positions that depend on the arguments is not supported.",
            "Use np.add.at, or a loop.",
        )
    plain = tuple(trace.values[trace.lift(entry)] if is_tracer(entry) else entry for entry in entries)
    return plain if isinstance(indices, tuple) else plain[0]


def _add_at(trace: Trace, array: Any, indices: Any, values: Any) -> None:
    entries, arrays = normalise(trace, indices, array.shape)
    target = trace.apply(primitive("getitem"), (array, *arrays), {"index": entries}).shape
    piece = np.broadcast_to(values, target)
    added = trace.apply(primitive("scatter"), (piece, *arrays), {"shape": array.shape, "indices": (entries,)})
    total, before = array + added, trace.lift(array)
    known = trace.values[before] if trace.is_constant(before) else None
    if array.dtype.kind in "fc" and (known is None or (known + 0).tobytes() != known.tobytes()):
        # Where nothing is added a negative zero keeps its sign.
        counted = (trace.lift(np.ones(target)), *arrays)
        times = trace.apply(primitive("scatter"), counted, {"shape": array.shape, "indices": (entries,)})
        total = np.where(times > 0, total, array)
    overwrite(array, total)


@implements("outer")
def _outer(trace: Trace, ufunc: Any, a: Any, b: Any, **rest: Any) -> Any:
    # Python numbers count as arrays here.
    a, b = (trace.traced(np.asarray(each)) for each in (a, b))
    return ufunc(np.reshape(a, a.shape + (1,) * b.ndim), b, **rest)


implements(np.divmod)(lambda trace, x1, x2: (np.floor_divide(x1, x2), np.remainder(x1, x2)))


@implements(np.modf)
def _modf(trace: Trace, x: Any) -> Any:
    x = _cast(trace, x, plainly(trace, np.modf, (x,), {})[0].dtype)
    whole = np.trunc(x)
    # The remainder has the sign of x where it is 0, as a difference has not.
    nothing, unit = np.asarray([0, 1], whole.dtype)
    return np.where(np.isinf(x), np.copysign(nothing, x), np.fmod(x, unit)), whole


@implements(np.ldexp)
def _ldexp(trace: Trace, x1: Any, x2: Any) -> Any:
    x1, x2 = trace.traced(x1), np.asarray(x2)
    if x2.dtype.kind not in "biu":
        raise TypeError("ufunc 'ldexp' not supported for the input types: the exponents are no whole numbers")
    if not is_tracer(x2) and np.all(np.abs(x2) < np.finfo(x1.dtype).maxexp):
        return x1 * np.exp2(np.astype(x2, x1.dtype))
    # In three steps, since the whole power may be out of reach where the result is not.
    part = x2 // 3
    for exponent in (part, part, x2 - 2 * part):
        x1 = x1 * np.exp2(np.astype(exponent, x1.dtype))
    return x1


@implements(np.clip)
def _clip(
    trace: Trace, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None, **rest: Any
) -> Any:
    low = a_min if min is None else min
    high = a_max if max is None else max
    result = trace.traced(a)
    if low is not None and high is not None and not np.ndim(low) and not np.ndim(high):
        # Of zeros of both signs NumPy keeps that of the array, and these two their second operand.
        return np.minimum(high, np.maximum(low, result))
    if low is not None:
        result = np.maximum(result, low)
    return result if high is None else np.minimum(result, high)


@implements(np.round, np.around)
def _round(trace: Trace, a: Any, decimals: int = 0) -> Any:
    if not decimals:
        return np.rint(a)
    scale = 10.0 ** abs(decimals)
    return np.rint(a * scale) / scale if decimals > 0 else np.rint(a / scale) * scale


def _sign(trace: Trace, z: Any) -> Any:
    """Of a complex number its direction, which changes along the circle."""
    z = np.where(np.isinf(np.absolute(z)), _towards_infinity(z), z)
    size = np.absolute(z)
    nothing = np.equal(size, 0)
    return np.where(nothing, z.dtype.type(0), z / np.where(nothing, size.dtype.type(1), size))


def _towards_infinity(z: Any) -> Any:
    """The direction of a part that is infinite; there is none where both are."""
    real, imaginary = (np.where(np.isinf(each), np.sign(each), 0) for each in (np.real(z), np.imag(z)))
    return np.where(np.logical_and(real, imaginary), np.nan, real + 1j * imaginary).astype(z.dtype)


OF_COMPLEX[np.sign] = _sign
OF_COMPLEX[np.rint] = lambda trace, z: np.rint(np.real(z)) + turned(np.rint(np.imag(z)), z.dtype)


implements(np.real)(lambda trace, val: view(val, "real", {}) if val.dtype.kind == "c" else val)
implements(np.imag)(lambda trace, val: view(val, "imag", {}) if val.dtype.kind == "c" else np.zeros_like(val))
