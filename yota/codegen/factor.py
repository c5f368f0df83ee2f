"""Common factors pulled out of sums: greedy extraction of two-term divisors shared by all sums of a forest.

The method is that of fast_extract in logic synthesis (Rajski and Vasudevamurthy, "The testability-preserving
concurrent decomposition and factorization of Boolean expressions", 1992), with coefficients and signs: two terms
of a sum, divided by what they have in common, are a divisor; the divisor that saves most operations over all its
occurrences is taken out first. Products of a divisor with further terms are found in later rounds.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from yota.codegen.chain import Chain
from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Monomial, Term, chain_length, common, multiply, quotient, reduced

__all__ = ["Options", "factor"]

Key: TypeAlias = tuple[Monomial, Monomial, float, float]
"""A divisor up to scale: two monomials without common factor, and their coefficients."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to search.

    Parameters
    ----------
    window
        Each term is paired with at most this many others of its sum.
    equal_outside
        Whether a coefficient that both terms have is pulled out (``3*(a - b)``) or stays (``3*a - 3*b``).
    shared
        Whether sums that occur in several places without a factor are taken out.
    nest
        Whether sums are nested after Horner first.
    seed
        Decides between choices that look equal; with 0 the first one is taken.
    most
        How many products a term counts as at most: most of a long one may be shared with others.
    """

    window: int = 64
    equal_outside: bool = True
    shared: bool = True
    nest: bool = False
    seed: int = 0
    most: int = 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a divisor occurs: ``scale * factor * divisor`` is two terms of a sum."""

    sum: int
    first: int
    second: int
    terms: tuple[Term, Term]
    scale: float
    factor: Monomial


@dataclass(slots=True)
class _Divisor:
    places: list[_Place] = field(default_factory=list)
    atom: int | None = None
    unit: float = 1.0
    pushed: float = 0.0


def factor(forest: Forest, options: Options) -> None:
    """Factor all sums of ``forest`` in place."""
    _Factoring(forest, options).run()


