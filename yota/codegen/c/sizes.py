"""What a C function computes from the sizes of its arguments, which are not known when it is written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yota.codegen.c.lines import filled
from yota.ir.extents import Extent

__all__ = ["Made", "Sizes", "bytes_of", "put_in_place"]


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
        How many elements there are; 0 for a number.
    loops
        The loops that the statement stands in.
    counting
        Whether it is the array of all places of an axis.
    """

    name: str
    kind: str
    text: str
    count: int = 0
    loops: tuple[str, ...] = ()
    counting: bool = False


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
    may_be_none
        Whether a number of elements is 0 at some sizes.
    """

    names: tuple[str, ...] = ()
    made: tuple[Made, ...] = ()
    on_stack: int = 2_048
    may_be_none: Callable[[int], bool] = lambda count: False

    def allocated(self, kind: str, name: str, count: int) -> str:
        """The definition of an array on the heap: some C libraries have no memory of no bytes."""
        return f"{kind} *const {name} = malloc({bytes_of(count, name)}{' + 1' if self.may_be_none(count) else ''});"


def bytes_of(count: int, array: str) -> str:
    """C text of how many bytes so many elements of an array take."""
    return f"{f'(size_t){count}' if isinstance(count, Extent) else count} * sizeof *{array}"


def put_in_place(made: Sequence[Made]) -> list[str]:
    """Statements that compute arrays; those in the same loops run in them together."""
    lines = []
    for loops, group in itertools.groupby((each for each in made if each.count), key=lambda each: each.loops):
        statements = [line for each in group for line in filled(each.text)]
        inner = "    " * len(loops)
        lines += [f"{'    ' * depth}{loop}" for depth, loop in enumerate(loops)]
        if len(statements) > 1:
            lines[-1] += " {"
        lines += [f"{inner}{each}" for each in statements]
        lines += [f"{inner[4:]}}}"] if len(statements) > 1 else []
    return lines
