"""Rewrites matrix products, einsums and counts as sums, and cumulative ones as loops, where nothing else does them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import numpy as np

from yota.ir.access_maps import letters
from yota.ir.catalog import item_of, primitive
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import CONTRACTIONS, AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize.array_writes import is_view
from yota.optimize.rewrite import Rewriting, rewritten
from yota.rules.language.statics import inverse

_SMALL = 256
"""Multiplications of a product up to which a loop takes less time than a call of NumPy's."""
_SHORT = 8
"""Terms of a sum up to which it is written out."""


def as_sums(tape: Tape, fits: Callable[[Tape, Op], bool] = lambda tape, op: True) -> Tape:
    """``tape`` with every matrix product and einsum that fits as a sum over a product of broadcast operands."""

    def replacement(rewriting: Rewriting, op: Op) -> int | None:
        found = _letters(tape, op) if fits(tape, op) else None
        return None if found is None else _contraction(rewriting, op, *found)

    return rewritten(tape, replacement) if any(op.access in CONTRACTIONS for op in tape.ops) else tape


def small_as_sums(tape: Tape, kept: Collection[int] = ()) -> tuple[Tape, frozenset[int]]:
    """``tape`` with products of small matrices and vectors as sums, and results to keep in memory then.

    Products that compute ``kept`` stay.

    Loops that went through chains of products without a stop would compute each element of the first again for each
    of the last.
    """
    small = {op.result for op in tape.ops if op.result not in kept and is_small(tape, op)}
    if not small:
        return tape, frozenset()
    found = as_sums(tape, lambda _, op: op.result in small)
    return found, _stops(found)


def multiplies_matrices(tape: Tape) -> bool:
    """Whether a product has more multiplications than numbers to read and write: BLAS takes less time than loops."""
    for op in tape.ops:
        found = _letters(tape, op)
        if found is not None:
            variables = (*op.operands, op.result)
            shapes = [tape.types[each].shape for each in variables]
            large = [
                {letter for letter, extent in zip(own, shape, strict=True) if int(extent) > _SHORT}
                for own, shape in zip([*found[0], found[1]], shapes, strict=True)
            ]
            if len(set().union(*large)) > max(map(len, large)):
                return True
    return False


def _stops(tape: Tape) -> frozenset[int]:
    """Results made of sums of products, and read more than once for each element."""
    repeated = _repeated(tape)
    terms: dict[int, int] = {}
    found = set()
    for op in tape.ops:
        count = sum(terms.get(operand, 0) for operand in op.operands)
        if op.access == AccessMap.REDUCTION and op.semantics.fold == "add":
            length = tape.types[op.operands[0]].size // max(1, tape.types[op.result].size)
            count = length * max(1, count) if length <= _SHORT else 0
        elif not (op.primitive.elementwise or is_view(op, tape.types)):
            count = 0
        most = _SHORT if tape.types[op.result].size == 1 else 1
        if count > most and op.result in repeated and not is_view(op, tape.types):
            found.add(op.result)
            count = 0
        terms[op.result] = count
    return frozenset(found)


def _repeated(tape: Tape) -> set[int]:
    """Variables whose elements take part in more elements of a result than one."""
    found: set[int] = set()
    for op in reversed(tape.ops):
        size = int(tape.types[op.result].size)
        for operand in op.operands:
            is_smaller = int(tape.types[operand].size) < size
            wider = op.primitive.elementwise and is_smaller
            if wider or (is_view(op, tape.types) and (op.result in found or is_smaller)):
                found.add(operand)
    return found


def is_small(tape: Tape, op: Op, largest: int | None = None) -> bool:
    """Whether loops take less time for a product than a library; of at most ``largest`` multiplications, if given."""
    found = _letters(tape, op)
    if found is None or len(op.operands) != 2:
        return False
    type = tape.types[op.result]
    if type.dtype.kind not in "fc" or any(tape.types[each].dtype != type.dtype for each in op.operands):
        return False
    extents: dict[str, int] = {}
    for operand, own in zip(op.operands, found[0], strict=True):
        extents.update(zip(own, tape.types[operand].shape, strict=True))
    summed = math.prod(int(extent) for letter, extent in extents.items() if letter not in found[1])
    if largest is not None:
        return summed > 0 and math.prod(map(int, extents.values())) <= largest
    return 0 < summed <= _SHORT and math.prod(map(int, extents.values())) <= _SMALL


def _letters(tape: Tape, op: Op) -> tuple[list[str], str] | None:
    """A letter for each axis of each operand and of the result; None for what is no such product."""
    if op.access not in CONTRACTIONS:
        return None
    terms, result = letters(op, [tape.types[operand].ndim for operand in op.operands])
    plain = all(len(set(each)) == len(each) and each.isalpha() for each in [*terms, result or "a"])
    return (terms, result) if plain and set(result) <= set("".join(terms)) else None


def _contraction(rewriting: Rewriting, op: Op, letters: Sequence[str], result: str) -> int:
    operands = rewriting.operands(op)
    type = rewriting.tape.types[op.result]
    summed = "".join(dict.fromkeys(letter for each in letters for letter in each if letter not in result))
    order = _order(rewriting, operands, letters, result, summed)
    product = None
    for operand, own in zip(operands, letters, strict=True):
        found = _aligned(rewriting, operand, own, order)
        product = found if product is None else rewriting.emit("multiply", (product, found))
    assert product is not None
    if rewriting.type(product).dtype != type.dtype:
        product = rewriting.emit("astype", (product,), {"dtype": type.dtype})
    if not summed:
        return product
    axes = tuple(sorted(order.index(letter) for letter in summed))
    static: Mapping[str, object] = {"axis": axes, "keepdims": False}
    total = rewriting.emit("sum", (product,), static)
    return total if rewriting.type(total) == type else rewriting.emit("reshape", (total,), {"shape": type.shape})


