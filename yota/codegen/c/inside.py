"""Whether an element lies inside of a piece of an array: for all counters of its loops, or where those must be cut."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence

from yota.codegen.c.index import Bounds, Linear, Point
from yota.ir.indexing import NEWAXIS, Index, Slice

__all__ = ["CutError", "UnreachableError", "by_place", "piece_of", "pieces_at", "within"]


class CutError(Exception):
    """Different pieces are needed on the two sides of ``place`` along loop axis ``axis``."""

    def __init__(self, axis: int, place: int) -> None:
        super().__init__(axis, place)
        self.axis, self.place = axis, place


class UnreachableError(Exception):
    """An element is at no linear form of the loop counters, or too much work lies behind it.

    ``variable`` is what it is an element of, if that is what is in the way.
    """

    variable: int | None = None


def piece_of(where: Linear, cuts: Sequence[int], bounds: Bounds) -> int:
    """Between which two of ``cuts`` a position is, all counters considered."""
    low, high = where.reach(bounds)
    # Of pieces without elements, which end where they start, the one that follows them counts.
    number = bisect.bisect_right(cuts, low) - 1
    if not 0 <= number < len(cuts) - 1:
        raise UnreachableError
    stop = cuts[number + 1]
    if high >= stop:
        raise _cut(where, stop)
    return number


def by_place(indices: Sequence[Index]) -> Mapping[tuple[int, ...], Sequence[int]] | None:
    """Which of ``indices`` are at each place; None if one is more than a single place."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, index in enumerate(indices):
        place = tuple(entry for entry in index if isinstance(entry, int))
        if len(place) < len(index):
            return None
        found.setdefault(place, []).append(number)
    return found


def pieces_at(
    point: Point, singles: Mapping[tuple[int, ...], Sequence[int]] | None, every: Sequence[int]
) -> Sequence[int]:
    """Numbers of the pieces that may hold a point: of single elements those that do, where the point is a place."""
    if singles is None or any(each.terms for each in point):
        return every
    return singles.get(tuple(each.constant for each in point), ())


def within(point: Point, index: Index, bounds: Bounds) -> Point | None:
    """Where in a region that is written to ``index`` a point lies; None if it lies outside."""
    found: list[Linear] = []
    axes = iter(point)
    for entry in index:
        if entry is NEWAXIS:
            found.append(Linear(0))
            continue
        where = next(axes)
        low, high = where.reach(bounds)
        if isinstance(entry, Slice):
            inner = _inside(where, entry, bounds) if entry.count() else None
            if inner is None:
                return None
            found.append(inner)
        else:
            assert isinstance(entry, int)
            if high < entry or low > entry:
                return None
            if low != high:
                raise _cut(where, entry if low < entry else entry + 1)
    return tuple(found)


def _inside(where: Linear, taken: Slice, bounds: Bounds) -> Linear | None:
    low, high = where.reach(bounds)
    ends = taken.start, taken.start + (taken.count() - 1) * taken.step
    first, last = min(ends), max(ends)
    if high < first or low > last:
        return None
    if low < first:
        raise _cut(where, first)
    if high > last:
        raise _cut(where, last + 1)
    distance = where.shifted(-taken.start)
    step = taken.step
    if step == 1:
        return distance
    if any(each % step for _, each in distance.terms):
        if low == high:
            return None if distance.constant % step else Linear(distance.constant // step)
        raise UnreachableError
    if distance.constant % step:
        return None
    return Linear(distance.constant // step, tuple((axis, each // step) for axis, each in distance.terms))


def _cut(where: Linear, place: int) -> Exception:
    """The cut that tells positions below ``place`` from the others."""
    if len(where.terms) != 1 or where.terms[0][0] < 0:
        return UnreachableError()
    ((axis, coefficient),) = where.terms
    if coefficient > 0:
        return CutError(axis, -((where.constant - place) // coefficient))
    return CutError(axis, (where.constant - place) // -coefficient + 1)
