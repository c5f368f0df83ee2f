"""Where the threads of one kernel have elements: in memory, in registers that hold neighbours, or in shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from yota.codegen.c.index import Linear
from yota.codegen.c.types import c_type
from yota.codegen.cuda.access import Access, Place
from yota.codegen.cuda.layout import Layout
from yota.codegen.names import Names
from yota.ir.types import TensorType

__all__ = ["Memory", "shifted"]


class Memory:
    """The arrays of a kernel.

    Parameters
    ----------
    types
        Types of all variables.
    arrays, results
        Names of what it reads and of what it writes.
    layout
        How arguments and results lie in memory.

    Attributes
    ----------
    access
        How its threads reach them.
    places
        Index arrays, with the extents of the axes that they have places on.
    packs, held
        Names of registers with neighbouring elements, and of rows in shared memory.
    """

    def __init__(
        self,
        types: Mapping[int, TensorType],
        arrays: Mapping[int, str],
        results: Mapping[int, str],
        layout: Layout,
        threads: int,
    ) -> None:
        self.types, self.arrays, self.results, self.layout = types, arrays, results, layout
        self.access = Access(threads)
        self.places: dict[int, int] = {}
        self.packs: dict[Place, str] = {}
        self.held: dict[int, str] = {}

    def reach(self, access: Access, names: Names) -> None:
        """Reach elements as ``access`` says, by way of what gets ``names``."""
        self.access = access
        for variable, place in sorted(access.packed, key=lambda each: (each[0], each[1].constant)):
            self.packs[variable, place] = names.fresh(f"{self.name(variable)}_pack")
        for variable in access.rows:
            self.held[variable] = names.fresh(f"{self.name(variable)}_rows")

    def name(self, variable: int) -> str:
        """The name of an array that is read or written."""
        return self.results[variable] if variable in self.results else self.arrays[variable]

    def kind(self, variable: int) -> str:
        """The type of its elements."""
        return c_type(self.layout.type(variable, self.types).dtype)

    def read(self, variable: int, offset: Linear, place: str) -> str:
        """An element as a value to compute with, wherever the kernel has it; ``place`` says where it is in memory."""
        text = self.near(variable, offset)
        if text is None:
            pointed = self.types[variable].shape or variable in self.layout.pointers
            text = f"{self.arrays[variable]}[{place}]" if pointed else self.arrays[variable]
        if variable in self.places:
            return f"within({text}, {self.places[variable]}, outside)"
        return f"float({text})" if variable in self.layout.stored else text

    def near(self, variable: int, offset: Linear) -> str | None:
        """An element in a register or in shared memory, if that is where the kernel has it."""
        if (variable, offset) in self.packs:
            return f"{self.packs[variable, offset]}[step]"
        if variable in self.held:
            pitch = self.access.rows[variable].pitch
            return f"{self.held[variable]}[{shifted(f'{pitch} * place', offset.constant)}]" if offset.terms else None
        return None


def shifted(name: str, distance: int) -> str:
    """``name + distance``."""
    return name if not distance else f"{name} + {distance}" if distance > 0 else f"{name} - {-distance}"
