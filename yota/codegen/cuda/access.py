"""How a kernel's threads reach arrays: several neighbouring elements at once, or rows by way of shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from yota.codegen.c.index import Linear
from yota.ir.types import TensorType

__all__ = ["Access", "Place", "Row", "access_of"]

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
class Row:
    """Rows of ``length`` elements, kept ``pitch`` apart in shared memory so that threads meet in no bank."""

    length: int

    @property
    def pitch(self) -> int:
        """An odd number."""
        return self.length | 1


@dataclass(frozen=True, slots=True)
class Access:
    """What is reached how.

    Parameters
    ----------
    width
        Neighbouring points that a thread computes; 1 unless ``packed`` holds something.
    packed
        Places read and written ``width`` elements at once.
    rows
        Arrays of which a block brings whole rows into shared memory, or takes them out.
    threads
        Threads of a block for which there is enough of that.
    """

    threads: int
    width: int = 1
    packed: frozenset[Place] = frozenset()
    rows: Mapping[int, Row] = field(default_factory=dict)


def access_of(
    places: Iterable[Place], types: Mapping[int, TensorType], axis: int, points: int, threads: int, values: int
) -> Access:
    """How a loop over one axis reaches its arrays.

    Parameters
    ----------
    places
        What it reads and writes.
    axis, points
        The loop, and how long it is.
    values
        About how many values it computes for one point.
    """
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


def _rows(places: set[Place], types: Mapping[int, TensorType], axis: int, points: int) -> dict[int, Row]:
    """Arrays that are read or written row by row, most of each row."""
    found: dict[int, Row] = {}
    for variable in {variable for variable, _ in places}:
        own = [place for each, place in places if each == variable]
        length = types[variable].size // points
        whole = types[variable].size == points * length and 3 <= length <= _LONGEST_ROW
        inside = all(place.coefficient(axis) == length and 0 <= place.constant < length for place in own)
        if whole and inside and 2 * len(own) > length:
            found[variable] = Row(length)
    return dict(sorted(found.items()))


def _fitting(rows: Mapping[int, Row], types: Mapping[int, TensorType], threads: int) -> int:
    """Threads of a block whose rows fit into shared memory, no fewer than two warps; 0 if there is no such number."""
    each = sum(row.pitch * np.dtype(types[variable].dtype).itemsize for variable, row in rows.items())
    while threads * each > _SHARED // 2 and threads > 64:
        threads //= 2
    return threads if threads * each <= _SHARED // 2 else 0
