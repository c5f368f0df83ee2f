"""Which ops work row by row: how one axis of the operands becomes one axis of the result.

A blocked loop cuts one axis of extent n into pieces. An op may be in the loop if piece i of its result needs
only piece i of its operands (and whole operands that the loop does not change). An op that adds up over the
axis, or adds shifted pieces into a longer array, may be in the loop too; its result is complete after the loop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, axis_behind
from yota.ir.tape import Op
from yota.ir.types import TensorType

__all__ = ["Placement", "place"]

_ROWWISE = frozenset({"where", "astype", "real", "imag"})
_REDUCTIONS = frozenset({"sum", "prod", "max", "min"})


@dataclass(frozen=True, slots=True)
class Placement:
    """How an op sits in a loop.

    Parameters
    ----------
    axis
        Blocked axis of the result; None if the result is complete only after the loop.
    reads
        For each operand the axis it is cut along, or None if it is read whole.
    """

    axis: int | None
    reads: tuple[int | None, ...]


def place(
    op: Op, types: Mapping[int, TensorType], extent: int, known: Mapping[int, int], wish: int | None
) -> Placement | None:
    """How ``op`` fits a loop over ``extent`` rows, or None if it does not.

    Parameters
    ----------
    known
        Blocked axis of each operand that the loop itself computes; those are read as pieces or not at all.
    wish
        Axis to cut the result along (for a reduction: the operand) when no operand is known.
    """
    operands = tuple(types[operand] for operand in op.operands)
    axes = tuple(known.get(operand) for operand in op.operands)
    if not known and wish is None:
        return None
    found = _place(op, operands, types[op.result], extent, axes, wish)
    if found is None:
        return None
    for axis, read in zip(axes, found.reads, strict=True):
        if axis is not None and read != axis:
            return None
    return found


def _place(
    op: Op,
    operands: tuple[TensorType, ...],
    result: TensorType,
    extent: int,
    axes: tuple[int | None, ...],
    wish: int | None,
) -> Placement | None:
    name = op.name
    if name in _ROWWISE or (op.primitive.elementwise and _is_ufunc(op)):
        return _broadcasting(operands, result.shape, extent, axes, wish)
    if name in _REDUCTIONS:
        return _reduction(op, operands[0], extent, axes[0] if axes[0] is not None else wish)
    if name in ("concatenate", "stack"):
        return _joining(op, operands, result, extent, axes, wish)
    if name == "scatter":
        return _scatter(op, operands, result, extent, axes, wish)
    if axes[0] is None:
        return None
    new = None
    if name == "transpose":
        new = op.keyword("axes").index(axes[0])
    elif name == "reshape":
        new = _reshaped(operands[0].shape, axes[0], result.shape)
    elif name == "broadcast_to":
        new = axes[0] + result.ndim - operands[0].ndim
    elif name == "getitem":
        new = _indexed(op.keyword("index"), axes[0], extent)
    if new is None or result.shape[new] != extent:
        return None
    return Placement(new, (axes[0],) + (None,) * (len(operands) - 1))


def _is_ufunc(op: Op) -> bool:
    return isinstance(op.primitive.function, np.ufunc) and not op.static


def _broadcasting(
    operands: Sequence[TensorType],
    shape: tuple[int, ...],
    extent: int,
    axes: Sequence[int | None],
    wish: int | None,
) -> Placement | None:
    axis = wish
    for operand, known in zip(operands, axes, strict=True):
        if known is not None:
            axis = known + len(shape) - operand.ndim
            break
    if axis is None or axis >= len(shape) or shape[axis] != extent:
        return None
    return Placement(axis, tuple(_cut(operand.shape, shape, axis, extent) for operand in operands))


def _cut(shape: tuple[int, ...], onto: tuple[int, ...], axis: int, extent: int) -> int | None:
    """Axis of an operand that is broadcast onto ``axis`` of a result, if the operand varies along it."""
    own = axis - (len(onto) - len(shape))
    return own if own >= 0 and shape[own] == extent else None


def _reduction(op: Op, operand: TensorType, extent: int, axis: int | None) -> Placement | None:
    if axis is None or axis >= operand.ndim or operand.shape[axis] != extent:
        return None
    over = op.keyword("axis")
    if axis in over:
        # No complex number is smaller than all others, so a running maximum of them has no start.
        ordered = op.name in ("sum", "prod") or not operand.is_complex
        return Placement(None, (axis,)) if ordered else None
    if op.keyword("keepdims"):
        return Placement(axis, (axis,))
    return Placement(axis - sum(other < axis for other in over), (axis,))


def _reshaped(old: tuple[int, ...], axis: int, shape: tuple[int, ...]) -> int | None:
    ahead = math.prod(old[:axis])
    for new, extent in enumerate(shape):
        if extent == old[axis] and math.prod(shape[:new]) == ahead:
            return new
    return None


def _indexed(index: Index, axis: int, extent: int) -> int | None:
    entries = [entry for entry in index if entry is not NEWAXIS]
    return None if GATHER in index or entries[axis] != Slice(0, extent) else _piece(index, axis)


def _joining(
    op: Op,
    operands: Sequence[TensorType],
    result: TensorType,
    extent: int,
    axes: Sequence[int | None],
    wish: int | None,
) -> Placement | None:
    over = op.keyword("axis")
    stacked = op.name == "stack"
    axis = wish
    for known in axes:
        if known is not None:
            axis = known + (stacked and known >= over)
            break
    if axis is None or axis == over or axis >= result.ndim or result.shape[axis] != extent:
        return None
    return Placement(axis, (axis - (stacked and axis > over),) * len(operands))


def _scatter(
    op: Op,
    operands: Sequence[TensorType],
    result: TensorType,
    extent: int,
    axes: Sequence[int | None],
    wish: int | None,
) -> Placement | None:
    indices = op.keyword("indices")
    if any(GATHER in index for index in indices):
        return None
    axis = wish
    for index, known in zip(indices, axes, strict=True):
        if known is not None:
            found = axis_behind(index, known)
            axis = None if found is None else found[0]
            break
    if axis is None:
        return None
    reads = []
    for index, operand in zip(indices, operands, strict=True):
        piece = _piece(index, axis)
        entry = [entry for entry in index if entry is not NEWAXIS][axis]
        if piece is None or not isinstance(entry, Slice) or entry.step != 1 or entry.stop is None:
            return None
        if operand.shape != _region(index, result.shape) or operand.shape[piece] != extent:
            return None
        reads.append(piece)
    return Placement(axis if result.shape[axis] == extent else None, tuple(reads))


def _piece(index: Index, axis: int) -> int | None:
    """Axis of the region that ``axis`` of the indexed array becomes."""
    old = new = 0
    for entry in index:
        if entry is NEWAXIS:
            new += 1
            continue
        if old == axis:
            return new if isinstance(entry, Slice) else None
        old += 1
        new += isinstance(entry, Slice)
    return None


def _region(index: Index, shape: tuple[int, ...]) -> tuple[int, ...]:
    found, extents = [], iter(shape)
    for entry in index:
        if entry is NEWAXIS:
            found.append(1)
            continue
        extent = next(extents)
        if isinstance(entry, Slice):
            found.append(len(entry.positions(extent)))
    return tuple(found)
