"""What fusion is made of: ops placed in loops, loops, and loops that still grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from yota.ir.tape import Op
from yota.passes.order import ROWS, Layout
from yota.passes.rows import Placement

__all__ = ["Growing", "Kernel", "Member", "Unit"]


@dataclass(frozen=True, slots=True)
class Member:
    """An op in a unit; ``placement`` says how it is cut in a loop, and is None outside of loops."""

    op: Op
    placement: Placement | None = None


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
    inputs
        For a kernel of another language, the variables that it reads: its members are the ops of its results alone,
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
        return {
            member.op.result: member.placement.axis
            for member in self.members
            if member.placement is not None and member.placement.axis is not None
        }

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
