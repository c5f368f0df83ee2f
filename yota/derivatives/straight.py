"""Jacobians and Hessians of scalar code as one straight-line tape: values and entries, without structural zeros."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.autodiff.accumulate import partials
from yota.autodiff.reverse import gradient_tape
from yota.codegen.symbolic import best, optimise
from yota.compilation.factored import several_forms, unrolled
from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.passes import dce, pipeline
from yota.rules.registry import Registry

__all__ = ["Entries", "Wanted", "straight_line"]

_MOST_OPERATIONS = 20_000
"""Operations up to which a Jacobian is straight-line code."""
_MOST_ENTRIES = 4096
"""Entries, not counting zeros, up to which a Jacobian is straight-line code."""
_SMALL = 600
"""Ops up to which more than one form of a function is differentiated and the best is taken."""
_WORTH_A_LOOK = 1.3
_LARGEST_DENSE = 64


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to compute.

    Parameters
    ----------
    order
        1 for the Jacobian, 2 for the Hessian.
    with_value
        Whether the value comes too, and with a Hessian the gradient.
    sparse
        Whether entries come as a vector, without the zeros.
    """

    order: int = 1
    with_value: bool = False
    sparse: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """A tape whose last output is a matrix of partial derivatives, or, if that is sparse, a vector of its entries.

    Parameters
    ----------
    tape
        The tape; the outputs before are the value and the gradient, where they are wanted.
    shape
        Shape of the matrix: all elements of the result by all elements of the argument.
    rows, columns
        Where the entries of a sparse matrix are, row by row.
    """

    tape: Tape
    shape: tuple[int, int]
    rows: Sequence[int] | np.ndarray = ()
    columns: Sequence[int] | np.ndarray = ()


def straight_line(tape: Tape, leaf: int, wanted: Wanted, registry: Registry) -> Entries | None:
    """The matrix that is ``wanted`` of ``tape`` by its input number ``leaf``; None where that is no scalar code."""
    plain = unrolled(tape)
    if plain is None:
        return None
    found = [entries for form in _forms(plain) for entries in _derived(form, leaf, wanted, registry)]
    if not found:
        return None
    values = int(wanted.with_value)
    chosen = found[best([entries.tape for entries in found], values=values)]
    return replace(chosen, tape=optimise(chosen.tape, values=values))


def _forms(tape: Tape) -> Iterator[Tape]:
    """The tape with its arithmetic factored, which makes its derivatives short too, and, if it is small, as it is."""
    found = list(several_forms(tape))
    if len(tape) <= _SMALL and tape not in found:
        found.append(tape)
    yield from found


def _derived(tape: Tape, leaf: int, wanted: Wanted, registry: Registry) -> Iterator[Entries]:
    """The entries from one form of the tape, its variables eliminated in each order that looks good."""
    if wanted.order == 2:
        slope = _slope(tape, leaf, registry)
        if slope is None:
            return
        tape = slope
    by = tape.inputs[leaf].variable
    rows, shape = _elements(tape, tape.outputs[-1] if wanted.order == 2 else tape.outputs)
    columns = _read(tape, by)
    builder = tape.builder()
    steps = partials(builder, tape, rows, list(columns), registry)
    if steps is None or min(steps.works.values()) > _MOST_OPERATIONS:
        return
    outputs = _values(builder, tape, rows, shape) if wanted.with_value else []
    dtype = _dtype(tape, rows, by)
    size = len(rows), tape.types[by].size
    whole = (*shape, *tape.types[by].shape)
    for order in _orders(steps.works):
        places = _places(steps.entries(order), columns, symmetric=wanted.order == 2)
        if len(places) > _MOST_ENTRIES:
            return
        matrix = _vector(builder, places, dtype) if wanted.sparse else _matrix(builder, places, size, whole, dtype)
        made = pipeline.run(dce.run(builder.finish([*outputs, matrix])))
        filled = sorted(places)
        yield Entries(made, size, tuple([row for row, _ in filled]), tuple([column for _, column in filled]))


def _orders(works: Mapping[str, int]) -> list[str]:
    """Orders of elimination whose result is worth a look; the number of products is not all that counts."""
    least = min(works.values())
    most = least if least > _SMALL else _WORTH_A_LOOK * least
    found = {work: order for order, work in reversed(list(works.items())) if work <= most}
    return list(found.values())


