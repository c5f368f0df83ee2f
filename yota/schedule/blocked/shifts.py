"""Shifted pieces that a loop adds into one array: which piece may be written there instead of added.

The loop runs upwards, so the piece that lands furthest up is the first to reach each row: it is written, the
others are added to it, and only the rows that it never reaches have to be zeroed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yota.ir.indexing import NEWAXIS, Index, Slice, axis_behind
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.optimize.array_views import is_view
from yota.schedule.blocked.units import Member, Unit


@dataclass(frozen=True, slots=True)
class First:
    """The piece that is written first.

    number: its number among the op's pieces.
    axis, shift: axis of the whole array along which pieces land, and the row on which this one starts.
    direct: the variable of the piece, if the op that computes it can write it straight to its place; else None.
    """

    number: int
    axis: int
    shift: int
    direct: int | None


def landing(index: Index, read: int) -> tuple[int, int]:
    """Axis of the whole array that axis ``read`` of a piece lands on, and where it starts there."""
    found = axis_behind(index, read)
    assert found is not None, "a piece has no such axis"
    axis, entry = found
    return axis, entry.start


def first_pieces(
    unit: Unit, types: Mapping[int, TensorType], roots: Mapping[int, frozenset[int]]
) -> dict[int, First | None]:
    """The first piece of each array that the loop of ``unit`` completes by adding shifted pieces."""
    local = unit.local
    members = (each for each in unit.members if each.op.access == AccessMap.SCATTER and each.op.result not in local)
    return {each.op.result: _first_piece(each, unit, types, roots) for each in members}


def in_order(op: Op, first: First | None) -> list[int]:
    """Numbers of the pieces, the one that is written ahead of those that are added."""
    return sorted(range(len(op.operands)), key=lambda number: first is not None and number != first.number)


def _first_piece(
    member: Member, unit: Unit, types: Mapping[int, TensorType], roots: Mapping[int, frozenset[int]]
) -> First | None:
    """The piece that comes first everywhere; None if all have to be added to zeros."""
    op, placement = member.op, member.placement
    assert placement is not None
    type, found = types[op.result], []
    for number, (index, read) in enumerate(zip(op.keyword("indices"), placement.reads, strict=True)):
        assert read is not None
        axis, shift = landing(index, read)
        entries = [entry for entry in index if entry is not NEWAXIS]
        found.append((shift, -number, axis))
        whole = (entry == Slice(0, extent) for entry, extent in zip(entries, type.shape, strict=True))
        if not all(full for other, full in enumerate(whole) if other != axis):
            return None
        if types[op.operands[number]].dtype != type.dtype:
            return None
    shift, negative, axis = max(found)
    direct = op.operands[-negative]
    return First(-negative, axis, shift, direct if _writable(direct, op, unit, types, roots) else None)


def _writable(
    variable: int, op: Op, unit: Unit, types: Mapping[int, TensorType], roots: Mapping[int, frozenset[int]]
) -> bool:
    """Whether the piece is computed in this loop, in the result's own shape, and done with when it lands."""
    local = unit.local
    if variable not in local or variable in unit.stored or types[variable].ndim != types[op.result].ndim:
        return False
    if sum(variable in roots[operand] for operand in op.operands) != 1:
        return False
    if is_view(_definition(variable, unit), types):
        return False
    before = True
    for member in unit.members:
        total = member.op.access == AccessMap.SCATTER and member.op.result not in local
        if member.op is op:
            before = False
            continue
        looks = any(o in local and variable in roots[o] for o in member.op.operands)
        if looks and (total or not before):
            return False
    return True


def _definition(variable: int, unit: Unit) -> Op:
    return next(member.op for member in unit.members if member.op.result == variable)
