"""Adjoints that are zero in some places, whatever a partial is there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import NEWAXIS, Index, Slice, pieces_of
from yota.ir.semantics import JOINS, AccessMap
from yota.ir.tape import Op, TapeBuilder

_MOST = 8
"""Reads of an array that are multiplied one by one."""
_DEEPEST = 16
"""So many ops back an adjoint is looked at."""
_SUMS = 3
"""So many sums within sums are looked at."""
_PRODUCTS = (primitive("multiply"), primitive("negative"))
"""What takes adjoints from results to operands; the adjoint comes first."""
_ADD = primitive("add")
_MOVED = (AccessMap.RESHAPE, AccessMap.TRANSPOSE)


@dataclass(frozen=True, slots=True)
class Choice:
    """An adjoint that is zero in some places: where a condition holds, where it does not, or where an array is written.

    op: the ``where`` or ``setitem`` that makes it.
    inner: what it is elsewhere.
    position: which operand of ``op`` that is.
    """

    op: Op
    inner: int
    position: int

    def of(self, builder: TapeBuilder, inner: int) -> int:
        """The same choice of another value."""
        operands = list(self.op.operands)
        operands[self.position] = inner
        return builder.emit(self.op.primitive, tuple(operands), self.op.static)

    def is_like(self, other: Choice) -> bool:
        """Whether both are zero in the same places."""
        return self._places() == other._places()

    def _places(self) -> tuple[Any, ...]:
        others = self.op.operands[:1] if self.op.semantics.chooses else self.op.operands[2:]
        return self.op.name, self.position, others, self.op.static


def choice(builder: TapeBuilder, variable: int) -> Choice | None:
    """What ``variable`` chooses, if it is a choice between a value and zero."""
    op = builder.definition(variable)
    if op is None:
        return None
    if op.semantics.casts or op.semantics.component == "real":
        chosen = choice(builder, op.operands[0])
        if chosen is None:
            return None
        type_ = replace(builder.types[variable], shape=builder.types[chosen.inner].shape)
        return replace(chosen, inner=builder.emit(op.primitive, (chosen.inner,), op.static, type=type_))
    pairs = ((1, 2), (2, 1)) if op.semantics.chooses else ((0, 1),) if op.semantics.access is AccessMap.WRITE else ()
    for position, other in pairs:
        zero = builder.constants.get(op.operands[other])
        if isinstance(zero, (bool, int, float)) and zero == 0:
            return Choice(op, op.operands[position], position)
    return None


class Narrowed(NamedTuple):
    """The product of an adjoint and a partial, where the adjoint is not zero anyway.

    pairs: adjoints with their partials, there.
    whole: writes the product from those of the pairs.
    """

    pairs: Sequence[tuple[int, int]]
    whole: Callable[[Sequence[int]], int]


def narrowed(builder: TapeBuilder, adjoint: int, partial: int, *, sharp: bool) -> Narrowed | None:
    """What to multiply in the place of ``adjoint`` and ``partial``, if the adjoint is zero in known places.

    A partial that is infinite or no number there must not count. Of an array that is read at an index, and of other
    shapes of it, that takes more code: it is done if the partial is ``sharp``, which is to say that it may be infinite.
    """
    chosen = choice(builder, adjoint)
    if chosen is not None:
        return Narrowed([(chosen.inner, partial)], lambda found: chosen.of(builder, found[0]))
    op = builder.definition(adjoint)
    if op is None or not builder.types[adjoint].shape or not (sharp or _is_unbounded(builder, partial)):
        return None
    if op.access is AccessMap.READ:
        part = _part(builder, adjoint)
        return None if part is None else Narrowed([(part.inner, partial)], lambda found: part.of(builder, found[0]))
    if op.primitive is _ADD:
        return _of_sum(builder, op, partial)
    if not _is_masked(builder, adjoint):
        return None
    if op.access is AccessMap.SCATTER:
        return _read(builder, op, partial)
    if op.access is AccessMap.ELEMENTWISE:
        if any(builder.types[each].is_complex for each in (adjoint, partial)):
            return None
        # A product before did not need it.
        return narrowed(builder, op.operands[0], builder.emit(op.primitive, (*op.operands[1:], partial)), sharp=True)
    moved = op.operands[0]
    static: dict[str, Any] = {"shape": builder.types[moved].shape}
    if op.access is AccessMap.TRANSPOSE:
        static = {"axes": tuple(map(int, np.argsort(op.keyword("axes"))))}
    back = _whole(builder, partial, builder.types[adjoint].shape)
    back = builder.emit(op.primitive, (back,), static) if builder.types[back].shape else back
    return Narrowed([(moved, back)], lambda found: builder.emit(op.primitive, found, op.static))


def _is_unbounded(builder: TapeBuilder, variable: int) -> bool:
    """Whether a variable is a constant with infinite elements, or put together of constants of which one is so."""
    op = builder.definition(variable)
    parts = (variable,) if op is None else op.operands if op.access in JOINS else ()
    return not all(np.all(np.isfinite(builder.constants[each])) for each in parts if each in builder.constants)


def _is_masked(builder: TapeBuilder, variable: int, *, scattered: bool = True, sums: int = _SUMS) -> bool:
    """Whether a variable is zero in known places: read at an index, chosen, or a product with such a variable."""
    for _ in range(_DEEPEST):
        op = builder.definition(variable)
        if op is None or not builder.types[variable].shape:
            return False
        if (scattered and op.access is AccessMap.SCATTER) or choice(builder, variable) is not None:
            return True
        if op.access is AccessMap.READ:
            return _part(builder, variable) is not None
        if op.primitive is _ADD:
            return bool(sums) and all(_is_masked(builder, each, scattered=False, sums=sums - 1) for each in op.operands)
        if op.access not in _MOVED and op.primitive not in _PRODUCTS:
            return False
        variable = op.operands[0]
    return False


def _of_sum(builder: TapeBuilder, op: Op, partial: int) -> Narrowed | None:
    """The product of each term of a sum, if all are chosen: what is zero in pieces needs a product for each piece."""
    if not all(_is_masked(builder, each, scattered=False, sums=_SUMS - 1) for each in op.operands):
        return None
    found = [narrowed(builder, each, partial, sharp=True) for each in op.operands]
    chosen = [each for each in found if each is not None]
    if len(chosen) < len(found):
        return None
    first, second = chosen
    count = len(first.pairs)

    def whole(found: Sequence[int]) -> int:
        return builder.emit(_ADD, (first.whole(found[:count]), second.whole(found[count:])))

    return Narrowed([*first.pairs, *second.pairs], whole)


def _part(builder: TapeBuilder, variable: int) -> Choice | None:
    """What is read of a choice, as a choice between what is read and zero."""
    op = builder.definition(variable)
    chosen = choice(builder, variable)
    if op is None or chosen is not None:
        return chosen and _by_condition(builder, chosen)
    if op.access not in (*_MOVED, AccessMap.READ):
        return None
    if op.access is AccessMap.READ:
        put = _put(builder, op.operands[0], op, _DEEPEST)
        if put:
            return _part(builder, put)
    chosen = _part(builder, op.operands[0])
    if chosen is None:
        return None
    shape = builder.types[op.operands[0]].shape

    def moved(each: int) -> int:
        if not builder.types[each].shape:
            return each
        return builder.emit(op.primitive, (_whole(builder, each, shape), *op.operands[1:]), op.static)

    operands = list(chosen.op.operands)
    operands[0], operands[chosen.position] = moved(operands[0]), moved(chosen.inner)
    return Choice(replace(chosen.op, operands=tuple(operands)), operands[chosen.position], chosen.position)


_NOTHING = 0
"""In the place of a variable: zeros."""


def _put(builder: TapeBuilder, array: int, read: Op, depth: int) -> int | None:
    """What ``read`` reads of a sum of arrays that zeros were written to, and pieces put together; None if unknown."""
    op = builder.definition(array)
    if op is None or not depth:
        return None
    if op.primitive is _ADD:
        found = [_put(builder, each, read, depth - 1) for each in op.operands]
        return next((each for each in found if each), _NOTHING) if None not in found and _NOTHING in found else None
    if op.access is AccessMap.WRITE and len(op.operands) == 2:
        piece = _inside(builder, op.operands[1], op.keyword("index"), read)
        if piece and builder.constants.get(piece) == 0:
            return _NOTHING
        return _put(builder, op.operands[0], read, depth - 1) if piece == _NOTHING else piece
    if op.access is AccessMap.SCATTER and len(op.operands) == len(op.keyword("indices")):
        pairs = zip(op.operands, op.keyword("indices"), strict=True)
        found = [_inside(builder, piece, index, read) for piece, index in pairs]
        pieces = [each for each in found if each != _NOTHING]
        return None if len(pieces) > 1 else pieces[0] if pieces else _NOTHING
    return None


def _inside(builder: TapeBuilder, piece: int, index: Index, read: Op) -> int | None:
    """What is read of a piece that lies at ``index``, zeros if it lies elsewhere; None if neither is certain."""
    wanted = read.keyword("index")
    shape = builder.types[read.operands[0]].shape
    if len(index) != len(wanted) or NEWAXIS in wanted:
        return None
    pairs = list(zip(index, wanted, shape, strict=True))
    if any(type(one) is type(other) is int and one != other for one, other, _ in pairs):
        return _NOTHING
    if any(one != (other if isinstance(other, int) else Slice(0, extent)) for one, other, extent in pairs):
        return None
    if builder.constants.get(piece) == 0 and not builder.types[piece].shape:
        return piece
    rest = tuple(other for other in wanted if not isinstance(other, int))
    extents = tuple(extent for other, extent in zip(wanted, shape, strict=True) if not isinstance(other, int))
    if builder.types[piece].shape != extents:
        return None
    if all(other == Slice(0, extent) for other, extent in zip(rest, extents, strict=True)):
        return piece
    return builder.emit(read.primitive, (piece, *read.operands[1:]), {"index": rest})


def _by_condition(builder: TapeBuilder, chosen: Choice) -> Choice:
    """A choice by a condition in the place of one by where an array is written."""
    if chosen.op.semantics.chooses:
        return chosen
    shape = builder.types[chosen.inner].shape
    nowhere = builder.emit(primitive("broadcast_to"), (builder.constant(np.False_),), {"shape": shape})
    operands = (nowhere, builder.constant(np.True_), *chosen.op.operands[2:])
    written = builder.emit(primitive("setitem"), operands, chosen.op.static)
    operands = (written, chosen.op.operands[1], chosen.inner)
    return Choice(replace(chosen.op, primitive=primitive("where"), operands=operands, static=()), chosen.inner, 2)


def _read(builder: TapeBuilder, op: Op, partial: int) -> Narrowed | None:
    """The pieces of a scatter with what they meet of the partial, unless that takes more products than it has."""
    pieces, shape = pieces_of(op.operands, op.keyword("indices")), op.keyword("shape")
    if len(pieces) > _MOST or sum(int(builder.types[piece].size) for piece, _, _ in pieces) > int(math.prod(shape)):
        return None
    partial = _whole(builder, partial, shape)
    pairs = []
    for piece, places, index in pieces:
        is_array = bool(builder.types[partial].shape)
        met = builder.emit(primitive("getitem"), (partial, *places), {"index": index}) if is_array else partial
        pairs.append((piece, met))

    def whole(found: Sequence[int]) -> int:
        operands = [each for inner, (_, places, _) in zip(found, pieces, strict=True) for each in (inner, *places)]
        return builder.emit(op.primitive, operands, op.static)

    return Narrowed(pairs, whole)


def _whole(builder: TapeBuilder, partial: int, shape: tuple[int, ...]) -> int:
    """A partial in the shape of its adjoint, unless it is a number."""
    if builder.types[partial].shape in ((), shape):
        return partial
    return builder.emit(primitive("broadcast_to"), (partial,), {"shape": shape})
