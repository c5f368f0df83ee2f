"""What fusion is made of: ops placed in loops, loops, and loops that still grow."""

from __future__ import annotations

from dataclasses import dataclass, field

from yota.ir.tape import Op
from yota.passes.order import ROWS, Layout
from yota.passes.rows import Placement

__all__ = ["Growing", "Member", "Unit"]


@dataclass(frozen=True, slots=True)
class Member:
    """An op in a unit; ``placement`` says how it is cut in a loop, and is None outside of loops."""

    op: Op
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """What runs as one: a single op on whole arrays, or a loop over ``extent`` rows, ``block`` at a time.

    Parameters
    ----------
    members
        Its ops in order.
    extent, block
        Rows of the loop, and rows in one piece; 0 for a single op. With a single piece there is no loop.
    stored
        Variables computed in pieces that are needed whole outside of the loop.
    layout
        How pieces lie in memory.
    """

    members: tuple[Member, ...]
    extent: int = 0
    block: int = 0
    stored: frozenset[int] = frozenset()
    layout: Layout = ROWS

    @property
    def local(self) -> dict[int, int]:
        """Blocked axis of each variable that exists in pieces inside the loop."""
        return {
            member.op.result: member.placement.axis
            for member in self.members
            if member.placement is not None and member.placement.axis is not None
        }

    @property
    def reads(self) -> tuple[int, ...]:
        """Variables of other units that this one reads, each once."""
        local = self.local
        seen = dict.fromkeys(
            operand for member in self.members for operand in member.op.operands if operand not in local
        )
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
