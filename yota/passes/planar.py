"""Finds loops that are better off with a short last axis outermost in memory.

NumPy's inner loops run along the last axis in memory: a sum over the three coordinates of a million points pays
the overhead of a million inner loops. With the coordinates outermost it is two additions of long rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from yota.ir.types import TensorType

if TYPE_CHECKING:
    from yota.passes.fuse import Member, Unit

__all__ = ["copied_whole", "is_planar", "short_axis"]

LONGEST = 16


def short_axis(members: Iterable[Member], axes: Mapping[int, int], types: Mapping[int, TensorType]) -> int:
    """Extent of the last axis to move outermost in a loop's pieces; 0 if none is worth it."""
    found: Counter[int] = Counter()
    for member in members:
        op, placement = member.op, member.placement
        assert placement is not None
        if op.name in ("sum", "prod", "max", "min"):
            extent = _last(types[op.operands[0]], placement.reads[0])
            # A sum over the blocked axis alone adds whole rows already.
            if extent and op.keyword("axis") != (placement.reads[0],):
                found[extent] += 1
        elif placement.axis is not None and len(op.operands) > 1:
            extent = _last(types[op.result], placement.axis)
            if extent and any(_narrow(types[v], r) for v, r in zip(op.operands, placement.reads, strict=True)):
                found[extent] += 1
    return max(found, key=lambda extent: (found[extent], extent), default=0)


def is_planar(type: TensorType, axis: int | None, extent: int) -> bool:
    """Whether an array cut along ``axis`` is one that a loop with this short axis keeps in planes."""
    return extent > 0 and _last(type, axis) == extent


def copied_whole(type: TensorType, unit: Unit, types: Mapping[int, TensorType]) -> bool:
    """Whether an operand is so small beside the loop's work that it is put into planes once, ahead of the loop."""
    largest = max(types[member.op.result].size for member in unit.members)
    return 8 * type.size <= largest


def _last(type: TensorType, axis: int | None) -> int:
    if type.ndim < 2 or axis == type.ndim - 1 or not 1 < type.shape[-1] <= LONGEST:
        return 0
    return type.shape[-1] if type.size > 4 * type.shape[-1] else 0


def _narrow(type: TensorType, axis: int | None) -> bool:
    """Whether an operand with a blocked axis is spread along the result's last axis."""
    return axis is not None and type.ndim > 1 and type.shape[-1] == 1
