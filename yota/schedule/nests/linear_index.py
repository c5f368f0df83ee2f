"""Positions in arrays as linear forms of loop counters, and the values that one point of a loop nest computes."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from yota.ir import access_maps as access
from yota.ir.extents import Extent, at_most, require
from yota.ir.indexing import NEWAXIS, Index, Slice
from yota.ir.location import Location

Bounds: TypeAlias = Mapping[int, tuple[int, int]]
"""For each loop axis its first counter, and one past its last."""


@dataclass(frozen=True, slots=True)
class Linear:
    """``constant`` plus, for each of ``terms``, a loop counter times a coefficient.

    A negative axis ``-1 - v`` stands for value number ``v``, read from an index array.
    """

    constant: int
    terms: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Linear) -> Linear:
        found = dict(self.terms)
        for axis, coefficient in other.terms:
            found[axis] = found.get(axis, 0) + coefficient
        kept = tuple(sorted((axis, coefficient) for axis, coefficient in found.items() if coefficient != 0))
        return Linear(self.constant + other.constant, kept)

    def scaled(self, factor: int) -> Linear:
        """A multiple of the form."""
        if factor == 0:
            return Linear(0)
        return Linear(self.constant * factor, tuple((axis, factor * each) for axis, each in self.terms))

    def shifted(self, distance: int) -> Linear:
        """The form plus a number."""
        return Linear(self.constant + distance, self.terms)

    def reach(self, bounds: Bounds) -> tuple[int, int]:
        """Smallest and largest value."""
        low = high = self.constant
        for axis, coefficient in self.terms:
            first, last = bounds[axis][0] * coefficient, (bounds[axis][1] - 1) * coefficient
            low, high = (low + first, high + last) if coefficient >= 0 else (low + last, high + first)
        return low, high

    def coefficient(self, axis: int) -> int:
        """What the counter of ``axis`` is multiplied by."""
        return next((each for known, each in self.terms if known == axis), 0)


Point: TypeAlias = tuple[Linear, ...]
"""One position for each axis of an array."""


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one position to the next along each axis, in C order."""
    found, step = [], 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return tuple(reversed(found))


def flat(point: Point, shape: Sequence[int]) -> Linear:
    """Offset of an element in an array in C order."""
    total = Linear(0)
    for each, extent, step in zip(point, shape, strides(shape), strict=True):
        # The only element along an axis of extent one is at no distance.
        total = total if extent == 1 else total + each.scaled(step)
    return total


def spread(point: Point, shape: Sequence[int]) -> Point:
    """The element of an operand of ``shape`` that broadcasting puts at ``point``."""
    return access.spread(point, shape, Linear(0))