class _Factoring:
    def __init__(self, forest: Forest, options: Options) -> None:
        self.forest = forest
        self.options = options
        self.divisors: dict[Key, _Divisor] = {}
        self.queue: list[tuple[float, float, int, Key]] = []
        self.choose = random.Random(options.seed)
        self.serial = 0
        self.touched: set[Key] = set()
        self.chains: dict[int, Chain] = {}
        self._costs: dict[Term, float] = {}

    def run(self) -> None:
        for atom in self.forest.living():
            if atom in self.forest.sums:
                each = self.forest.sums[atom]
                each.terms = list(each.alive())
                self.chains[atom] = Chain(len(each.terms))
                for position in range(len(each.terms)):
                    self._pair(atom, position, backwards_only=True)
        self._push()
        while self.queue:
            gain, _, _, key = heapq.heappop(self.queue)
            divisor = self.divisors[key]
            places = self._valid(divisor)
            found = self._gain(key, divisor, places)
            if found <= 0:
                divisor.pushed = 0.0
                continue
            if found < -gain:
                # Terms went elsewhere in the meantime: back into the queue at what it is worth now.
                divisor.pushed = found
                self._enqueue(found, key)
                continue
            divisor.pushed = 0.0
            self._extract(key, divisor, places)
            self._push()

    def _pair(self, atom: int, position: int, backwards_only: bool) -> None:
        """Note the divisors that the term at ``position`` makes with its neighbours."""
        each = self.forest.sums[atom]
        chain = self.chains[atom]
        for links in (chain.before,) if backwards_only else (chain.before, chain.after):
            other = links[position]
            for _ in range(self.options.window):
                if not 0 <= other < len(each.terms):
                    break
                self._note(atom, each, min(other, position), max(other, position))
                other = links[other]

    def _note(self, atom: int, each: Sum, first: int, second: int) -> None:
        left, right = each.terms[first], each.terms[second]
        if left is None or right is None or left[1] == right[1]:
            return
        shared = common(left[1], right[1])
        if not shared and not self._may_share(atom, each, first, second):
            return
        one, two = quotient(left[1], shared), quotient(right[1], shared)
        a, b = left[0], right[0]
        if one > two:
            one, two, a, b = two, one, b, a
        numbers = reduced(a, b)
        if numbers is None:
            return
        scale, a, b = numbers
        key = one, two, a, b
        divisor = self.divisors.get(key)
        if divisor is None:
            divisor = self.divisors[key] = _Divisor()
        divisor.places.append(_Place(atom, first, second, (left, right), scale, shared))
        self.touched.add(key)

    def _may_share(self, atom: int, each: Sum, first: int, second: int) -> bool:
        """Whether two terms without common factor may be summed apart: of the user's sum, only its beginning."""
        return self.options.shared and (not each.ordered or self.chains[atom].leads(first, second))

    def _push(self) -> None:
        """Queue the divisors that have gained places."""
        for key in sorted(self.touched):
            divisor = self.divisors[key]
            gain = self._gain(key, divisor, self._valid(divisor))
            if gain > divisor.pushed:
                divisor.pushed = gain
                self._enqueue(gain, key)
        self.touched.clear()

    def _enqueue(self, gain: float, key: Key) -> None:
        self.serial += 1
        rank = self.choose.random() if self.options.seed else 0.0
        heapq.heappush(self.queue, (-gain, rank, self.serial, key))

    def _valid(self, divisor: _Divisor) -> list[_Place]:
        """Places whose terms are still there, no term twice."""
        found: list[_Place] = []
        taken: set[tuple[int, int]] = set()
        alive: list[_Place] = []
        for place in divisor.places:
            terms = self.forest.sums[place.sum].terms
            if terms[place.first] is not place.terms[0] or terms[place.second] is not place.terms[1]:
                continue
            alive.append(place)
            ends = {(place.sum, place.first), (place.sum, place.second)}
            if taken.isdisjoint(ends):
                taken |= ends
                found.append(place)
        divisor.places = alive
        return found

    def _unit(self, key: Key, divisor: _Divisor, places: list[_Place]) -> float:
        """The scale that the divisor itself carries; the rest is a coefficient at each place."""
        if divisor.atom is not None:
            return divisor.unit
        counts = Counter(place.scale for place in places)
        # A place without factor is a sum of the user's: there the divisor stands as it is.
        bare = [place.scale for place in places if not place.factor]
        signs = sum(1 if place.scale > 0 else -1 for place in places)
        sign = 1.0 if signs >= 0 else -1.0
        if bare:
            sign = 1.0 if bare[0] > 0 else -1.0
        if self.options.equal_outside and abs(key[2]) == abs(key[3]):
            return sign
        unit = abs(counts.most_common(1)[0][0])
        if any((place.scale / unit) != int(place.scale / unit) for place in places):
            return sign
        return sign * unit

    def _gain(self, key: Key, divisor: _Divisor, places: list[_Place]) -> float:
        if not places:
            return 0.0
        one, two, a, b = key
        unit = self._unit(key, divisor, places)
        gain = 0.0
        if divisor.atom is None:
            gain -= 1 + self._cost((a * unit, one)) + self._cost((b * unit, two))
        for place in places:
            gain += 1 + self._cost(place.terms[0]) + self._cost(place.terms[1])
            scale = place.scale / unit
            if place.factor or abs(scale) != 1.0:
                gain -= 1 + self._cost((scale, place.factor))
        return gain

    def _cost(self, term: Term) -> float:
        """Number of products in a term."""
        found = self._costs.get(term)
        if found is None:
            found = self._costs[term] = min(self._counted(term), self.options.most)
        return found

    def _counted(self, term: Term) -> float:
        """On arrays, what is 0-d counts as one factor and is almost free itself."""
        coefficient, monomial = term
        if not monomial:
            return 0
        outside = int(abs(coefficient) != 1.0)
        if not self.forest.is_array:
            return outside + sum(chain_length(exponent) + 1 for _, exponent in monomial) - 1
        scalars, arrays, inner = outside, 0, 0
        for atom, exponent in monomial:
            if atom in self.forest.scalars:
                scalars += exponent
            else:
                arrays += 1
                inner += chain_length(exponent)
        if not arrays:
            return 0.01 * scalars
        return inner + arrays - 1 + (1 if scalars else 0) + 0.01 * max(scalars - 1, 0)

    def _extract(self, key: Key, divisor: _Divisor, places: list[_Place]) -> None:
        if divisor.atom is None:
            divisor.unit = self._unit(key, divisor, places)
            divisor.atom = self._divisor_atom(key, divisor.unit, places)
        for place in places:
            scale = place.scale / divisor.unit
            monomial = multiply(place.factor, ((divisor.atom, 1),))
            each = self.forest.sums[place.sum]
            each.terms[place.first] = (scale, monomial)
            each.terms[place.second] = None
            self.chains[place.sum].remove(place.second)
            self._pair(place.sum, place.first, backwards_only=False)

    def _divisor_atom(self, key: Key, unit: float, places: list[_Place]) -> int:
        one, two, a, b = key
        terms: list[Term | None] = [(a * unit, one), (b * unit, two)]
        first = places[0]
        if quotient(first.terms[0][1], first.factor) != one:
            terms.reverse()
        atom = self.forest.atom()
        # Two terms have one order; an ordered sum keeps its first term first wherever signs allow.
        self.chains[atom] = Chain(2)
        self.forest.sums[atom] = Sum(terms, any(self.forest.sums[place.sum].ordered for place in places))
        if self.forest.is_array and self.forest.is_scalar(one) and self.forest.is_scalar(two):
            self.forest.scalars.add(atom)
        return atom
