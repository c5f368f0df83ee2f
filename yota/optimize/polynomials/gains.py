"""What factoring knows of terms: their operations, what a common factor saves, and sums that lose terms."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterator, Sequence

from yota.optimize.polynomials.system import Term, chain_length, length


def saved(left: Term, right: Term) -> tuple[float, float]:
    """How many operations on numbers it saves to divide two terms by what they have in common, and how many are left.

    >>> x, y, z = 1, 2, 3
    >>> saved((1.0, ((x, 1), (y, 1))), (3.0, ((x, 1), (z, 2))))
    (1, 3)
    """
    (a, one), (b, two) = left, right
    a, b = abs(a), abs(b)
    gain, size, exponents = 0, -1, dict(two)
    rest, other = len(one), len(exponents)
    for atom, exponent in one:
        if atom not in exponents:
            size += 1 if exponent == 1 else _works(exponent)
            continue
        times = exponents.pop(atom)
        if exponent == times == 1:
            gain += 1
            rest -= 1
            other -= 1
        else:
            shared = min(exponent, times)
            left_over, right_over = _works(exponent - shared), _works(times - shared)
            size += left_over + right_over
            gain += _works(exponent) + _works(times) - left_over - right_over - _works(shared)
            rest -= shared == exponent
            other -= shared == times
    for exponent in exponents.values():
        size += 1 if exponent == 1 else _works(exponent)
    same, scaled = a == b, a != 1.0
    if len(exponents) < len(two):
        gain += same and scaled
        gain -= (not rest and (same or not scaled)) + (not other and (same or b == 1.0))
    elif same and scaled:
        gain = bool(one) + bool(two) - 1
    size += (not rest) + (not other)
    if not same:
        size += (scaled and rest > 0) + (b != 1.0 and other > 0)
    return gain, size


def _works(exponent: int) -> int:
    """Number of factors of a power, as products count them."""
    return exponent if exponent < 2 else chain_length(exponent) + 1


class Costs(dict[int, float]):
    """Number of products in each term of a table, found when it is first asked for."""

    def __init__(self, terms: Sequence[Term], scalars: Container[int], is_array: bool) -> None:
        super().__init__()
        self.terms, self.scalars, self.is_array = terms, scalars, is_array

    def __missing__(self, number: int) -> float:
        found = self[number] = self._counted(self.terms[number])
        return found

    def _counted(self, term: Term) -> float:
        """On arrays, what is 0-d counts as one factor and is almost free itself."""
        coefficient, monomial = term
        if not monomial:
            return 0
        outside = int(abs(coefficient) != 1.0)
        if not self.is_array:
            return outside + length(monomial)
        scalars, arrays, inner = outside, 0, 0
        for atom, exponent in monomial:
            if atom in self.scalars:
                scalars += exponent
            else:
                arrays += 1
                inner += chain_length(exponent)
        if not arrays:
            return 0.01 * scalars
        return inner + arrays - 1 + (1 if scalars else 0) + 0.01 * max(scalars - 1, 0)


class Thinned:
    """A sum that loses terms: its slots by position, linked to their neighbours, and the positions of each factor.

    Links are out of range at the ends.
    """

    def __init__(self, known: Sequence[Term], terms: Sequence[int], slots: range) -> None:
        self.known = known
        self.terms: list[int | None] = list(terms)
        self.slots = list(slots)
        self.before = list(range(-1, len(terms) - 1))
        self.after = list(range(1, len(terms) + 1))
        self.readers: dict[int, list[int]] = {}
        readers = self.readers
        for position, term in enumerate(terms):
            for atom, _ in known[term][1]:
                if atom in readers:
                    readers[atom].append(position)
                else:
                    readers[atom] = [position]

    def merge(self, first: int, second: int, term: int, slot: int) -> None:
        """Put a term in the place of two."""
        for position in (first, second):
            old = self.terms[position]
            assert old is not None
            for atom, _ in self.known[old][1]:
                readers = self.readers[atom]
                del readers[bisect_left(readers, position)]
        for atom, _ in self.known[term][1]:
            insort(self.readers.setdefault(atom, []), first)
        self.terms[first], self.terms[second], self.slots[first] = term, None, slot
        before, after = self.before[second], self.after[second]
        if before >= 0:
            self.after[before] = after
        if after < len(self.terms):
            self.before[after] = before

    def others(self, position: int, window: int, near: int, ordered: bool) -> Iterator[tuple[int, bool]]:
        """Positions of the terms that one is paired with, and whether they have a factor in common with it."""
        term = self.terms[position]
        assert term is not None
        most, common = (window + 1) // 2, set[int]()
        for atom, _ in self.known[term][1]:
            readers = self.readers[atom]
            if len(readers) > 1:
                place = bisect_left(readers, position)
                common.update(readers[max(place - most, 0) : place], readers[place + 1 : place + 1 + most])
        found = common.copy()
        for links in (self.before, self.after):
            other = links[position]
            for _ in range(near):
                if not 0 <= other < len(self.terms):
                    break
                if not ordered or self.before[min(position, other)] < 0:
                    found.add(other)
                other = links[other]
                if ordered:
                    break
        positions = sorted(found)
        place = bisect_left(positions, position)
        for each in (*reversed(positions[max(place - window, 0) : place]), *positions[place : place + window]):
            yield each, each in common