def reshaped(point: Point, shape: Sequence[int], old: Sequence[int], bounds: Bounds) -> Point | None:
    """The element of an array of shape ``old`` that is at ``point`` after a reshape; None if it is no linear form."""
    rest = flat(point, shape)
    found = []
    for extent, step in zip(old, strides(old), strict=True):
        if extent == 1:
            found.append(Linear(0))
            continue
        inner = Linear(rest.constant % step, tuple(term for term in rest.terms if term[1] % step))
        low, high = inner.reach(bounds)
        if low < 0 or high >= step:
            return None
        outer = rest + inner.scaled(-1)
        found.append(Linear(outer.constant // step, tuple((axis, each // step) for axis, each in outer.terms)))
        rest = inner
    return tuple(found)


def merged(forms: Iterable[Linear], axes: Sequence[int], extents: Mapping[int, int]) -> dict[int, int]:
    """Loop axes that can run as one with the next axis, and that axis: every form walks them in step."""
    forms = list(forms)
    return {
        axis: following
        for axis, following in itertools.pairwise(axes)
        if all(form.coefficient(axis) == form.coefficient(following) * extents[following] for form in forms)
    }


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
    number = bisect.bisect_right(cuts, int(low), key=int) - 1
    if not 0 <= number < len(cuts) - 1:
        raise UnreachableError
    stop = cuts[number + 1]
    if high >= stop:
        raise _cut(where, stop)
    require(low - cuts[number])
    return number


def by_place(indices: Sequence[Index]) -> Mapping[tuple[int, ...], Sequence[int]] | None:
    """Which of ``indices`` are at each place; None if one is more than a single place, or a size tells which."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, index in enumerate(indices):
        place = tuple(entry for entry in index if type(entry) is int)
        if len(place) < len(index):
            return None
        found.setdefault(place, []).append(number)
    return found


def pieces_at(
    point: Point, singles: Mapping[tuple[int, ...], Sequence[int]] | None, every: Sequence[int]
) -> Sequence[int]:
    """Numbers of the pieces that may hold a point: of single elements those that do, where the point is a place."""
    if singles is None or any(each.terms or isinstance(each.constant, Extent) for each in point):
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
            inner = _inside(where, entry, bounds) if entry.count() != 0 else None
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
    first, last = ends if taken.step > 0 else ends[::-1]
    # A region that is certain to lie inside may be empty at the smallest sizes.
    if not (at_most(first, low) and at_most(high, last)):
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


@dataclass(frozen=True, slots=True)
class Value:
    """One number.

    kind: ``"load"`` (``data`` is the array's variable, ``offset`` the place), ``"position"`` (the whole number
        ``offset``), ``"literal"`` (``data`` is the number), ``"cast"`` or ``"apply"`` (``data`` is a primitive's name).
    operands: numbers of the values it is computed from.
    offset: where a load reads, or the position itself.
    """

    kind: str
    dtype: np.dtype[Any]
    data: Any = None
    operands: tuple[int, ...] = ()
    offset: Linear | None = None


class Values:
    """Values in an order in which they can be computed.

    places, hints: for some values, the user's line they come from, and a name.
    """

    def __init__(self) -> None:
        self.items: list[Value] = []
        self.places: dict[int, Location] = {}
        self.hints: dict[int, str] = {}
        self._known: dict[Any, int] = {}

    def __getitem__(self, number: int) -> Value:
        return self.items[number]

    def __len__(self) -> int:
        return len(self.items)

    def load(self, variable: int, offset: Linear, dtype: np.dtype[Any]) -> int:
        """An element of an array in memory."""
        return self._put(Value("load", dtype, variable, _numbers(offset), offset), (variable, offset))

    def position(self, offset: Linear) -> int:
        """A whole number that follows from the loop counters and sizes."""
        if not offset.terms and not isinstance(offset.constant, Extent):
            return self.literal(offset.constant, np.dtype(np.int64))
        value = Value("position", np.dtype(np.int64), None, _numbers(offset), offset)
        return self._put(value, ("position", offset))

    def literal(self, value: Any, dtype: np.dtype[Any]) -> int:
        """A number that is known now."""
        if dtype == np.int64 and value >= 2**63:
            # A Python integer that only floating-point numbers hold.
            dtype = np.dtype(np.float64)
        number = dtype.type(value)
        # repr tells -0.0 from 0.0 and makes NaN equal to itself.
        return self._put(Value("literal", dtype, number), ("literal", repr(number), dtype))

    def cast(self, number: int, dtype: np.dtype[Any]) -> int:
        """A value in another dtype."""
        value = self.items[number]
        if value.dtype == dtype:
            return number
        if value.dtype.kind == "c" and dtype.kind == "b":
            # Either part makes it true, as in NumPy's logic.
            return self.apply("not_equal", (number, self.literal(0, value.dtype)), dtype)
        if value.kind == "literal":
            data = value.data.real if value.dtype.kind == "c" and dtype.kind != "c" else value.data
            with np.errstate(all="ignore"):
                return self.literal(data, dtype)
        return self._put(Value("cast", dtype, None, (number,)), ("cast", number, dtype))

    def apply(self, name: str, operands: Iterable[int], dtype: np.dtype[Any]) -> int:
        """A primitive's result."""
        operands = tuple(operands)
        return self._put(Value("apply", dtype, name, operands), (name, operands, dtype))

    def is_literal(self, number: int, data: float) -> bool:
        """Whether a value is this number."""
        value = self.items[number]
        return value.kind == "literal" and bool(value.data == data)

    def _put(self, value: Value, key: Any) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.items)
            self.items.append(value)
        return found


def _numbers(offset: Linear) -> tuple[int, ...]:
    """The values that a linear form takes from index arrays."""
    return tuple(-1 - axis for axis, _ in offset.terms if axis < 0)
