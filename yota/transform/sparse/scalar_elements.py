"""Elements of arrays on scalar tapes: reads, and assembly of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType

_LARGEST_DENSE = 64


def elements(tape: Tape, variables: int | Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
    """Variables of the elements of a result in C order, and its shape; several numbers become a vector."""
    if isinstance(variables, int):
        return _assembled(tape, variables), tape.types[variables].shape
    if len(variables) == 1:
        return elements(tape, variables[0])
    if any(tape.types[variable].shape for variable in variables):
        raise DifferentiationError(
            f"{tape.name} returned several arrays; a Jacobian is of one. Join them (np.concatenate), or "
            "differentiate each by itself."
        )
    return list(variables), (len(variables),)


def _assembled(tape: Tape, variable: int) -> list[int]:
    """Variables of the elements of an output of scalar code; 0 for zero elements."""
    op = tape.definitions().get(variable)
    if not tape.types[variable].shape:
        return [variable]
    if op is None:
        return [0] * tape.types[variable].size
    if op.access == AccessMap.RESHAPE:
        return _assembled(tape, op.operands[0])
    if op.access == AccessMap.SCATTER:
        found = [0] * tape.types[variable].size
        for index, operand in zip(op.keyword("indices"), op.operands, strict=True):
            found[int(np.ravel_multi_index(index, tape.types[variable].shape))] = operand
        return found
    return list(op.operands)


def elements_read(tape: Tape, by: int) -> dict[int, int]:
    """Variables that read elements of an input, and their positions in C order."""
    shape = tape.types[by].shape
    if not shape:
        return {by: 0}
    return {
        op.result: int(np.ravel_multi_index(op.keyword("index"), shape))
        for op in tape.ops
        if op.access == AccessMap.READ and op.operands[0] == by
    }


def dtype_of(tape: Tape, rows: Sequence[int], by: int) -> np.dtype[Any]:
    """The dtype of the argument, or a complex dtype if the result is complex."""
    dtype = tape.types[by].dtype
    complex_result = any(tape.types[row].is_complex for row in rows if row)
    return np.result_type(dtype, np.complex64) if complex_result and dtype.kind == "f" else dtype


def listed(builder: TapeBuilder, places: Mapping[tuple[int, int], int], dtype: np.dtype[Any]) -> int:
    """Entries in order of position, as a vector."""
    if not places:
        return builder.constant(np.zeros(0, dtype))
    operands = [_cast(builder, places[place], dtype) for place in sorted(places)]
    return builder.emit(primitive("stack"), operands, {"axis": 0})


def dense(builder: TapeBuilder, places: Mapping[tuple[int, int], int], size: tuple[int, int], type: TensorType) -> int:
    """All entries as an array of ``type``."""
    shape, dtype = type.shape, type.dtype
    if not shape:
        return _cast(builder, places[0, 0], dtype) if places else builder.constant(dtype.type(0))
    if not places:
        return builder.constant(np.zeros(shape, dtype))
    count = size[0] * size[1]
    if count > _LARGEST_DENSE and 2 * len(places) < count:
        order = sorted(places)
        numbers = [np.unravel_index(row * size[1] + column, shape) for row, column in order]
        indices = tuple(tuple(int(each) for each in number) for number in numbers)
        operands = [_cast(builder, places[place], dtype) for place in order]
        return builder.emit(primitive("scatter"), operands, {"shape": shape, "indices": indices})
    zero = builder.constant(dtype.type(0))
    entries = [
        _cast(builder, places[row, column], dtype) if (row, column) in places else zero
        for row in range(size[0])
        for column in range(size[1])
    ]
    found = builder.emit(primitive("stack"), entries, {"axis": 0})
    return found if len(shape) == 1 else builder.emit(primitive("reshape"), (found,), {"shape": shape})


def _cast(builder: TapeBuilder, variable: int, dtype: np.dtype[Any]) -> int:
    type = builder.types[variable]
    if type.dtype == dtype and not type.weak:
        return variable
    value = builder.constants.get(variable)
    if value is not None and not isinstance(value, np.ndarray):
        return builder.constant(dtype.type(value))
    return builder.emit(primitive("astype"), (variable,), {"dtype": dtype}, TensorType(dtype))
