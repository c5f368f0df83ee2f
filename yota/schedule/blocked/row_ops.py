"""Which ops work row by row: how one axis of the operands becomes one axis of the result.

A blocked loop cuts one axis of extent n into pieces. An op may be in the loop if piece i of its result needs
only piece i of its operands (and whole operands that the loop does not change). An op that adds up over the
axis, or adds shifted pieces into a longer array, may be in the loop too; its result is complete after the loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yota.ir.access_maps import carried_axis
from yota.ir.indexing import GATHER, Slice, axis_behind, entry_of, pattern_shape
from yota.ir.semantics import JOINS, VIEWS, AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class Placement:
    """How an op sits in a loop.

    axis: blocked axis of the result; None if the result is complete only after the loop.
    reads: for each operand the axis it is cut along, or None if it is read whole.
    """

    axis: int | None
    reads: tuple[int | None, ...]


def place(
    op: Op, types: Mapping[int, TensorType], extent: int, known: Mapping[int, int], wish: int | None
) -> Placement | None:
    """How ``op`` fits a loop over ``extent`` rows, or None if it does not.

    known: blocked axis of each operand that the loop itself computes; those are read as pieces or not at all.
    wish: axis to cut the result along (for a reduction: the operand) when no operand is known.
    """
    operands = tuple(types[operand] for operand in op.operands)
    axes = tuple(known.get(operand) for operand in op.operands)
    if not known and wish is None:
        return None
    found = _Fitting(op, operands, types[op.result], extent, axes, wish).place()
    if found is None:
        return None
    for axis, read in zip(axes, found.reads, strict=True):
        if axis is not None and read != axis:
            return None
    return found


@dataclass(frozen=True, slots=True)
class _Fitting:
    """An op beside a loop: its types, the loop's rows, and the axes that operands are, or else may be, cut along."""

    op: Op
    operands: tuple[TensorType, ...]
    result: TensorType
    extent: int
    axes: tuple[int | None, ...]
    wish: int | None

    def place(self) -> Placement | None:
        op, access = self.op, self.op.access
        if op.semantics.rowwise and not (op.semantics.ufunc and op.static):
            return self._broadcasting()
        if access == AccessMap.REDUCTION:
            return self._reduction()
        if access in JOINS:
            return self._joining()
        if access == AccessMap.SCATTER:
            return self._scatter()
        if not self.axes or self.axes[0] is None or not (access in VIEWS or access == AccessMap.READ):
            return None
        new = self._carried()
        if new is None or self.result.shape[new] != self.extent:
            return None
        return Placement(new, self.axes[:1] + (None,) * (len(self.operands) - 1))

    def _known(self) -> tuple[int, int] | None:
        """The first operand that the loop computes, and the axis that it is cut along."""
        return next(((number, axis) for number, axis in enumerate(self.axes) if axis is not None), None)

    def _carried(self) -> int | None:
        """The axis of the result that goes with the known one of an operand; without one, the one wished for."""
        known = self._known()
        if known is None:
            return self.wish
        return carried_axis(self.op, self.operands[known[0]].shape, self.result.shape, known[1])

    def _broadcasting(self) -> Placement | None:
        shape, axis = self.result.shape, self._carried()
        if axis is None or axis >= len(shape) or shape[axis] != self.extent:
            return None
        return Placement(axis, tuple(_cut(operand.shape, shape, axis, self.extent) for operand in self.operands))

    def _joining(self) -> Placement | None:
        over, axis = self.op.keyword("axis"), self._carried()
        if axis is None or axis == over or axis >= self.result.ndim or self.result.shape[axis] != self.extent:
            return None
        return Placement(axis, (axis - (self.op.access == AccessMap.STACK and axis > over),) * len(self.operands))

    def _reduction(self) -> Placement | None:
        axis, operand = self.wish if self.axes[0] is None else self.axes[0], self.operands[0]
        if axis is None or axis >= operand.ndim or operand.shape[axis] != self.extent:
            return None
        new = carried_axis(self.op, operand.shape, self.result.shape, axis)
        # No complex number is smaller than all others, so a running maximum of them has no start.
        ordered = self.op.semantics.fold in ("add", "multiply") or not operand.is_complex
        return Placement(new, (axis,)) if new is not None or ordered else None

    def _scatter(self) -> Placement | None:
        indices, known, axis = self.op.keyword("indices"), self._known(), self.wish
        if any(GATHER in index for index in indices):
            return None
        if known is not None:
            found = axis_behind(indices[known[0]], known[1])
            axis = None if found is None else found[0]
        if axis is None:
            return None
        reads = []
        for index, operand in zip(indices, self.operands, strict=True):
            entry, piece = entry_of(index, axis)
            if not isinstance(entry, Slice) or entry.step != 1 or entry.stop is None:
                return None
            if operand.shape != pattern_shape(index) or operand.shape[piece] != self.extent:
                return None
            reads.append(piece)
        return Placement(axis if self.result.shape[axis] == self.extent else None, tuple(reads))


def _cut(shape: tuple[int, ...], onto: tuple[int, ...], axis: int, extent: int) -> int | None:
    """Axis of an operand that is broadcast onto ``axis`` of a result, if the operand varies along it."""
    own = axis - (len(onto) - len(shape))
    return own if own >= 0 and shape[own] == extent else None
