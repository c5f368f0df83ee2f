"""How arrays lie in memory, and how the threads of a kernel reach them: one by one, several at once, or by rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from yota.emit.c.dialect import c_type
from yota.emit.names import Names
from yota.ir.types import TensorType
from yota.schedule.nests.linear_index import Linear


@dataclass(frozen=True, slots=True)
class Layout:
    """How arguments and results lie in memory.

    pointers: variables without axes that are in the device's memory, rather than an argument's value.
    strides: strides of arrays that are not in C order, in elements.
    tables: names of constant arrays that the file itself holds.
    stored: the dtype in memory of variables of which it is not that in which they are computed.
    inside: index arrays that are known to have places on their axes only.
    """

    pointers: frozenset[int]
    strides: Mapping[int, Sequence[int]] = field(default_factory=dict)
    tables: Mapping[int, str] = field(default_factory=dict)
    stored: Mapping[int, np.dtype[Any]] = field(default_factory=dict)
    inside: frozenset[int] = frozenset()

    def type(self, variable: int, types: Mapping[int, TensorType]) -> TensorType:
        """The type of a variable in memory."""
        found = types[variable]
        return replace(found, dtype=self.stored[variable]) if variable in self.stored else found


Place = tuple[int, Linear]
"""An array's variable, and where in it."""

_WIDEST = 16
"""Bytes that a thread can load or store at once."""
_MOST_VALUES = 160
"""Values for one point up to which a thread has registers for several points."""
_LONGEST_ROW = 32
_SHARED = 48 * 1024
"""Bytes of shared memory that a block can always have."""


@dataclass(frozen=True, slots=True)
class Access:
    """What is reached how.

    width: neighbouring points that a thread computes; 1 unless ``packed`` holds something.
    packed: places read and written ``width`` elements at once.
    rows: arrays of which a block brings whole rows into shared memory, or takes them out, and lengths of these rows.
    threads: threads of a block for which there is enough of that.
    """

    threads: int
    width: int = 1
    packed: frozenset[Place] = frozenset()
    rows: Mapping[int, int] = field(default_factory=dict)


def access_of(
    places: Iterable[Place], types: Mapping[int, TensorType], axis: int, points: int, threads: int, values: int
) -> Access:
    """How a loop over ``axis`` reaches ``places`` in arrays; it computes about so many ``values`` at each point."""
    # Of places from index arrays nobody knows which are neighbours.
    places = {
        (variable, place)
        for variable, place in places
        if types[variable].shape and place.coefficient(axis) and all(each >= 0 for each, _ in place.terms)
    }
    rows = _rows(places, types, axis, points)
    if rows:
        fitting = _fitting(rows, types, threads)
        if fitting:
            return Access(fitting, rows=rows)
    near = {(variable, place) for variable, place in places if place.coefficient(axis) == 1}
    if not near or values > _MOST_VALUES:
        return Access(threads)
    width = _WIDEST // max(types[variable].dtype.itemsize for variable, _ in near)
    if width < 2 or points < width * threads:
        return Access(threads)
    packed = frozenset(each for each in near if not each[1].constant % width)
    return Access(threads, width, packed) if packed else Access(threads)


def _rows(places: set[Place], types: Mapping[int, TensorType], axis: int, points: int) -> dict[int, int]:
    """Arrays that are read or written row by row, most of each row."""
    found: dict[int, int] = {}
    for variable in {variable for variable, _ in places}:
        own = [place for each, place in places if each == variable]
        length = types[variable].size // points
        whole = types[variable].size == points * length and 3 <= length <= _LONGEST_ROW
        inside = all(place.coefficient(axis) == length and 0 <= place.constant < length for place in own)
        if whole and inside and 2 * len(own) > length:
            found[variable] = length
    return dict(sorted(found.items()))


def _fitting(rows: Mapping[int, int], types: Mapping[int, TensorType], threads: int) -> int:
    """Threads of a block whose rows fit into shared memory, no fewer than two warps; 0 if there is no such number."""
    each = sum(_pitch(row) * types[variable].dtype.itemsize for variable, row in rows.items())
    while threads * each > _SHARED // 2 and threads > 64:
        threads //= 2
    return threads if threads * each <= _SHARED // 2 else 0


def _pitch(length: int) -> int:
    """How far apart rows are kept in shared memory: an odd number, so that threads meet in no bank."""
    return length | 1


@dataclass(frozen=True, slots=True)
class Reached:
    """An array, or a part of one, that is held close: its names there and in memory, and where it starts."""

    name: str
    kind: str
    array: str
    is_result: bool
    start: str
    length: int
    pitch: int


@dataclass(slots=True)
class Memory:
    """The arrays of a kernel.

    places: index arrays, with the extents of the axes that they have places on.
    packs, held: names of registers with neighbouring elements, and of rows in shared memory.
    """

    types: Mapping[int, TensorType]
    arrays: Mapping[int, str]
    results: Mapping[int, str]
    layout: Layout
    access: Access
    places: Mapping[int, int] = field(default_factory=dict)
    packs: dict[Place, str] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)

    def reach(self, access: Access, names: Names) -> None:
        """Reach elements as ``access`` says, by way of what gets ``names``."""
        self.access = access
        for variable, place in sorted(access.packed, key=lambda each: (each[0], each[1].constant)):
            self.packs[variable, place] = names.fresh(f"{self.name(variable)}_pack")
        for variable in access.rows:
            self.held[variable] = names.fresh(f"{self.name(variable)}_rows")

    def all_packs(self) -> list[Reached]:
        """What threads hold in registers."""
        return [self._reached(v, name, start=_shifted("base", at.constant)) for (v, at), name in self.packs.items()]

    def all_rows(self) -> list[Reached]:
        """What blocks hold in shared memory."""
        return [self._reached(v, name, self.access.rows[v]) for v, name in self.held.items()]

    def _reached(self, variable: int, name: str, length: int = 1, start: str = "") -> Reached:
        kind, array = self.kind(variable), self.name(variable)
        return Reached(name, kind, array, variable in self.results, start, length, _pitch(length))

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
            pitch = _pitch(self.access.rows[variable])
            return f"{self.held[variable]}[{_shifted(f'{pitch} * place', offset.constant)}]" if offset.terms else None
        return None


def _shifted(name: str, distance: int) -> str:
    return name if not distance else f"{name} + {distance}" if distance > 0 else f"{name} - {-distance}"
