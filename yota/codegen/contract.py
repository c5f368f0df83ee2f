"""Rewrites two-operand einsums as matrix products where they are that, so that BLAS does the work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from yota.ir.catalog import primitive
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType

__all__ = ["as_products"]


def as_products(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with einsums as transposes, reshapes and ``matmul``; those that compute ``kept`` stay."""
    if not any(op.name == "einsum" and len(op.operands) == 2 for op in tape.ops):
        return tape
    builder = tape.builder()
    builder.ops = []
    renamed: dict[int, int] = {}
    for op in tape.ops:
        operands = tuple(renamed.get(operand, operand) for operand in op.operands)
        found = None
        if op.name == "einsum" and len(operands) == 2 and op.result not in kept:
            builder.location = op.location
            found = _product(builder, str(op.keyword("subscripts")), operands, tape.types[op.result])
        if found is None:
            builder.ops.append(Op(op.result, op.primitive, operands, op.static, op.location))
        else:
            renamed[op.result] = found
            if op.result in tape.names:
                builder.names[found] = tape.names[op.result]
    builder.guards = []
    for guard in tape.guards:
        builder.guards.append(replace(guard, variable=renamed.get(guard.variable, guard.variable)))
    return builder.finish(renamed.get(output, output) for output in tape.outputs)


def _product(builder: TapeBuilder, subscripts: str, operands: tuple[int, ...], type: TensorType) -> int | None:
    """The variable of the same product by ``matmul``; None if it is none, or if BLAS could not do it."""
    left, right, result = subscripts.replace("->", ",").split(",")
    one, two = (builder.types[operand] for operand in operands)
    if any(len(set(letters)) != len(letters) for letters in (left, right, result)):
        return None
    if one.dtype != type.dtype or two.dtype != type.dtype or type.dtype.kind not in "fc":
        return None
    if (set(left) ^ set(right)) - set(result) or not type.size:
        return None
    extents = dict(zip(left + right, one.shape + two.shape, strict=True))
    batch = [letter for letter in result if letter in left and letter in right]
    summed = [letter for letter in left if letter in right and letter not in result]
    rows = [letter for letter in result if letter not in right]
    columns = [letter for letter in result if letter not in left]
    if not summed:
        return None
    if not (batch or rows or columns):
        vectors = tuple(
            _in_line(builder, each, letters, summed) for each, letters in zip(operands, (left, right), strict=True)
        )
        return builder.emit(primitive("matmul"), vectors, ())
    if batch and not (_in_blas_order(left, batch) and _in_blas_order(right, batch)):
        return None
    first = _arranged(builder, operands[0], left, (batch, rows, summed), extents)
    second = _arranged(builder, operands[1], right, (batch, summed, columns), extents)
    found = builder.emit(primitive("matmul"), (first, second), ())
    shape = tuple(extents[letter] for letter in (*batch, *rows, *columns))
    if builder.types[found].shape != shape:
        found = builder.emit(primitive("reshape"), (found,), {"shape": shape})
    order = [*batch, *rows, *columns]
    return _transposed(builder, found, "".join(order), list(result))


def _in_line(builder: TapeBuilder, operand: int, letters: str, order: list[str]) -> int:
    """All elements of the operand as one axis."""
    found = _transposed(builder, operand, letters, order)
    type = builder.types[found]
    return found if type.ndim == 1 else builder.emit(primitive("reshape"), (found,), {"shape": (type.size,)})


def _in_blas_order(letters: str, batch: list[str]) -> bool:
    """Whether the last axis in memory (if the operand lies in order) is not one that counts the products."""
    return letters[-1] not in batch


def _arranged(
    builder: TapeBuilder,
    operand: int,
    letters: str,
    groups: tuple[list[str], list[str], list[str]],
    extents: Mapping[str, int],
) -> int:
    """The operand with the axes of each group side by side; the last two groups as one axis each."""
    batch, one, two = groups
    found = _transposed(builder, operand, letters, [*batch, *one, *two])
    shape = (
        *(extents[letter] for letter in batch),
        math.prod(extents[letter] for letter in one),
        math.prod(extents[letter] for letter in two),
    )
    if builder.types[found].shape == shape:
        return found
    return builder.emit(primitive("reshape"), (found,), {"shape": shape})


def _transposed(builder: TapeBuilder, operand: int, letters: str, order: list[str]) -> int:
    axes = tuple(letters.index(letter) for letter in order)
    if axes == tuple(range(len(axes))):
        return operand
    return builder.emit(primitive("transpose"), (operand,), {"axes": axes})
