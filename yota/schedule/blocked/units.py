"""The units of a schedule, and which of the shifted pieces of an array may be written rather than added.

NumPy's inner loops run along the last axis in memory: a sum over the three coordinates of a million points pays
the overhead of a million inner loops. With the coordinates outermost it is two additions of long rows.

The loop runs upwards, so the piece that lands furthest up is the first to reach each row: it is written, the
others are added to it, and only the rows that it never reaches have to be zeroed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from yota.ir.indexing import NEWAXIS, Index, Slice, axis_behind
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op
from yota.ir.types import TensorType
from yota.optimize.array_writes import is_view
from yota.schedule.blocked.row_ops import Placement

_WHOLE = Placement(None, ())
_SHORT = 16
_SHORTEST_COLUMN = 48
_LONGEST_SUM = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a loop's pieces in memory.

    ``rows``: as the axes are. ``planes``: a last axis of one of the extents ``short`` outermost. ``columns``: the
    blocked axis innermost.
    """

    kind: str
    short: tuple[int, ...] = ()

    def order(self, type: TensorType, axis: int | None) -> tuple[int, ...] | None:
        """Axes of an array cut along ``axis`` from outermost to innermost; None if as they are."""
        last = type.ndim - 1
        if type.ndim < 2 or axis == last:
            return None
        if self.kind == "planes":
            short = type.shape[last]
            return (last, *range(last)) if short in self.short and type.size > 4 * short else None
        if self.kind == "columns" and axis is not None and type.size > type.shape[axis]:
            return (*(other for other in range(type.ndim) if other != axis), axis)
        return None


ROWS = Layout("rows")


def choose(members: Sequence[Member], axes: Mapping[int, int], types: Mapping[int, TensorType], block: int) -> Layout:
    """The layout for a loop of these members with pieces of ``block`` rows."""
    mixing = _mixing(members, types)
    if not mixing:
        return ROWS
    most = max(mixing, key=lambda extent: (mixing[extent], extent))
    short = tuple(sorted(extent for extent in mixing if extent <= _SHORT)) if most <= _SHORT else ()
    middle = [
        types[v].shape[-2]
        for v, axis in axes.items()
        if types[v].ndim > 2 and axis < types[v].ndim - 2 and types[v].shape[-1] in short
    ]
    if short and (not middle or max(middle) > max(block, _SHORTEST_COLUMN)):
        return Layout("planes", short)
    if block >= max(_SHORTEST_COLUMN, most):
        return Layout("columns")
    return Layout("planes", short) if short else ROWS


def copied_whole(type: TensorType, unit: Unit, types: Mapping[int, TensorType]) -> bool:
    """Whether an operand is so small beside the loop's work that it is put in order once, ahead of the loop."""
    largest = max(types[member.op.result].size for member in unit.members)
    return 8 * type.size <= largest


def _mixing(members: Sequence[Member], types: Mapping[int, TensorType]) -> Counter[int]:
    """On how many elements ops sum over, or spread along, a short last axis; by its extent."""
    found: Counter[int] = Counter()
    for member in members:
        op, placement = member.op, member.placement
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


@dataclass(frozen=True, slots=True)
class Member:
    """An op in a unit; ``placement`` says how it is cut in a loop."""

    op: Op
    placement: Placement = _WHOLE


class Kernel(Protocol):
    """A kernel of another language: the variables that it reads, and those that it gives."""

    @property
    def inputs(self) -> tuple[int, ...]:
        """What it reads."""

    @property
    def outputs(self) -> tuple[int, ...]:
        """What it gives."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What runs as one: a single op on whole arrays, a loop over ``extent`` rows, ``block`` at a time, or a kernel.

    extent, block: rows of the loop, and rows in one piece; 0 for a single op. With a single piece there is no loop.
    stored: variables computed in pieces that are needed whole outside of the loop.
    inputs: for a kernel of another language, the variables that it reads: its members are the ops of its results alone,
        and it computes what lies between by itself. Its results are new arrays. None for all else.
    """

    members: tuple[Member, ...]
    extent: int = 0
    block: int = 0
    stored: frozenset[int] = frozenset()
    layout: Layout = ROWS
    inputs: tuple[int, ...] | None = None

    @classmethod
    def of(cls, step: Op | Kernel, definitions: Mapping[int, Op]) -> Unit:
        """The unit of a single op, or of a kernel."""
        if isinstance(step, Op):
            return cls((Member(step),))
        return cls(tuple(Member(definitions[variable]) for variable in step.outputs), inputs=step.inputs)

    @property
    def is_kernel(self) -> bool:
        """Whether another language computes it."""
        return self.inputs is not None

    @property
    def is_op(self) -> bool:
        """Whether it is a single op on whole arrays."""
        return not self.extent and self.inputs is None

    @property
    def operands(self) -> tuple[int, ...]:
        """What it names, as often as it does."""
        if self.inputs is not None:
            return self.inputs
        return tuple(operand for member in self.members for operand in member.op.operands)

    @property
    def local(self) -> dict[int, int]:
        """Blocked axis of each variable that exists in pieces inside the loop."""
        return {member.op.result: member.placement.axis for member in self.members if member.placement.axis is not None}

    @property
    def reads(self) -> tuple[int, ...]:
        """Variables of other units that this one reads, each once."""
        if self.inputs is not None:
            return self.inputs
        local = self.local
        seen = dict.fromkeys(operand for operand in self.operands if operand not in local)
        own = {member.op.result for member in self.members}
        return tuple(operand for operand in seen if operand not in own)

    @property
    def results(self) -> tuple[int, ...]:
        """Variables that are whole once the unit has run."""
        if not self.extent:
            return tuple(member.op.result for member in self.members)
        local = self.local
        return tuple(
            member.op.result
            for member in self.members
            if member.op.result in self.stored or member.op.result not in local
        )


@dataclass(slots=True)
class Growing:
    """A unit under construction.

    ``repeated`` holds variables that another group computes too and stores if need be; ``before`` and ``bit`` are
    masks of the groups that must have run before this one, and of this group itself.
    """

    members: list[Member]
    extent: int = 0
    axes: dict[int, int] = field(default_factory=dict)
    repeated: set[int] = field(default_factory=set)
    before: int = 0
    bit: int = 0


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
    if is_view(next(member.op for member in unit.members if member.op.result == variable), types):
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
