"""What a C function computes from the sizes of its arguments, which are not known when it is written."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Made", "Sizes", "put_in_place"]


@dataclass(frozen=True, slots=True)
class Made:
    """A further input of a tape, which its function computes from sizes before all else.

    Parameters
    ----------
    kind
        The C type of its elements.
    text
        For a number, its value; else the statement that puts one element in place.
    count
        C text of how many elements there are; empty for a number.
    loops
        The loops that the statement stands in.
    counting
        Whether it is the array of all places of an axis.
    """

    name: str
    kind: str
    text: str
    count: str = ""
    loops: tuple[str, ...] = ()
    counting: bool = False

    @property
    def declaration(self) -> str:
        """Its definition."""
        if self.count:
            return f"{self.kind} *const {self.name} = malloc({self.count} * sizeof *{self.name});"
        return f"const {self.kind} {self.name} = {self.text};"


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a function takes from sizes.

    Parameters
    ----------
    names
        Names of the sizes.
    made
        The last inputs of the tape.
    on_stack
        Bytes of an intermediate array that may stand on the stack.
    """

    names: tuple[str, ...] = ()
    made: tuple[Made, ...] = ()
    on_stack: int = 2_048


def put_in_place(made: Sequence[Made]) -> list[str]:
    """Statements that compute arrays; those in the same loops run in them together."""
    lines = []
    for loops, group in itertools.groupby((each for each in made if each.count), key=lambda each: each.loops):
        statements = [each.text for each in group]
        inner = "    " * len(loops)
        lines += [f"{'    ' * depth}{loop}" for depth, loop in enumerate(loops)]
        if len(statements) > 1:
            lines[-1] += " {"
        lines += [f"{inner}{each}" for each in statements]
        lines += [f"{inner[4:]}}}"] if len(statements) > 1 else []
    return lines
