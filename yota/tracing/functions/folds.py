"""The methods reduce, accumulate and at of ufuncs that are more than a sum: in few ops where the ufunc allows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.ir.catalog import primitive
from yota.rules.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.indices import normalise
from yota.tracing.methods import is_tracer
from yota.tracing.views import overwrite

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
_ASSOCIATIVE = frozenset({"maximum", "minimum", "fmax", "fmin", "logaddexp", "logaddexp2", "logical_and", "logical_or"})


@implements("reduce")
def _reduce(
    trace: Trace,
    ufunc: Any,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    array = trace.traced(array) if dtype is None else trace.traced(array).astype(dtype)
    if not array.ndim and axis in (0, -1):
        # A number has no axis; NumPy's reductions take it along its first all the same.
        axis = None
    name = _REDUCTIONS.get(ufunc.__name__)
    if name is not None:
        rest = {} if initial is None else {"initial": initial}
        return getattr(np, name)(array, axis=axis, keepdims=keepdims, where=where, **rest)
    form = _FORMS.get(ufunc.__name__)
    if form is not None:
        result = form(array, axis, keepdims, where)
        return result if initial is None else ufunc(initial, result)
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise trace.refuse(f"np.{ufunc.__name__}.reduce is not supported on traced values.", "Write it as a loop.")
    if where is not True:
        raise trace.refuse(f"np.{ufunc.__name__}.reduce with where= is not supported.", "Select the elements first.")
    return _in_turn(ufunc, array, axis, keepdims, initial)


def _in_turn(ufunc: Any, array: Any, axis: Any, keepdims: bool, initial: Any) -> Any:
    """One op for each element along the axis."""
    axes = axes_of(axis, array.ndim)
    if not axes:
        return array if initial is None else ufunc(initial, array)
    if len(axes) != 1:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    rows = np.moveaxis(array, axes[0], 0)
    if not len(rows) and initial is None:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no identity")
    result = rows[0] if initial is None else np.broadcast_to(initial, rows.shape[1:])
    for row in rows[1:] if initial is None else rows:
        result = ufunc(result, row)
    return np.expand_dims(result, axes[0]) if keepdims else result


def _log_sum(power: Callable[[Any], Any], log: Callable[[Any], Any]) -> Any:
    def reduce(array: Any, axis: Any, keepdims: bool, where: Any) -> Any:
        """Shifted by the largest exponent (Blanchard, Higham and Higham 2021, IMA J. Numer. Anal. 41, section 1)."""
        if where is not True:
            array = np.where(where, array, numpy.asarray(-math.inf, array.dtype))
        axes = axes_of(axis, array.ndim)
        largest = np.max(array, axis=axes, keepdims=True, initial=-math.inf)
        shift = np.where(np.isfinite(largest), largest, numpy.zeros((), array.dtype))
        total = log(np.sum(power(array - shift), axis=axes, keepdims=True)) + shift
        return total if keepdims else np.squeeze(total, axis=axes)

    return reduce


def _skipping_nan(name: str, fill: float) -> Any:
    def reduce(array: Any, axis: Any, keepdims: bool, where: Any) -> Any:
        return getattr(np, f"nan{name}")(array, axis=axis, keepdims=keepdims, **_chosen(where, fill))

    return reduce


def _chosen(where: Any, fill: float) -> dict[str, Any]:
    return {} if where is True else {"where": where, "initial": fill}


def _negated(array: Any, axis: Any, keepdims: bool, where: Any) -> Any:
    """The exclusive or of truths: whether an odd number of them hold."""
    found = np.not_equal(array, 0)
    if where is not True:
        found = np.logical_and(found, where)
    return np.equal(np.sum(found, axis=axis, keepdims=keepdims) % 2, 1)


_FORMS: dict[str, Any] = {
    "logaddexp": _log_sum(np.exp, np.log),
    "logaddexp2": _log_sum(np.exp2, np.log2),
    "fmax": _skipping_nan("max", -math.inf),
    "fmin": _skipping_nan("min", math.inf),
    "logical_xor": _negated,
}


@implements("accumulate")
def _accumulate(trace: Trace, ufunc: Any, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    array = trace.traced(array)
    name = _ACCUMULATIONS.get(ufunc.__name__)
    if name is not None:
        return getattr(np, name)(array, axis=axis, dtype=dtype)
    array = array if dtype is None else array.astype(dtype)
    rows = np.moveaxis(array, axis, 0)
    if not len(rows):
        return ufunc(array, array)
    if ufunc.__name__ in _ASSOCIATIVE:
        return np.moveaxis(_doubling(ufunc, rows), 0, axis)
    results = [rows[0]]
    for row in rows[1:]:
        results.append(ufunc(results[-1], row))
    return np.moveaxis(np.stack(results), 0, axis)


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
    if ufunc in (numpy.add, numpy.subtract):
        _add_at(trace, array, indices, operand[0] if ufunc is numpy.add else np.negative(operand[0]))
        return
    targets = numpy.arange(array.size).reshape(array.shape)[_constant(trace, ufunc, indices)]
    places = targets.ravel()
    order = numpy.argsort(places, kind="stable")
    starts = numpy.searchsorted(places[order], places[order])
    turns = numpy.empty(len(places), int)
    turns[order] = numpy.arange(len(places)) - starts
    values = [np.ravel(np.broadcast_to(each, targets.shape)) for each in operand]
    flat = np.ravel(array).copy()
    for turn in range(turns.max(initial=-1) + 1):
        chosen = numpy.flatnonzero(turns == turn)
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
    overwrite(array, array + added)
