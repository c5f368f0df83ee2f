"""Indices as hashable data, and the primitives for indexing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from yota.ir.primitive import Primitive
from yota.ir.types import Record, TensorType

_T = TypeVar("_T")


@dataclass(slots=True, unsafe_hash=True)
class Slice(Record):
    """A normalised slice of an axis; ``stop`` is None only for a negative step that includes element 0."""

    start: int
    stop: int | None
    step: int = 1

    def positions(self, extent: int) -> range:
        """The selected positions of an axis of ``extent`` elements."""
        return range(extent)[self.start : self.stop : self.step]

    def ends(self) -> tuple[int, int]:
        """The first place that it may take, and the one after the last."""
        if self.step > 0:
            assert self.stop is not None
            return self.start, self.stop
        return 0 if self.stop is None else self.stop + 1, self.start + 1

    def is_whole(self, extent: int) -> bool:
        """Whether it selects all of an axis of ``extent`` elements, in order."""
        return self.start == 0 and self.stop == extent and self.step == 1

    def count(self) -> int:
        """The number of selected elements of an axis."""
        stop = -1 if self.stop is None else self.stop
        found = -((self.start - stop) // self.step)
        return max(found, 0)

    def __str__(self) -> str:
        stop = "" if self.stop is None else self.stop
        return f"{self.start}:{stop}" + (f":{self.step}" if self.step != 1 else "")


@dataclass(frozen=True, slots=True)
class _Marker:
    name: str

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


NEWAXIS = _Marker("newaxis")
"""Adds an axis of extent 1."""
GATHER = _Marker("gather")
"""Placeholder of the next integer index array among the operands."""

Index: TypeAlias = tuple[int | Slice | _Marker, ...]
"""One entry for each axis of the indexed array (``NEWAXIS`` entries aside): always complete, no ellipsis."""


def to_numpy(index: Index, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The index tuple for NumPy, with ``arrays`` at the ``GATHER`` marks.

    >>> to_numpy((2, Slice(0, 4), NEWAXIS), [])
    (2, slice(0, 4, 1), None)
    """
    rest = iter(arrays)
    return tuple(
        [
            slice(entry.start, entry.stop, entry.step)
            if isinstance(entry, Slice)
            else None
            if entry is NEWAXIS
            else next(rest)
            if entry is GATHER
            else entry
            for entry in index
        ]
    )


def takes_all(index: Index, shape: Sequence[int]) -> bool:
    """Whether an index takes all elements of an array of ``shape``, in order."""
    return len(index) == len(shape) and all(
        isinstance(entry, Slice) and entry.is_whole(extent) for entry, extent in zip(index, shape, strict=True)
    )


def axis_behind(index: Index, axis: int) -> tuple[int, Slice] | None:
    """The axis of ``x`` that becomes ``axis`` of ``x[index]`` by a slice, and the slice; None if there is none.

    >>> axis_behind((2, NEWAXIS, Slice(1, 4)), 1)
    (1, Slice(start=1, stop=4, step=1))
    """
    own = new = 0
    for entry in index:
        if entry is NEWAXIS:
            new += 1
            continue
        if isinstance(entry, Slice):
            if new == axis:
                return own, entry
            new += 1
        own += 1
    return None


def entry_of(index: Index, axis: int) -> tuple[int | Slice | _Marker, int]:
    """The entry for ``axis`` of ``x``, and the axis of ``x[index]`` that it becomes if it is a slice.

    >>> entry_of((2, NEWAXIS, Slice(1, 4)), 1)
    (Slice(start=1, stop=4, step=1), 1)
    """
    new = 0
    for entry in index:
        if entry is NEWAXIS:
            new += 1
            continue
        if not axis:
            return entry, new
        axis -= 1
        new += isinstance(entry, Slice)
    raise IndexError(axis)


def pattern_shape(index: Index, arrays: Sequence[tuple[int, ...]] = ()) -> tuple[int, ...]:
    """Shape of ``x[index]``; ``arrays`` are the shapes of the index arrays.

    >>> pattern_shape((GATHER, Slice(1, 3)), [(7,)])
    (7, 2)
    """
    front, inner = layout(index)
    own: list[int] = []
    for entry in index:
        if isinstance(entry, Slice):
            own.append(entry.count())
        elif entry is NEWAXIS:
            own.append(1)
    return (*own[:front], *broadcast(arrays), *own[front:]) if inner else tuple(own)


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast shape of index arrays."""
    reverse = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return tuple(next((each for each in extents if each != 1), 1) for extents in reverse)[::-1]


def layout(index: Index) -> tuple[int, bool]:
    """Number of result axes before those of the index arrays, and whether there are index arrays."""
    special = [number for number, entry in enumerate(index) if entry is GATHER or isinstance(entry, int)]
    if not special:
        return 0, False
    together = special == list(range(special[0], special[-1] + 1))
    return (special[0] if together else 0), True


def getitem(x: Any, *where: Any, index: Index) -> Any:
    """``x[index]``, with the integer arrays ``where`` at the ``GATHER`` marks."""
    return (x if type(x) is np.ndarray else np.asarray(x))[to_numpy(index, where)]


def setitem(x: Any, value: Any, *where: Any, index: Index) -> Any:
    """A copy of ``x`` with ``value`` written at ``index``."""
    result = x.copy("K") if type(x) is np.ndarray else np.array(x)
    result[to_numpy(index, where)] = value
    return result


def scatter(*operands: Any, shape: tuple[int, ...], indices: tuple[Index, ...]) -> Any:
    """Zeros of ``shape`` with each piece added at its index; repeated indices accumulate.

    ``operands`` are, for each entry of ``indices``, the piece and then its index arrays.
    """
    pieces = pieces_of(map(np.asarray, operands), indices)
    return _added(np.zeros(shape, np.result_type(*(piece.dtype for piece, _, _ in pieces))), pieces)


def deposit(x: Any, *operands: Any, indices: tuple[Index, ...]) -> Any:
    """A copy of ``x`` with each piece added at its index; the other operands are those of `scatter`."""
    return _added(np.array(x), pieces_of(map(np.asarray, operands), indices))


def pieces_of(operands: Iterable[_T], indices: Iterable[Index]) -> list[tuple[_T, list[_T], Index]]:
    """Each piece of a `scatter` with its index arrays and its index.

    >>> pieces_of("abcd", [(GATHER, 0), (1, GATHER)])
    [('a', ['b'], (gather, 0)), ('c', ['d'], (1, gather))]
    """
    rest = iter(operands)
    return [(next(rest), [next(rest) for entry in index if entry is GATHER], index) for index in indices]


def _added(result: Any, pieces: list[tuple[Any, list[Any], Index]]) -> Any:
    for piece, where, index in pieces:
        if where:
            np.add.at(result, to_numpy(index, where), piece)
        else:
            result[to_numpy(index, where)] += piece
    return result


def _positions(*, shape: tuple[int, ...], start: int, steps: tuple[int, ...]) -> Any:
    """``start`` plus the index along each axis times its step."""
    return np.int64(start) + sum(
        step * index for step, index in zip(steps, np.indices(shape, sparse=True), strict=True)
    )


def _whole(operands: tuple[TensorType, ...], static: tuple[tuple[str, Any], ...]) -> TensorType:
    return TensorType(np.dtype(np.int64), dict(static)["shape"])


POSITIONS = Primitive("positions", None, False, _positions, None, "", _whole)
"""Whole numbers that are an affine function of their indices, of named sizes too."""