def _places(
    entries: Sequence[dict[int, int]], columns: dict[int, int], *, symmetric: bool
) -> dict[tuple[int, int], int]:
    """Entries by row and column; of a symmetric matrix one half, twice."""
    found = {(row, columns[variable]): entry for row, each in enumerate(entries) for variable, entry in each.items()}
    if not symmetric:
        return found
    return {place: found.get((min(place), max(place)), entry) for place, entry in found.items()}


def _slope(tape: Tape, leaf: int, registry: Registry) -> Tape | None:
    """The value of a scalar tape and its gradient, as scalar ops."""
    by = tape.inputs[leaf].variable
    if tape.types[by].is_complex:
        raise DifferentiationError(
            f"{tape.name} has a complex argument {tape.inputs[leaf].name}; a Hessian needs a real one. "
            "Take the real and the imaginary part as two arguments."
        )
    found = gradient_tape(tape, [by], registry)
    if found.variables[0] is None:
        builder = found.tape.builder()
        type = tape.types[by]
        zeros = np.zeros(type.shape, type.dtype)
        found_tape = builder.finish([tape.outputs[0], builder.constant(zeros if type.shape else zeros[()])])
    else:
        found_tape = found.tape
    return unrolled(found_tape)


def _elements(tape: Tape, variables: int | Sequence[int]) -> tuple[list[int], tuple[int, ...]]:
    """Variables of the elements of a result, in C order, and its shape; numbers that were returned are a vector."""
    if isinstance(variables, int):
        return _assembled(tape, variables), tape.types[variables].shape
    if len(variables) == 1:
        return _elements(tape, variables[0])
    if any(tape.types[variable].shape for variable in variables):
        raise DifferentiationError(
            f"{tape.name} returned several arrays; a Jacobian is of one. Join them (np.concatenate), or "
            "differentiate each by itself."
        )
    return list(variables), (len(variables),)


def _assembled(tape: Tape, variable: int) -> list[int]:
    """Variables of the elements of an output of scalar code; 0 for those that are zero."""
    op = tape.definitions().get(variable)
    if not tape.types[variable].shape:
        return [variable]
    if op is None:
        return [0] * tape.types[variable].size
    if op.name == "reshape":
        return _assembled(tape, op.operands[0])
    if op.name == "scatter":
        found = [0] * tape.types[variable].size
        for index, operand in zip(op.keyword("indices"), op.operands, strict=True):
            found[int(np.ravel_multi_index(index, tape.types[variable].shape))] = operand
        return found
    return list(op.operands)


def _read(tape: Tape, by: int) -> dict[int, int]:
    """Variables that are elements of an input, and their positions in C order."""
    shape = tape.types[by].shape
    if not shape:
        return {by: 0}
    return {
        op.result: int(np.ravel_multi_index(op.keyword("index"), shape))
        for op in tape.ops
        if op.name == "getitem" and op.operands[0] == by
    }


def _values(builder: TapeBuilder, tape: Tape, rows: Sequence[int], shape: tuple[int, ...]) -> list[int]:
    """The outputs of the tape; several numbers as one vector."""
    if len(tape.outputs) == len(rows) > 1 and shape == (len(rows),):
        return [builder.emit(primitive("stack"), rows, {"axis": 0})]
    return list(tape.outputs)


def _dtype(tape: Tape, rows: Sequence[int], by: int) -> np.dtype[Any]:
    """That of the argument, complex if the result is."""
    dtype = tape.types[by].dtype
    complex_result = any(tape.types[row].is_complex for row in rows if row)
    return np.result_type(dtype, np.complex64) if complex_result and dtype.kind == "f" else dtype


def _vector(builder: TapeBuilder, places: dict[tuple[int, int], int], dtype: np.dtype[Any]) -> int:
    if not places:
        return builder.constant(np.zeros(0, dtype))
    operands = [_cast(builder, places[place], dtype) for place in sorted(places)]
    return builder.emit(primitive("stack"), operands, {"axis": 0})


def _matrix(
    builder: TapeBuilder,
    places: dict[tuple[int, int], int],
    size: tuple[int, int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> int:
    """All entries in an array of ``shape``."""
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
