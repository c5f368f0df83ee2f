"""Sums that lose terms while common factors are taken out of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

from yota.codegen.polynomials import Term


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
        """Positions of the terms that one is paired with, and whether they have a factor in common with it.

        For ``window`` and ``near`` see `Table`.
        """
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
