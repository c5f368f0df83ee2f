"""Common factors pulled out of sums: greedy extraction of two-term divisors that the sums of a system share.

The method is that of fast_extract in logic synthesis (Rajski and Vasudevamurthy, "The testability-preserving
concurrent decomposition and factorization of Boolean expressions", 1992), with coefficients and signs: two terms
of a sum, divided by what they have in common, are a divisor; the divisor that saves most operations over all its
occurrences is taken out first. Products of a divisor with further terms are found in later rounds.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yota.codegen.monomials import Monomial, is_multiple, multiply
from yota.codegen.table import Place, Sums, Table

__all__ = ["Options", "factor", "factor_anew"]

Spot: TypeAlias = tuple[int, int, int, int, int]
"""Two terms of a sum: its atom, their positions, and their numbers."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to search.

    Parameters
    ----------
    window, near
        What terms are paired; see `Table`.
    shared
        Whether sums that occur in several places without a factor are taken out.
    whole
        Whether a sum of two terms serves where others contain it, in whatever way it is factored itself.
    nest
        Whether sums are nested after Horner first.
    seed
        Decides between choices that look equal; with 0 the first one is taken.
    most
        How many products a term counts as at most: most of a long one may be shared with others.
    inside
        Whether a coefficient that both terms of a divisor have stays in it: ``3*a - 3*b`` rather than ``3*(a - b)``.
    """

    window: int = 64
    near: int = 64
    shared: bool = True
    whole: bool = False
    nest: bool = False
    seed: int = 0
    most: int = 1024
    inside: bool = False


def factor(table: Table, sums: Sums, options: Options) -> dict[int, tuple[int, ...]]:
    """``sums``, whose numbers ``table`` explains, factored."""
    return _Factoring(table, sums, options, {}).run(sums, None)


def factor_anew(
    table: Table,
    sums: Sums,
    options: Options,
    changed: Collection[int],
    known: Mapping[int, Sequence[Place]],
    divisor: int | None = None,
) -> dict[int, tuple[int, ...]]:
    """``sums``, of which all but a few have been factored already, factored.

    Parameters
    ----------
    changed
        Those few.
    known
        Where each divisor occurs in the others.
    divisor
        The number of one that is taken out before all others.
    """
    return _Factoring(table, sums, options, known).run(changed, divisor)


class _Open:
    """A sum that loses terms: its terms by position, linked to their neighbours, and the positions of each factor.

    Links are out of range at the ends.
    """

    def __init__(self, table: Table, terms: Sequence[int]) -> None:
        self.known = table.terms
        self.terms: list[int | None] = list(terms)
        self.before = list(range(-1, len(terms) - 1))
        self.after = list(range(1, len(terms) + 1))
        self.readers: dict[int, list[int]] = {}
        for position, term in enumerate(terms):
            for atom, _ in table.terms[term][1]:
                self.readers.setdefault(atom, []).append(position)

    def merge(self, first: int, second: int, term: int) -> None:
        """Put a term in the place of two."""
        for position in (first, second):
            old = self.terms[position]
            assert old is not None
            for atom, _ in self.known[old][1]:
                readers = self.readers[atom]
                del readers[bisect_left(readers, position)]
        for atom, _ in self.known[term][1]:
            insort(self.readers.setdefault(atom, []), first)
        self.terms[first], self.terms[second] = term, None
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


class _Factoring:
    def __init__(self, table: Table, sums: Sums, options: Options, known: Mapping[int, Sequence[Place]]) -> None:
        self.table = table
        self.options = options
        self.known = known
        self.sums = dict(sums)
        self.opened: dict[int, _Open] = {}
        """Sums that have lost terms."""
        self.costs = table.costs(options.most)
        self.alone = table.alone(options.most, options.inside)
        self.places: dict[int, list[Place]] = {}
        """Where each divisor occurs."""
        self.waiting: dict[tuple[Monomial, Monomial], Spot | None] = {}
        """Where two monomials without a common factor have met, if that was once; they are no places yet."""
        self.atoms: dict[int, int] = {}
        """Atoms of the divisors that have been taken out."""
        self.pushed: dict[int, float] = {}
        self.queue: list[tuple[float, float, int, int]] = []
        self.choose = random.Random(options.seed)
        self.serial = 0

    def run(self, changed: Collection[int], divisor: int | None) -> dict[int, tuple[int, ...]]:
        self._start(changed)
        if divisor is not None:
            places = self._valid(divisor)
            if places:
                self._extract(divisor, self._unit(divisor, places), places)
        while self.queue:
            gain, _, _, number = heapq.heappop(self.queue)
            places = self._valid(number)
            unit, found = self._worth(number, places)
            self.pushed[number] = 0.0
            if 0 < found < -gain:
                # Terms went elsewhere in the meantime: back into the queue at what it is worth now.
                self._enqueue(found, number)
            elif found > 0:
                self._extract(number, unit, places)
        for atom, opened in self.opened.items():
            self.sums[atom] = tuple([term for term in opened.terms if term is not None])
        return self.sums

    def _start(self, changed: Collection[int]) -> None:
        table = self.table
        touched: dict[int, None] = {}
        if self.options.whole:
            living = table.living(self.sums)
            for atom in sorted(living.keys() & (table.defined.keys() | set(table.whole()))):
                self.atoms.setdefault(table.divisor_of[atom][0], atom)
            for atom in sorted(living.keys() & changed):
                for divisor, place in table.places(atom, living[atom]):
                    self._note(divisor, place, touched)
        else:
            meet = self._meet
            for atom, terms in self.sums.items():
                for first, second, alike in table.paired(atom, terms):
                    meet((atom, first, second, terms[first], terms[second]), alike, touched)
        self._push(touched)

    def _meet(self, spot: Spot, has_factor: bool, touched: dict[int, None]) -> None:
        """Note the place that two terms make; without a factor, where they are worth something or meet again."""
        if not has_factor and not self.options.whole:
            (a, one), (b, two) = self.table.terms[spot[3]], self.table.terms[spot[4]]
            if abs(a) != abs(b) or abs(a) == 1.0:
                key = (one, two) if one < two else (two, one)
                before = self.waiting.setdefault(key, spot)
                if before is spot:
                    return
                self._wake(key, touched)
        pair = self.table.pair(spot[3], spot[4])
        if pair is not None:
            if pair.divisor not in self.places:
                self._wake(self.table.divisors[pair.divisor][:2], touched)
            self._note(pair.divisor, Place(*spot, pair.scale, pair.factor), touched)

    def _wake(self, key: tuple[Monomial, Monomial], touched: dict[int, None]) -> None:
        """Note the first place of two monomials, which have met again."""
        spot = self.waiting.get(key)
        self.waiting[key] = None
        pair = self.table.pair(spot[3], spot[4]) if spot is not None else None
        if spot is not None and pair is not None:
            self._note(pair.divisor, Place(*spot, pair.scale, pair.factor), touched)

    def _note(self, divisor: int, place: Place, touched: dict[int, None]) -> None:
        """Add a place to those of its divisor, which is then ``touched``."""
        if self._is_allowed(divisor, place):
            places = self.places.get(divisor)
            if places is None:
                places = self._places(divisor)
            places.append(place)
            touched[divisor] = None

    def _places(self, divisor: int) -> list[Place]:
        """Where a divisor occurs; places of which the terms are gone are among them."""
        found = self.places.get(divisor)
        if found is None:
            known = self.known.get(divisor, ())
            found = self.places[divisor] = [place for place in known if self._is_allowed(divisor, place)]
        return found

    def _is_allowed(self, divisor: int, place: Place) -> bool:
        return bool(place.factor or self.options.shared) and self.atoms.get(divisor) != place.sum

    def _push(self, touched: Iterable[int]) -> None:
        """Queue the divisors that have gained places."""
        gains: dict[int, float] = {}
        for divisor in touched:
            places = self.places[divisor]
            if len(places) == 1 and divisor not in self.atoms:
                if not places[0].factor and abs(places[0].scale) == 1.0:
                    continue  # a sum of two terms that stands in one place is worth nothing
                if not self._is_alive(places[0]):
                    continue
            else:
                places = self._valid(divisor)
            _, gain = self._worth(divisor, places)
            if gain > self.pushed.get(divisor, 0.0):
                gains[divisor] = gain
        for divisor in sorted(gains, key=self.table.divisors.__getitem__):
            self._enqueue(gains[divisor], divisor)

    def _enqueue(self, gain: float, divisor: int) -> None:
        self.pushed[divisor] = gain
        self.serial += 1
        rank = self.choose.random() if self.options.seed else 0.0
        heapq.heappush(self.queue, (-gain, rank, self.serial, divisor))

    def _valid(self, divisor: int) -> list[Place]:
        """Places whose terms are still there, no term twice; of one that has a scale only those that are a multiple."""
        alive = self._places(divisor)
        if self.opened or self.known:
            alive = self.places[divisor] = [place for place in alive if self._is_alive(place)]
        if divisor in self.atoms:
            unit = self.table.divisor_of[self.atoms[divisor]][1]
            alive = [place for place in alive if is_multiple(place.scale, unit)]
        if len(alive) < 2:
            return alive
        found: list[Place] = []
        taken: set[tuple[int, int]] = set()
        for place in alive:
            ends = {(place.sum, place.first), (place.sum, place.second)}
            if taken.isdisjoint(ends):
                taken |= ends
                found.append(place)
        return found

    def _is_alive(self, place: Place) -> bool:
        atom, first, second, left, right, _, _ = place
        opened = self.opened.get(atom)
        terms = self.sums[atom] if opened is None else opened.terms
        return terms[first] == left and terms[second] == right

    def _worth(self, divisor: int, places: Sequence[Place]) -> tuple[float, float]:
        """The scale that a divisor carries itself, and how many operations it saves."""
        if not places:
            return 1.0, 0.0
        if len(places) > 1 or divisor in self.atoms:
            unit = self._unit(divisor, places)
            return unit, self._gain(divisor, unit, places)
        # In one place it is worth the same in each search.
        key = places[0].left, places[0].right
        found = self.alone.get(key)
        if found is None:
            unit = self._unit(divisor, places)
            found = self.alone[key] = unit, self._gain(divisor, unit, places)
        return found

    def _unit(self, divisor: int, places: Sequence[Place]) -> float:
        """The scale that the divisor itself carries; the rest is a coefficient at each place."""
        atom = self.atoms.get(divisor)
        if atom is not None:
            return self.table.divisor_of[atom][1]
        if len(places) == 1:
            # A coefficient that both terms have stands outside: 3 * (a - b).
            scale, (_, _, one, two) = places[0].scale, self.table.divisors[divisor]
            return math.copysign(1.0, scale) if abs(one) == abs(two) and not self.options.inside else scale
        scales = [place.scale for place in places]
        # A place without factor is a sum of the user's: there the divisor stands as it is.
        bare = next((place.scale for place in places if not place.factor), None)
        sign = 1.0 if (bare > 0 if bare else sum([scale > 0 for scale in scales]) * 2 >= len(scales)) else -1.0
        unit = abs(scales[0]) if len(set(scales)) == 1 else abs(Counter(scales).most_common(1)[0][0])
        if unit == 1.0 or not all(is_multiple(scale, unit) for scale in scales):
            return sign
        one, two = self.table.divisors[divisor][2:]
        # Or 3 * a - 3 * b, where that serves more than once.
        outside = abs(one) == abs(two) and not self.options.inside
        if outside and self._gain(divisor, sign, places) > self._gain(divisor, sign * unit, places):
            return sign
        return sign * unit

    def _gain(self, divisor: int, unit: float, places: Sequence[Place]) -> float:
        number, costs = self.table.number, self.costs
        gain = 0.0
        if divisor not in self.atoms:
            one, two, a, b = self.table.divisors[divisor]
            gain -= 1 + costs[number((a * unit, one))] + costs[number((b * unit, two))]
        for place in places:
            gain += 1 + costs[place.left] + costs[place.right]
            scale = place.scale / unit
            if place.factor or abs(scale) != 1.0:
                gain -= 1 + costs[number((scale, place.factor))]
        return gain

    def _extract(self, divisor: int, unit: float, places: Sequence[Place]) -> None:
        atom = self.atoms.get(divisor)
        if atom is None:
            atom = self.atoms[divisor] = self.table.define(divisor, unit, places)
        touched: dict[int, None] = {}
        for place in places:
            term = self.table.number((place.scale / unit, multiply(place.factor, ((atom, 1),))))
            opened = self.opened.get(place.sum)
            if opened is None:
                opened = self.opened[place.sum] = _Open(self.table, self.sums[place.sum])
            opened.merge(place.first, place.second, term)
            self._pair(place.sum, opened, place.first, touched)
        self._push(touched)

    def _pair(self, atom: int, opened: _Open, position: int, touched: dict[int, None]) -> None:
        """Note the places that the term at ``position`` makes with others."""
        options, terms = self.options, opened.terms
        for other, alike in opened.others(position, options.window, options.near, atom in self.table.ordered):
            first, second = (other, position) if other < position else (position, other)
            left, right = terms[first], terms[second]
            assert left is not None
            assert right is not None
            self._meet((atom, first, second, left, right), alike, touched)
