"""Chooses how a loop's pieces lie in memory, so that NumPy's inner loops are long.

NumPy's inner loops run along the last axis in memory: a sum over the three coordinates of a million points pays
the overhead of a million inner loops. With the coordinates outermost it is two additions of long rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yota.ir.semantics import AccessMap
from yota.ir.types import TensorType

if TYPE_CHECKING:
    from yota.passes.units import Member, Unit

__all__ = ["ROWS", "Layout", "choose", "copied_whole"]

_SHORT = 16
_SHORTEST_COLUMN = 48
_LONGEST_SUM = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a loop's pieces in memory.

    ``rows``: as the axes are. ``planes``: a last axis of extent ``short`` outermost. ``columns``: the blocked axis
    innermost.
    """

    kind: str
    short: int = 0

    def order(self, type: TensorType, axis: int | None) -> tuple[int, ...] | None:
        """Axes of an array cut along ``axis`` from outermost to innermost; None if as they are."""
        last = type.ndim - 1
        if type.ndim < 2 or axis == last:
            return None
        if self.kind == "planes":
            short = type.shape[last] == self.short and type.size > 4 * self.short
            return (last, *range(last)) if short else None
        if self.kind == "columns" and axis is not None and type.size > type.shape[axis]:
            return (*(other for other in range(type.ndim) if other != axis), axis)
        return None


ROWS = Layout("rows")


def choose(members: Sequence[Member], axes: Mapping[int, int], types: Mapping[int, TensorType], block: int) -> Layout:
    """The layout for a loop of these members with pieces of ``block`` rows."""
    mixing = _mixing(members, types)
    if not mixing:
        return ROWS
    short = max(mixing, key=lambda extent: (mixing[extent], extent))
    middle = [
        types[v].shape[-2]
        for v, axis in axes.items()
        if types[v].ndim > 2 and axis < types[v].ndim - 2 and types[v].shape[-1] == short
    ]
    if short <= _SHORT and (not middle or max(middle) > max(block, _SHORTEST_COLUMN)):
        return Layout("planes", short)
    if block >= max(_SHORTEST_COLUMN, short):
        return Layout("columns")
    return Layout("planes", short) if short <= _SHORT else ROWS


def copied_whole(type: TensorType, unit: Unit, types: Mapping[int, TensorType]) -> bool:
    """Whether an operand is so small beside the loop's work that it is put in order once, ahead of the loop."""
    largest = max(types[member.op.result].size for member in unit.members)
    return 8 * type.size <= largest


def _mixing(members: Sequence[Member], types: Mapping[int, TensorType]) -> Counter[int]:
    """On how many elements ops sum over, or spread along, a short last axis; by its extent."""
    found: Counter[int] = Counter()
    for member in members:
        op, placement = member.op, member.placement
        assert placement is not None
        if op.access == AccessMap.REDUCTION:
            type = types[op.operands[0]]
            extent = _last(type, placement.reads[0])
            # A sum over the blocked axis alone adds whole rows already, one over all axes adds what lies in line, and
            # BLAS does one over all but the last.
            axes, every = op.keyword("axis"), tuple(range(type.ndim))
            columns = op.semantics.fold == "add" and type.dtype.char in "fd" and axes == every[:-1]
            if extent and axes not in ((placement.reads[0],), every) and not columns:
                found[extent] += type.size
        elif placement.axis is not None and len(op.operands) > 1:
            type = types[op.result]
            extent = _last(type, placement.axis)
            if extent and any(_narrow(types[v], r) for v, r in zip(op.operands, placement.reads, strict=True)):
                found[extent] += type.size
    return found


def _last(type: TensorType, axis: int | None) -> int:
    if type.ndim < 2 or axis == type.ndim - 1 or not 1 < type.shape[-1] <= _LONGEST_SUM:
        return 0
    return type.shape[-1] if type.size > 4 * type.shape[-1] else 0


def _narrow(type: TensorType, axis: int | None) -> bool:
    """Whether an operand with a blocked axis is spread along the result's last axis."""
    return axis is not None and type.ndim > 1 and type.shape[-1] == 1
