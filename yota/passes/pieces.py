"""Which axis a loop cuts, and how many rows go into one piece."""

from __future__ import annotations

import math
from collections.abc import Mapping

from yota.ir.semantics import AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.passes.units import Growing
from yota.passes.views import is_view

__all__ = ["CACHE_BYTES", "block", "leading_shape", "wish"]

CACHE_BYTES = 2 * 1024 * 1024
"""What the pieces in flight in one loop may take.

Measured: below 0.5 MiB the cost of the calls shows, from 1 to 8 MiB the time is the same within 10 %.
"""
_SMALLEST_RUN = 256
_LARGEST_ROW = 16384


def leading_shape(op: Op, types: Mapping[int, TensorType]) -> tuple[int, ...]:
    """The shape that an op that starts a loop runs over."""
    return types[op.operands[0] if op.access == AccessMap.REDUCTION else op.result].shape


def wish(op: Op, types: Mapping[int, TensorType]) -> int | None:
    """The axis along which to cut an op that starts a loop: the first whose rows are not too long."""
    if is_view(op, types) or not op.operands:
        return None
    shape = leading_shape(op, types)
    size = math.prod(shape)
    if size < 2:
        return None
    for axis, extent in enumerate(shape):
        row = size // extent
        inner = math.prod(shape[axis + 1 :])
        rows = max(1, _LARGEST_ROW // row)
        if extent > 1 and row <= _LARGEST_ROW and (axis == 0 or rows * inner >= _SMALLEST_RUN):
            return axis
    return max(range(len(shape)), key=lambda axis: shape[axis])


def block(group: Growing, types: Mapping[int, TensorType]) -> int:
    """Rows in one piece, so that what is live at a time stays in the cache; pieces of about equal size."""
    extent = group.extent
    last: dict[int, int] = {}
    for position, member in enumerate(group.members):
        for operand in member.op.operands:
            last[operand] = position
    live, peak, streams = 0, 0, {}
    ends: dict[int, int] = {}
    for position, member in enumerate(group.members):
        op, placement = member.op, member.placement
        assert placement is not None
        for operand, read in zip(op.operands, placement.reads, strict=True):
            if read is not None and operand not in group.axes:
                streams[operand] = types[operand]
        if placement.axis is not None and not is_view(op, types):
            row = _bytes(types[op.result]) // extent
            live += row
            end = last.get(op.result, position)
            ends[end] = ends.get(end, 0) + row
        peak = max(peak, live)
        live -= ends.pop(position, 0)
    row = peak + sum(_bytes(type) // extent for type in streams.values())
    return _even(extent, max(1, CACHE_BYTES // max(row, 1)))


def _even(extent: int, most: int) -> int:
    """Rows in a piece, ``most`` at the most: if possible all pieces are of one size."""
    if most >= extent:
        return extent
    fewest = -(-extent // most)
    for pieces in range(fewest, min(fewest + fewest // 3, extent) + 1):
        if extent % pieces == 0:
            return extent // pieces
    even = -(-extent // fewest)
    return min(most, -(-even // 8) * 8) if most >= 8 else even


def _bytes(type: TensorType) -> int:
    return type.size * type.dtype.itemsize
