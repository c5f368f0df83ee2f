"""Indices as NumPy takes them, and single elements of traced arrays, which loops read and write by the thousand."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.semantics import Positions
from yota.tracing.conversions import to_int
from yota.tracing.current import current
from yota.tracing.methods import is_tracer

if TYPE_CHECKING:
    from yota.ir.tape import TapeBuilder
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer


def normalise(trace: Trace, index: Any, shape: tuple[int, ...]) -> tuple[Index, list[Any]]:
    """``index`` as NumPy takes it for an array of ``shape``, and its integer arrays; masks become positions."""
    entries: list[Any] = []
    for entry in index if isinstance(index, tuple) else (index,):
        entries.extend(_positions(trace, entry))
    used = sum([entry is not None and entry is not Ellipsis for entry in entries])
    if used > len(shape):
        raise IndexError(f"too many indices for array: array is {len(shape)}-dimensional, but {used} were indexed")
    fill = [slice(None)] * (len(shape) - used)
    for position, entry in enumerate(entries):
        if entry is Ellipsis:
            entries[position : position + 1] = fill
            break
    else:
        entries += fill
    # An element shares no memory with the array; a row is a view of a known place.
    is_element = all(isinstance(entry, int) or (is_tracer(entry) and not entry.ndim) for entry in entries)
    result: list[Any] = []
    arrays: list[Any] = []
    axis = 0
    for entry in entries:
        if entry is None:
            result.append(NEWAXIS)
            continue
        extent = shape[axis]
        if isinstance(entry, slice):
            if trace.sizes is not None:
                trace.sizes.slice(entry, extent)
            result.append(_slice(entry, extent))
        elif isinstance(entry, int) and not is_tracer(entry):
            result.append(_bounded(entry, extent, axis))
        elif is_tracer(entry) and not entry.ndim and not (is_element or (trace.trips and trace.varies(entry))):
            result.append(_bounded(to_int(entry, operator.index), extent, axis))
        else:
            result.append(GATHER)
            arrays.append(_wrapped(entry, extent))
        axis += 1
    return tuple(result), arrays


def _positions(trace: Trace, entry: Any) -> list[Any]:
    if entry is None or entry is Ellipsis or type(entry) in (slice, int):
        return [entry]
    if is_tracer(entry) and not entry.ndim and entry.dtype.kind in "iu":
        return [entry]
    if isinstance(entry, (bool, np.bool_)):
        raise trace.refuse("an index that is a single boolean is not supported.", "Use an `if`, or np.where.")
    if isinstance(entry, (int, np.integer)):
        return [int(entry)]
    if not (is_tracer(entry) or isinstance(entry, np.ndarray)):
        entry = np.asarray(entry) if np.size(entry) else np.asarray(entry, dtype=np.intp)
    if entry.dtype.kind == "b":
        return list(np.nonzero(entry))
    if entry.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    return [int(entry)] if not entry.ndim else [entry]


def _slice(entry: slice, extent: int) -> Slice:
    """``entry`` by `slice.indices`; no bound is negative, for NumPy would count that from the end once more."""
    start, stop, step = entry.indices(extent)
    if start < 0:
        return Slice(0, 0, step)
    if step > 0:
        return Slice(min(start, extent), max(stop, min(start, extent)), step)
    return Slice(start, None if stop < 0 else stop, step)


def _bounded(entry: int, extent: int, axis: int) -> int:
    if not -extent <= entry < extent:
        raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {extent}")
    return entry + extent if entry < 0 else entry


def _wrapped(entry: Any, extent: int) -> Any:
    if is_tracer(entry) and not entry.ndim:
        found = _between(entry)
        if found is not None and found[1] < 0:
            return entry + extent
        # Other calls, or other trips of the loop, may count from the end.
        is_ahead = _is_position(entry) or (found is not None and found[0] >= 0)
    else:
        is_array = isinstance(entry, np.ndarray) and entry.size
        is_ahead = not is_array or _is_position(entry) or not _has_negative(entry)
    # What lies before the first element stays as it is, for NumPy to refuse.
    return entry if is_ahead else np.where((entry < 0) & (entry >= -extent), entry + extent, entry)


def _between(entry: Tracer) -> tuple[int, int] | None:
    """The least and the greatest value that an index has in the trips of a loop, if it moves with their number."""
    trace = entry._trace
    found = affine(trace.builder, entry._current()) if trace.trips else None
    if found is None:
        return None
    ends = found[1], found[0] * (trace.trips - 1) + found[1]
    return min(ends), max(ends)


def _has_negative(entry: Any) -> bool:
    """Whether some numbers count from the end; of a traced array that is a guard."""
    if not is_tracer(entry):
        return bool(entry.min() < 0)
    guards = entry._trace.builder.guards
    known = len(guards)
    found = not entry.min() >= 0
    guards[known:] = [replace(guard, signs=True) for guard in guards[known:]]
    return found


_Affine: TypeAlias = tuple[int, int]
_COMBINED: dict[str, Callable[[_Affine, _Affine], _Affine | None]] = {
    "add": lambda left, right: (left[0] + right[0], left[1] + right[1]),
    "subtract": lambda left, right: (left[0] - right[0], left[1] - right[1]),
    "multiply": lambda left, right: (
        None if left[0] and right[0] else (left[0] * right[1] + right[0] * left[1], left[1] * right[1])
    ),
}


def affine(builder: TapeBuilder, variable: int) -> _Affine | None:
    """``scale, shift`` of an index ``scale * number + shift``, by the number of the trip, the first input of a body."""
    if builder.inputs and variable == builder.inputs[0].variable:
        return 1, 0
    op = builder.definition(variable)
    combined = None if op is None else _COMBINED.get(op.name)
    if op is None or combined is None:
        return None
    left, right = (_affine_operand(builder, each) for each in op.operands)
    return None if left is None or right is None else combined(left, right)


def only_counts(builder: TapeBuilder, variable: int) -> bool:
    """Whether a number depends on the number of the trip alone."""
    if variable in builder.constants or variable == builder.inputs[0].variable:
        return True
    op = builder.definition(variable)
    return op is not None and all(only_counts(builder, each) for each in op.operands)


def _affine_operand(builder: TapeBuilder, variable: int) -> _Affine | None:
    value = builder.constants.get(variable)
    if value is None:
        return affine(builder, variable)
    return (0, int(value)) if type(value) is int or isinstance(value, np.integer) else None


def _is_position(entry: Any) -> bool:
    """Whether a traced index was found as a position, and so needs no guard against numbers below 0."""
    op = entry._trace.builder.definition(entry._current()) if is_tracer(entry) else None
    return op is not None and op.semantics.positions != Positions.NONE


_SETITEM = primitive("setitem")
_ALONE = 3
"""References to a value of a trace that nothing else holds: the trace, a variable here, and the argument of a count."""


def are_whole(index: tuple[Any, ...]) -> bool:
    """Whether an index is of whole numbers, one at least."""
    return bool(index) and all(type(entry) is int for entry in index)


def places(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers as an index without those from the end."""
    if type(index) is int:
        return (index if index >= 0 else index + shape[0],)
    return tuple([entry if entry >= 0 else entry + extent for entry, extent in zip(index, shape, strict=False)])


def is_written(tracer: Tracer, index: Any, value: Any) -> bool:
    """Whether ``tracer[index] = value`` was done in place here, an element of the array that was written last."""
    trace, variable = tracer._trace, tracer._variable
    array = trace.values[variable]
    if not (type(index) is int or (type(index) is tuple and are_whole(index))):
        return False
    found = places(index, array.shape)
    is_alone = (
        current() is trace
        and not trace.finished
        and not trace.branch
        and not trace.is_constant(variable)
        and id(tracer) not in trace.reshaped
        # None of its views is alive.
        and sys.getrefcount(array) <= _ALONE
    )
    is_there = len(found) == array.ndim and all(
        0 <= place < extent for place, extent in zip(found, array.shape, strict=True)
    )
    if not (is_alone and is_there):
        return False
    element = trace.lift(value)
    type_ = trace.builder.types[element]
    is_number = type_.weak and type_.dtype.kind in "if" and array.dtype.kind == "f"
    if type_.shape or not (is_number or type_.dtype == array.dtype):
        return False
    array[found] = trace.values[element]
    written: Tracer = trace.record(_SETITEM, (variable, element), (("index", found),), array, 3)
    del trace.values[variable]
    tracer._variable = written._variable
    return True
