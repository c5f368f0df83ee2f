"""Ops in forms that targets do faster: matrix products, additions in place, counts, writes, and indices with signs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize.dce import run as without_dead
from yota.optimize.rewrite import use_counts, with_ops
from yota.schedule.nests.index_patterns import index_arrays


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
    looks: _Looks, operand: int, letters: str, groups: Sequence[list[str]], extents: Mapping[str, int]
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


_SPARSE = 16
"""A scatter of slices is sparse if at most one element in so many is written."""


def as_deposits(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with ``a + scatter(...)`` as one op on ``a``; what computes ``kept`` stays."""
    scatters = _single_scatters(tape, kept)
    if not scatters:
        return tape
    ops: list[Op] = []
    gone: set[int] = set()
    for op in tape.ops:
        found = _deposit(tape, op, scatters) if op.result not in kept else None
        ops.append(found or op)
        if found is not None:
            gone.update(variable for variable in op.operands if variable in scatters and variable != found.operands[0])
    return with_ops(tape, [op for op in ops if op.result not in gone])


def _single_scatters(tape: Tape, kept: Collection[int]) -> dict[int, Op]:
    """Sparse scatters that one op reads, and nothing else."""
    reads, kept = use_counts(tape), {*kept, *tape.outputs, *(guard.variable for guard in tape.guards)}
    return {
        op.result: op
        for op in tape.ops
        if op.access == AccessMap.SCATTER
        and reads.get(op.result) == 1
        and op.result not in kept
        and _is_sparse(tape, op)
    }


def _is_sparse(tape: Tape, op: Op) -> bool:
    if any(GATHER in index for index in op.keyword("indices")):
        return True
    written = sum(tape.types[piece].size for piece in op.operands)
    return _SPARSE * int(written) <= int(tape.types[op.result].size)


def _deposit(tape: Tape, op: Op, scatters: dict[int, Op]) -> Op | None:
    if op.name != "add":
        return None
    for array, pieces in (op.operands, op.operands[::-1]):
        type = tape.types[op.result]
        if pieces in scatters and array != pieces and tape.types[array] == tape.types[pieces] == type:
            scatter = scatters[pieces]
            static = (("indices", scatter.keyword("indices")),)
            return Op(op.result, primitive("deposit"), (array, *scatter.operands), static, op.location)
    return None


_LEAST = 2048
"""Elements from which on a number is written at few places, rather than chosen at each."""


def as_counts(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with sums of masks as counts, and numbers at the places of extrema as scatters; ``kept`` stays."""
    known = tape.definitions()
    found = [op if op.result in kept else _count(tape, op, known) or _ties(tape, op, known) or op for op in tape.ops]
    if all(one is other for one, other in zip(found, tape.ops, strict=True)):
        return tape
    read = {*tape.outputs, *(guard.variable for guard in tape.guards), *(v for op in found for v in op.operands)}
    # Casts that nobody needs any more are gone.
    return with_ops(tape, [op for op in found if op.result in read])


def _count(tape: Tape, op: Op, known: dict[int, Op]) -> Op | None:
    """The sum of a whole mask that was cast to numbers is that of the mask itself, in the type of the numbers."""
    cast = (
        known.get(op.operands[0])
        if op.access == AccessMap.REDUCTION and op.semantics.fold == "add" and not tape.types[op.result].shape
        else None
    )
    if cast is None or not cast.semantics.casts or cast.keyword("dtype").kind != "f":
        return None
    mask = cast.operands[0]
    return replace(op, operands=cast.operands) if mask in known and tape.types[mask].dtype.kind == "b" else None


def _ties(tape: Tape, op: Op, known: dict[int, Op]) -> Op | None:
    """A number where an array has its extremum, and zero elsewhere."""
    if not op.semantics.chooses or int(tape.types[op.result].size) < _LEAST:
        return None
    mask, number, zero = op.operands
    value, type = tape.constants.get(zero), tape.types[op.result]
    if value is None or np.ndim(value) or value != 0 or np.signbit(value):
        return None
    if tape.types[number].dtype != type.dtype or tape.types[number].shape or tape.types[mask].shape != type.shape:
        return None
    if not _of_extremum(tape, mask, known):
        return None
    static = (("indices", ((GATHER,),)), ("shape", type.shape))
    return Op(op.result, primitive("scatter"), (number, mask), static, op.location)


def _of_extremum(tape: Tape, mask: int, known: dict[int, Op]) -> bool:
    """Whether ``mask`` tells where an array equals its own extremum over all axes: few places, as a rule."""
    equal = known.get(mask)
    if equal is None or equal.name != "equal":
        return False
    array, extremum = equal.operands
    found = known.get(extremum)
    if found is None or found.semantics.fold not in ("maximum", "minimum") or found.operands != (array,):
        return False
    return len(found.keyword("axis")) == tape.types[array].ndim


def unsigned(tape: Tape) -> Tape:
    """``tape`` without what makes indices positive: those that count from the end are taken where they are used."""
    definitions = tape.definitions()
    uses: dict[int, list[tuple[Op, int | None]]] = {}
    for op in tape.ops:
        extents = dict(index_arrays(tape, op))
        for operand in set(op.operands):
            whole = op.operands.count(operand) == sum(v == operand for v, _ in index_arrays(tape, op))
            uses.setdefault(operand, []).append((op, extents.get(operand) if whole else None))
    kept = set(tape.outputs) | {guard.variable for guard in tape.guards}
    renamed: dict[int, int] = {}
    for op in tape.ops:
        found = _before_wrapping(tape, definitions, op)
        if found is not None and op.result not in kept:
            array, extent = found
            if all(each == extent for _, each in uses.get(op.result, ())):
                renamed[op.result] = array
    ops = [replace(op, operands=tuple(renamed.get(v, v) for v in op.operands)) for op in tape.ops]
    return without_dead(with_ops(tape, ops, guards=[guard for guard in tape.guards if not guard.signs]))


def _before_wrapping(tape: Tape, definitions: Mapping[int, Op], op: Op) -> tuple[int, int] | None:
    """The array and extent of ``where((array < 0) & (array >= -extent), array + extent, array)``; None if it is not."""
    if not op.semantics.chooses:
        return None
    both, sum_ = definitions.get(op.operands[0]), definitions.get(op.operands[1])
    array = op.operands[2]
    if both is None or sum_ is None or both.name != "bitwise_and" or sum_.name != "add":
        return None
    below, above = (definitions.get(each) for each in both.operands)
    if below is None or above is None or below.name != "less" or above.name != "greater_equal":
        return None
    if {below.operands[0], above.operands[0], sum_.operands[0]} != {array}:
        return None
    zero, first, extent = (tape.constants.get(each.operands[1]) for each in (below, above, sum_))
    if type(zero) is not int or type(first) is not int or type(extent) is not int or (zero, first) != (0, -extent):
        return None
    return (array, extent) if tape.types[op.result] == tape.types[array] else None
