"""Functions on access maps: axes that pass through an op, index operands, and letters of contractions."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import TypeVar

from yota.ir.indexing import GATHER, Index, Slice, entry_of, pieces_of
from yota.ir.semantics import INDEXED, AccessMap
from yota.ir.tape import Op

_T = TypeVar("_T")
_BATCH = string.ascii_uppercase + string.ascii_lowercase[11:]


def carried_axis(op: Op, old: Sequence[int], new: Sequence[int], axis: int) -> int | None:
    """The axis of a result, of shape ``new``, whose rows depend on one row each along ``axis`` of an operand, or None.

    The operand has shape ``old``. It is the first one, unless the op is a join or elementwise.

    >>> from yota.ir.catalog import primitive
    >>> carried_axis(Op(1, primitive("reshape"), (0,)), (4, 6), (4, 2, 3), 0)
    0
    """
    access = op.access
    if access == AccessMap.TRANSPOSE:
        found: int = op.keyword("axes").index(axis)
        return found
    if access == AccessMap.RESHAPE:
        ahead = math.prod(old[:axis])
        same = (each for each, extent in enumerate(new) if extent == old[axis] and math.prod(new[:each]) == ahead)
        return next(same, None)
    if access in (AccessMap.BROADCAST, AccessMap.ELEMENTWISE):
        return axis + len(new) - len(old)
    if access == AccessMap.STACK:
        return axis + int(axis >= op.keyword("axis"))
    if access == AccessMap.CONCATENATE:
        return None if axis == op.keyword("axis") else axis
    if access == AccessMap.REDUCTION:
        over = op.keyword("axis")
        dropped = 0 if op.keyword("keepdims") else sum(other < axis for other in over)
        return None if axis in over else axis - dropped
    if access != AccessMap.READ or GATHER in op.keyword("index"):
        return None
    entry, found_axis = entry_of(op.keyword("index"), axis)
    return found_axis if entry == Slice(0, old[axis]) else None


def spread(point: Sequence[_T], shape: Sequence[int], zero: _T) -> tuple[_T, ...]:
    """The position in an operand of ``shape`` that broadcasting maps to ``point``.

    >>> spread((4, 2, 1), (1, 5), 0)
    (0, 1)
    """
    own = point[len(point) - len(shape) :]
    return tuple(zero if extent == 1 else each for each, extent in zip(own, shape, strict=True))


def viewed(op: Op, point: Sequence[_T], shape: Sequence[int], zero: _T) -> tuple[_T, ...]:
    """The position in an operand of ``shape`` of the element at ``point`` of its transpose or broadcast.

    >>> from yota.ir.catalog import primitive
    >>> viewed(Op(1, primitive("transpose"), (0,), (("axes", (1, 2, 0)),)), "abc", (2, 3, 4), "")
    ('c', 'a', 'b')
    """
    if op.access == AccessMap.BROADCAST:
        return spread(point, shape, zero)
    places = dict(zip(op.keyword("axes"), point, strict=True))
    return tuple(places[axis] for axis in range(len(point)))


def pieces(op: Op) -> list[tuple[int, list[int], Index]]:
    """The numbers of the operands that an indexing op reads, writes or adds, and of their index arrays."""
    if op.access not in INDEXED:
        return []
    several = op.access in (AccessMap.SCATTER, AccessMap.DEPOSIT)
    first = op.access in (AccessMap.WRITE, AccessMap.DEPOSIT)
    indices = op.keyword("indices") if several else (op.keyword("index"),)
    return pieces_of(range(first, len(op.operands)), indices)


def letters(op: Op, ndims: Sequence[int]) -> tuple[list[str], str]:
    """Letters of the axes of the operands and the result of a contraction.

    >>> from yota.ir.catalog import primitive
    >>> letters(Op(2, primitive("matmul"), (0, 1)), (3, 2))
    (['Aij', 'jk'], 'Aik')
    """
    if op.access == AccessMap.EINSUM:
        inputs, result = str(op.keyword("subscripts")).replace(" ", "").split("->")
        return inputs.split(","), result
    left, right = ndims
    batch = _BATCH[: max(left, right, 2) - 2]
    one = "j" if left == 1 else f"{batch[len(batch) - left + 2 :]}ij"
    two = "j" if right == 1 else f"{batch[len(batch) - right + 2 :]}jk"
    return [one, two], batch + "i" * (left > 1) + "k" * (right > 1)
