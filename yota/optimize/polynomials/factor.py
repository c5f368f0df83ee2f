"""Common factors pulled out of sums: greedy extraction of two-term divisors that the sums of a system share.

The method is that of fast_extract in logic synthesis (Rajski and Vasudevamurthy, "The testability-preserving
concurrent decomposition and factorization of Boolean expressions", 1992), with coefficients and signs: two terms
of a sum, divided by what they have in common, are a divisor; the divisor that saves most operations over all its
occurrences is taken out first. Products of a divisor with further terms are found in later rounds.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from yota.optimize.polynomials.gains import Thinned, saved
from yota.optimize.polynomials.system import is_multiple, multiply
from yota.optimize.polynomials.terms import Divisor, Pair, Sums, Table

Slots: TypeAlias = tuple[int, int]
"""Where a divisor occurs: the slots of two terms of a sum, in order."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to search.

    window, near: what terms are paired; see `Table`.
    lone: whether divisors that stand in one place are looked for; else sums are nested after Horner in the end.
    """

    window: int = 64
    near: int = 64
    nest: bool = False
    lone: bool = True


def factor(table: Table, sums: Sums, options: Options) -> dict[int, tuple[int, ...]]:
    """``sums``, whose numbers ``table`` explains, factored."""
    return _Factoring(table, sums, options).run()


class _Factoring:
    """Terms of sums stand in slots, of which each is told by a number; a place is two slots."""

    def __init__(self, table: Table, sums: Sums, options: Options) -> None:
        self.table = table
        self.options = options
        self.sums = dict(sums)
        self.opened: dict[int, Thinned] = {}
        """Sums that have lost terms."""
        self.closed: dict[int, int] = {}
        """The one term of sums of two."""
        self.costs = table.costs
        self.alone: dict[tuple[int, int], tuple[float, float]] = {}
        self.held: list[int] = []
        """The term in each slot; -1 where it is gone."""
        self.homes: list[tuple[int, int]] = []
        """The sum of each slot, and the position."""
        self.bases: dict[int, int] = {}
        self.waiting: dict[int, tuple[int, int, int, bool] | None] = {}
        """The only place of a divisor, by its code; None where there are more."""
        self.places: dict[int, list[Slots]] = {}
        """Where each divisor occurs; places of which the terms are gone are among them."""
        self.atoms: dict[int, int] = {}
        """Atoms of the divisors that have been taken out."""
        self.hopes: dict[int, float] = {}
        """How many operations each divisor saves at most."""
        self.pushed: dict[int, float] = {}
        self.queue: list[tuple[float, int, int]] = []
        self.serial = 0

    def run(self) -> dict[int, tuple[int, ...]]:
        self._start()
        queue, pushed = self.queue, self.pushed
        while queue:
            hope, _, number = heapq.heappop(queue)
            if pushed[number] == -hope:
                pushed[number] = 0.0
                self._take(number, -hope)
        for atom, opened in self.opened.items():
            self.sums[atom] = tuple([term for term in opened.terms if term is not None])
        for atom, term in self.closed.items():
            self.sums[atom] = (term,)
        return self.sums

    def _take(self, divisor: int, hope: float) -> None:
        """Take a divisor out if it still saves what was hoped; else queue it at what it is worth now."""
        held, places, gain = self.held, self.places[divisor], hope
        if len(places) == 1 and divisor not in self.atoms:
            one, two = places[0]
            if held[one] < 0 or held[two] < 0:
                places.clear()
                return
            if self._pair(places[0]) is None:
                return
            unit = self._unit(divisor, places)
        else:
            before = len(places)
            places = self._alive(divisor)
            if len(places) != before:
                gain = self._hope(divisor, places)
            if gain >= hope:
                places = self._apart(places)
                unit = self._unit(divisor, places)
                gain = self._gain(divisor, unit, places)
        if gain >= hope:
            self.hopes[divisor] = 0.0
            self._extract(divisor, unit, places)
        else:
            self.hopes[divisor] = gain
            if gain > 0:
                self._enqueue(gain, divisor)

    def _start(self) -> None:
        table, see, touched = self.table, self._see, dict[int, None]()
        for atom, terms in self.sums.items():
            if len(terms) > 1:
                base = self._base(atom)
                if len(terms) == 2 and not self.options.lone:
                    see(atom, base, base + 1, True, touched)
                    continue
                for first, second, alike in table.paired(atom, terms):
                    see(atom, base + first, base + second, alike, touched)
        self._push(touched)

    def _base(self, atom: int) -> int:
        """The first slot of a sum."""
        found = self.bases.get(atom)
        if found is None:
            terms = self.sums[atom]
            found = self.bases[atom] = len(self.held)
            self.held += terms
            self.homes += [(atom, position) for position in range(len(terms))]
        return found

    def _see(self, atom: int, one: int, two: int, alike: bool, touched: dict[int, None]) -> None:
        """Note the place of two terms, unless it is the first of its divisor and waits for another one."""
        if not self.options.lone:
            codes, held, waiting = self.table.codes, self.held, self.waiting
            code = abs(codes[held[one]] - codes[held[two]])
            if code not in waiting:
                waiting[code] = atom, one, two, alike
                return
            early = waiting[code]
            if early:
                waiting[code] = None
                if held[early[1]] >= 0 and held[early[2]] >= 0:
                    self._meet(*early, touched)
        self._meet(atom, one, two, alike, touched)

    def _meet(self, atom: int, one: int, two: int, alike: bool, touched: dict[int, None]) -> None:
        """Note the place of two terms; the divisor is ``touched`` if it may be worth something."""
        left, right = self.held[one], self.held[two]
        divisor = self.table.divisor(left, right)
        atoms = self.atoms
        if divisor is None or (atoms and atoms.get(divisor) == atom):
            return
        found = self.places.setdefault(divisor, [])
        found.append((one, two))
        only = len(found) == 1 and divisor not in atoms
        if only and not self.options.lone:
            return
        if only and not alike:
            known = self.table.terms
            number = known[left][0]
            if number == 1.0 or number == -1.0 or abs(number) != abs(known[right][0]):
                return  # a sum of two terms that stands in one place is worth nothing
        gain, size = self._alone(left, right)
        if only or divisor not in self.hopes:
            self.hopes[divisor] = gain if only else self._hope(divisor, found)
        else:
            self.hopes[divisor] += gain + size
        touched[divisor] = None

    def _push(self, touched: Iterable[int]) -> None:
        pushed, hopes = self.pushed, self.hopes
        for divisor in touched:
            gain = hopes[divisor]
            if gain > pushed.get(divisor, 0.0):
                self._enqueue(gain, divisor)

    def _enqueue(self, gain: float, divisor: int) -> None:
        self.pushed[divisor] = gain
        self.serial += 1
        heapq.heappush(self.queue, (-gain, self.serial, divisor))

    def _alive(self, divisor: int) -> list[Slots]:
        held, places = self.held, self.places[divisor]
        found = self.places[divisor] = [each for each in places if held[each[0]] >= 0 and held[each[1]] >= 0]
        return found

    def _apart(self, places: Sequence[Slots]) -> list[Slots]:
        """Places of one divisor, no term twice; of one that has a scale only those that are a multiple."""
        found: list[Slots] = []
        taken: set[int] = set()
        for place in places:
            pair = self._pair(place)
            if pair is not None and taken.isdisjoint(place):
                atom = self.atoms.get(pair.divisor)
                if atom is None or is_multiple(pair.scale, self.table.divisor_of[atom][1]):
                    taken.update(place)
                    found.append(place)
        return found

    def _pair(self, place: Slots) -> Pair | None:
        return self.table.pair(self.held[place[0]], self.held[place[1]])

    def _pairs(self, places: Iterable[Slots]) -> list[Pair]:
        return [pair for pair in map(self._pair, places) if pair is not None]

    def _hope(self, divisor: int, places: Sequence[Slots]) -> float:
        """How many operations a divisor saves if one scale serves at all places."""
        if not places:
            return 0.0
        held, gain, size = self.held, 0.0, 0.0
        for one, two in places:
            each, size = self._alone(held[one], held[two])
            gain += each + size
        return gain if divisor in self.atoms else gain - size

    def _alone(self, left: int, right: int) -> tuple[float, float]:
        """How many operations it saves to take out the divisor of two terms, and how many it takes itself."""
        found = self.alone.get((left, right))
        if found is None:
            known = self.table.terms
            found = self.alone[left, right] = (
                self._weighed(left, right) if self.table.origin.is_array else saved(known[left], known[right])
            )
        return found

    def _weighed(self, left: int, right: int) -> tuple[float, float]:
        pair = self.table.pair(left, right)
        if pair is None:
            return 0.0, 0.0
        divisor, number, costs = self.table.divisors[pair.divisor], self.table.number, self.costs
        assert divisor is not None
        one, two, a, b = divisor
        unit = self._alone_unit(pair.scale, divisor)
        size = 1 + costs[number((a * unit, one))] + costs[number((b * unit, two))]
        gain = 1 + costs[left] + costs[right] - size
        scale = pair.scale / unit
        if pair.factor or abs(scale) != 1.0:
            gain -= 1 + costs[number((scale, pair.factor))]
        return gain, size

    def _alone_unit(self, scale: float, divisor: Divisor) -> float:
        # A coefficient that both terms have stands outside: 3 * (a - b).
        outside = abs(divisor.left_coefficient) == abs(divisor.right_coefficient)
        return math.copysign(1.0, scale) if outside else scale

    def _unit(self, number: int, places: Sequence[Slots]) -> float:
        """The scale that the divisor itself carries; the rest is a coefficient at each place."""
        atom = self.atoms.get(number)
        if atom is not None:
            return self.table.divisor_of[atom][1]
        pairs, divisor = self._pairs(places), self.table.divisors[number]
        assert divisor is not None
        if len(pairs) < 2:
            return self._alone_unit(pairs[0].scale, divisor) if pairs else 1.0
        scales = [pair.scale for pair in pairs]
        # A place without factor is a sum of the user's: there the divisor stands as it is.
        bare = [pair.scale for pair in pairs if not pair.factor]
        positive = max(bare) > 0 if bare else sum([scale > 0 for scale in scales]) * 2 >= len(scales)
        sign = 1.0 if positive else -1.0
        unit = abs(scales[0]) if len(set(scales)) == 1 else abs(Counter(scales).most_common(1)[0][0])
        if unit == 1.0 or not all(is_multiple(scale, unit) for scale in scales):
            return sign
        # Or 3 * a - 3 * b, where that serves more than once.
        outside = abs(self._alone_unit(unit, divisor)) == 1.0
        if outside and self._gain(number, sign, places) > self._gain(number, sign * unit, places):
            return sign
        return sign * unit

    def _gain(self, divisor: int, unit: float, places: Sequence[Slots]) -> float:
        """How many operations a divisor of this scale saves."""
        number, costs, held = self.table.number, self.costs, self.held
        gain = 0.0
        if divisor not in self.atoms:
            found = self.table.divisors[divisor]
            assert found is not None
            one, two, a, b = found
            gain -= 1 + costs[number((a * unit, one))] + costs[number((b * unit, two))]
        for (left, right), pair in zip(places, self._pairs(places), strict=True):
            gain += 1 + costs[held[left]] + costs[held[right]]
            scale = pair.scale / unit
            if pair.factor or abs(scale) != 1.0:
                gain -= 1 + costs[number((scale, pair.factor))]
        return gain

    def _extract(self, divisor: int, unit: float, places: Sequence[Slots]) -> None:
        held, homes, pairs = self.held, self.homes, self._pairs(places)
        atom = self.atoms.get(divisor)
        if atom is None:
            # Two terms have one order; an ordered sum keeps its first term first wherever signs allow.
            ordered = any(homes[left][0] in self.table.ordered for left, _ in places)
            first = held[places[0][0]]
            atom = self.atoms[divisor] = self.table.define(divisor, unit, first, pairs[0].factor, ordered)
        touched: dict[int, None] = {}
        for (left, right), pair in zip(places, pairs, strict=True):
            term = self.table.number((pair.scale / unit, multiply(pair.factor, ((atom, 1),))))
            home, first = homes[left]
            held[left] = held[right] = -1
            opened = self.opened.get(home)
            if opened is None:
                terms = self.sums[home]
                if len(terms) == 2:
                    self.closed[home] = term
                    continue
                base = self.bases[home]
                opened = self.opened[home] = Thinned(self.table.terms, terms, range(base, base + len(terms)))
            slot = len(held)
            held.append(term)
            homes.append((home, first))
            opened.merge(first, homes[right][1], term, slot)
            options = self.options
            for other, alike in opened.others(first, options.window, options.near, home in self.table.ordered):
                one, two = (opened.slots[other], slot) if other < first else (slot, opened.slots[other])
                self._see(home, one, two, alike, touched)
        self._push(touched)
