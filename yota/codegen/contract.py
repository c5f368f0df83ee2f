"""Rewrites two-operand einsums as matrix products where they are that, so that BLAS does the work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from yota.ir.catalog import primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType

__all__ = ["as_products"]


def as_products(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with einsums as transposes, reshapes and ``matmul``; those that compute ``kept`` stay."""
    if not any(op.access == AccessMap.EINSUM and len(op.operands) == 2 for op in tape.ops):
        return tape
    builder = tape.builder()
    builder.ops = []
    looks = _Looks(builder)
    renamed: dict[int, int] = {}
    for op in tape.ops:
        operands = tuple(renamed.get(operand, operand) for operand in op.operands)
        found = None
        if op.access == AccessMap.EINSUM and len(operands) == 2 and op.result not in kept:
            builder.location = op.location
            found = _product(looks, str(op.keyword("subscripts")), operands, tape.types[op.result])
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


class _Looks:
    """Other looks at variables, each taken once."""

    def __init__(self, builder: TapeBuilder) -> None:
        self.builder = builder
        self._taken: dict[tuple[str, int, tuple[int, ...]], int] = {}

    def __call__(self, name: str, operand: int, **static: tuple[int, ...]) -> int:
        ((_, value),) = static.items()
        key = name, operand, value
        if key not in self._taken:
            self._taken[key] = self.builder.emit(primitive(name), (operand,), static)
        return self._taken[key]


def _product(looks: _Looks, subscripts: str, operands: tuple[int, ...], type: TensorType) -> int | None:
    """The variable of the same product by ``matmul``; None if it is none, or if BLAS could not do it."""
    builder = looks.builder
    left, right, result = subscripts.replace("->", ",").split(",")
    if result[-1:] not in right and not set(right) <= set(left):
        # What is side by side in the result shall be so in the product.
        left, right, operands = right, left, operands[::-1]
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
            _in_line(looks, each, letters, summed) for each, letters in zip(operands, (left, right), strict=True)
        )
        return builder.emit(primitive("matmul"), vectors, ())
    if batch and not (_in_blas_order(left, batch) and _in_blas_order(right, batch)):
        return None
    first = _arranged(looks, operands[0], left, (batch, rows, summed), extents)
    second = _arranged(looks, operands[1], right, (batch, summed, columns), extents)
    found = builder.emit(primitive("matmul"), (first, second), ())
    shape = tuple(extents[letter] for letter in (*batch, *rows, *columns))
    if builder.types[found].shape != shape:
        found = looks("reshape", found, shape=shape)
    order = [*batch, *rows, *columns]
    return _transposed(looks, found, "".join(order), list(result))


def _in_line(looks: _Looks, operand: int, letters: str, order: list[str]) -> int:
    """All elements of the operand as one axis."""
    found = _transposed(looks, operand, letters, order)
    type = looks.builder.types[found]
    return found if type.ndim == 1 else looks("reshape", found, shape=(type.size,))


def _in_blas_order(letters: str, batch: list[str]) -> bool:
    """Whether the last axis in memory (if the operand lies in order) is not one that counts the products."""
    return letters[-1] not in batch


def _arranged(
    looks: _Looks,
    operand: int,
    letters: str,
    groups: tuple[list[str], list[str], list[str]],
    extents: Mapping[str, int],
) -> int:
    """The operand with the axes of each group side by side; the last two groups as one axis each."""
    batch, one, two = groups
    found = _transposed(looks, operand, letters, [*batch, *one, *two])
    shape = (
        *(extents[letter] for letter in batch),
        math.prod(extents[letter] for letter in one),
        math.prod(extents[letter] for letter in two),
    )
    return found if looks.builder.types[found].shape == shape else looks("reshape", found, shape=shape)


def _transposed(looks: _Looks, operand: int, letters: str, order: list[str]) -> int:
    axes = tuple(letters.index(letter) for letter in order)
    if axes == tuple(range(len(axes))):
        return operand
    return looks("transpose", operand, axes=axes)