def _order(rewriting: Rewriting, operands: Sequence[int], letters: Sequence[str], result: str, summed: str) -> str:
    """The axes of the loops: the innermost one walks through memory in order where one can."""
    if not result:
        return summed
    along = {_innermost(rewriting, operand, own) for operand, own in zip(operands, letters, strict=True) if own}
    if result[-1] in along or not summed:
        return result[:-1] + summed + result[-1]
    return result + summed


def _innermost(rewriting: Rewriting, operand: int, letters: str) -> str:
    """The letter of the axis whose elements are side by side in memory."""
    op = rewriting.definition(operand)
    if op is not None and op.access == AccessMap.TRANSPOSE:
        axes = op.keyword("axes")
        return letters[axes.index(len(axes) - 1)]
    return letters[-1]


def _aligned(rewriting: Rewriting, operand: int, letters: str, order: str) -> int:
    """The operand with its axes in ``order``, and axes of extent one for those that it lacks."""
    shape = dict(zip(letters, rewriting.type(operand).shape, strict=True))
    own = [letter for letter in order if letter in shape]
    axes = tuple(letters.index(letter) for letter in own)
    if axes != tuple(range(len(axes))):
        operand = rewriting.emit(primitive("transpose"), (operand,), {"axes": axes})
    extents = tuple(shape.get(letter, 1) for letter in order)
    if rewriting.type(operand).shape != extents:
        operand = rewriting.emit("reshape", (operand,), {"shape": extents})
    return operand


def as_counts(tape: Tape) -> Tape:
    """``tape`` in which what asks how many elements are true counts them in double precision."""
    if not any(_is_asked(op) for op in tape.ops):
        return tape
    return rewritten(tape, lambda rewriting, op: _answer(rewriting, op) if _is_asked(op) else None)


def _is_asked(op: Op) -> bool:
    return op.access == AccessMap.COUNT and isinstance(op.keyword("axis"), tuple)


def _answer(rewriting: Rewriting, op: Op) -> int:
    (found,) = rewriting.operands(op)
    type = rewriting.type(found)
    if type.dtype.kind != "b":
        zero = rewriting.builder.constant(np.zeros((), type.dtype)[()])
        found = rewriting.emit("not_equal", (found, zero))
    if op.semantics.fold == "logical_and":
        found = rewriting.emit("logical_not", (found,))
    ones = rewriting.emit("astype", (found,), {"dtype": np.dtype(np.float64)})
    static = {"axis": op.keyword("axis"), "keepdims": op.keyword("keepdims")}
    count = rewriting.emit(primitive("sum"), (ones,), static) if op.keyword("axis") else ones
    if op.semantics.fold == "add":
        return rewriting.emit("astype", (count,), {"dtype": rewriting.tape.types[op.result].dtype})
    zero = rewriting.builder.constant(np.float64(0))
    return rewriting.emit("not_equal" if op.semantics.fold == "logical_or" else "equal", (count, zero))


_STEPS = {"cumsum": ("add", -0.0), "cumprod": ("multiply", 1.0)}
"""The op of a trip, and the number that changes no bit of another one."""


def as_loops(tape: Tape, kept: Collection[int] = ()) -> Tape:
    """``tape`` with each cumulative sum or product of real numbers as a loop along its axis; ``kept`` stay."""
    if not any(op.access == AccessMap.SCAN for op in tape.ops):
        return tape
    return rewritten(tape, partial(_looped, kept=kept))


def _looped(rewriting: Rewriting, op: Op, kept: Collection[int]) -> int | None:
    if op.access != AccessMap.SCAN or op.result in kept:
        return None
    type, axis = rewriting.tape.types[op.result], op.keyword("axis")
    (operand,) = rewriting.operands(op)
    if type.dtype.kind != "f" or rewriting.type(operand) != type or not type.size:
        return None
    name, neutral = _STEPS[op.name]
    builder, order = rewriting.builder, (axis, *(each for each in range(type.ndim) if each != axis))
    row = TensorType(type.dtype, type.shape[:axis] + type.shape[axis + 1 :])
    start = builder.constant(type.dtype.type(neutral))
    if row.shape:
        start = builder.emit(primitive("broadcast_to"), (start,), {"shape": row.shape})
    if axis:
        operand = builder.emit(primitive("transpose"), (operand,), {"axes": order})
    trips = type.shape[axis]
    # The body: the carried value and a row give the next carried value, which is also the row of the result.
    body = TapeBuilder(name)
    body.input(TensorType(np.dtype(np.int64), (), True), 0, "i")
    made = body.emit(primitive(name), (body.input(row, 1, "carried"), body.input(row, 2, "row")))
    region = Region(body.finish([made, made]), 1, 1, trips, seen=trips)
    found = item_of(builder, builder.emit(LOOP, (start, operand), {"region": region}), 1)
    if axis:
        found = builder.emit(primitive("transpose"), (found,), {"axes": inverse(order)})
    return found
