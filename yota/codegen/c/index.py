"""Positions in arrays as linear forms of loop counters: what a view does to an index, without touching memory."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yota.ir import access

__all__ = ["Bounds", "Linear", "Point", "flat", "merged", "reshaped", "spread", "strides"]

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
        kept = tuple(sorted((axis, coefficient) for axis, coefficient in found.items() if coefficient))
        return Linear(self.constant + other.constant, kept)

    def scaled(self, factor: int) -> Linear:
        """A multiple of the form."""
        if not factor:
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
            low, high = low + min(first, last), high + max(first, last)
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
