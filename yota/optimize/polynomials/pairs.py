"""Common products: the pair of factors that most monomials share, again and again; or the fewest for all of them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Container, Iterable, Mapping, MutableMapping, Sequence
from typing import TypeAlias

from yota.optimize.polynomials.system import chain_length

Pair: TypeAlias = tuple[int, int]

Entry: TypeAlias = tuple[int, int, int, bool, Pair]
"""How good a pair is, and the pair."""

_SAMPLE, _MANY = 8, 1 << 30


def length(monomial: Mapping[int, int]) -> int:
    """Number of products that a monomial takes by itself.

    >>> length({1: 2, 3: 1}), length({1: 1}), length({})
    (2, 0, 0)
    """
    found = -1
    for exponent in monomial.values():
        found += 1 if exponent == 1 else chain_length(exponent) + 1
    return max(found, 0)


def occurrences(monomial: Mapping[int, int]) -> dict[Pair, int]:
    """Pairs of factors of a monomial, and how often each occurs in it.

    >>> occurrences({1: 2, 3: 2})
    {(1, 3): 2, (1, 1): 1, (3, 3): 1}
    """
    if len(monomial) < 2:
        return {(atom, atom): exponent // 2 for atom, exponent in monomial.items() if exponent > 1}
    if max(monomial.values()) == 1:
        return dict.fromkeys(itertools.combinations(sorted(monomial), 2), 1)
    factors = sorted(monomial.items())
    found = {
        (one, other): min(exponent, times) for (one, exponent), (other, times) in itertools.combinations(factors, 2)
    }
    for atom, exponent in factors:
        if exponent > 1:
            found[atom, atom] = exponent // 2
    return found


def extract(monomials: Sequence[MutableMapping[int, int]], atom: Callable[[], int]) -> dict[int, Pair]:
    """Replace pairs of factors that occur more than once in ``monomials`` by atoms of their own, in place.

    monomials: atoms and their exponents.
    Returns the pairs, in the order in which they were found, by their atoms.

    >>> monomials = [{1: 1, 2: 1, 3: 1}, {1: 1, 2: 1, 4: 1}]
    >>> extract(monomials, lambda: 5), monomials
    ({5: (1, 2)}, [{3: 1, 5: 1}, {4: 1, 5: 1}])
    """
    return _Extraction(monomials, atom).run()


class _Extraction:
    def __init__(self, monomials: Sequence[MutableMapping[int, int]], atom: Callable[[], int]) -> None:
        self.monomials = monomials
        self.atom = atom
        self.members: dict[Pair, list[int]] = {}
        """Monomials that each pair occurs in, or did; not of pairs that occurred once."""
        self.queue: list[Entry] = []

    def run(self) -> dict[int, Pair]:
        first: dict[Pair, int] = {}
        members = self.members
        often: dict[Pair, int] = {}
        for number, monomial in enumerate(self.monomials):
            if len(monomial) < 2 and 1 in monomial.values():
                continue
            for pair, times in occurrences(monomial).items():
                before = first.setdefault(pair, number)
                if before != number:
                    if pair in members:
                        members[pair].append(number)
                    else:
                        members[pair] = [before, number]
                elif times > 1:
                    members[pair] = [number]
                if times > 1:
                    often[pair] = often.get(pair, 0) + times - 1
        self.queue = [_unseen(len(numbers) + often.get(pair, 0), pair) for pair, numbers in members.items()]
        heapq.heapify(self.queue)
        found: dict[int, Pair] = {}
        while self.queue:
            entry = heapq.heappop(self.queue)
            now = self._entry(entry[-1])
            if now is None:
                continue
            if now > entry:
                # Its monomials have changed: back into the queue at what it is worth now.
                heapq.heappush(self.queue, now)
            else:
                atom = self.atom()
                found[atom] = entry[-1]
                self._extract(entry[-1], atom)
        return found

    def _entry(self, pair: Pair) -> Entry | None:
        """How good a pair is, the best being least.

        What counts is how often it occurs; then how much more its monomials have in common, because that can be
        shared next; then how many monomials it is the whole of.
        """
        monomials, members = self.monomials, self.members[pair]
        one, other = pair
        if one == other:
            alive = [number for number in members if monomials[number].get(one, 0) > 1]
            count = sum([monomials[number][one] // 2 for number in alive])
        else:
            alive = [number for number in members if one in monomials[number] and other in monomials[number]]
            count = sum([min(monomials[number][one], monomials[number][other]) for number in alive])
        if count < 2:
            return None
        self.members[pair] = alive
        sample = [monomials[number] for number in alive[:_SAMPLE]]
        alike = set(sample[0]).intersection(*sample[1:])
        whole = sum([len(monomial) <= 2 and sum(monomial.values()) == 2 for monomial in sample])
        return -count, -len(alike), -whole, one != other, pair

    def _extract(self, pair: Pair, atom: int) -> None:
        monomials, members, (one, other) = self.monomials, self.members, pair
        fresh: dict[Pair, list[int]] = {}
        for number in members[pair]:
            monomial = monomials[number]
            times = monomial[one] // 2 if one == other else min(monomial[one], monomial[other])
            for factor in pair:
                monomial[factor] -= times
                if not monomial[factor]:
                    del monomial[factor]
            for each in monomial:
                fresh.setdefault((each, atom), []).append(number)
            if times > 1:
                fresh.setdefault((atom, atom), []).append(number)
            monomial[atom] = times
        for made, numbers in fresh.items():
            if made[0] == atom:
                count = sum([monomials[number][atom] // 2 for number in numbers])
            else:
                count = sum([min(monomials[number][made[0]], monomials[number][atom]) for number in numbers])
            if count > 1:
                members[made] = numbers
                heapq.heappush(self.queue, _unseen(count, made))


def _unseen(count: int, pair: Pair) -> Entry:
    """The entry of a pair that has not been looked at: ahead of all others that occur as often."""
    return -count, -_MANY, 0, False, pair


LARGEST_DEGREE = 8
"""Number of factors up to which monomials are looked at in this way."""
_ENOUGH, _HALF = 10, 5
"""Of what use a product is to another that can be made from it; and if that takes one more."""
_LONG = 6
"""What is taken off the use of a product that may need another one first."""


class Wanted:
    """A monomial of several factors.

    factors: the numbers of its factors, each as often as its exponent says. A product of some factors has the sum of
        their numbers, by which it is told from all others.
    """

    __slots__ = ("code", "factors", "pairs", "single")

    def __init__(self, factors: Sequence[int]) -> None:
        self.factors = factors
        self.code = sum(factors)
        self.single = list(dict.fromkeys(factors))
        pairs = itertools.combinations(factors, 2) if 3 < len(factors) <= LARGEST_DEGREE else ()
        self.pairs = {one + two: (one, two) for one, two in pairs}

    def is_made(self, made: Container[int]) -> bool:
        """Whether it is the product of two that are there, or of one and a single factor."""
        code = self.code
        for factor in self.single:
            if code - factor in made:
                return True
        return any(pair in made and code - pair in made for pair in self.pairs)

    def halves(self, made: Container[int]) -> tuple[int, int]:
        """Two products that are there, or single factors, of which it is the product; the first factor if possible."""
        code = self.code
        if len(self.factors) == 2:
            return self.factors[0], self.factors[1]
        whole = (factor for factor in self.single if code - factor in made)
        pairs = (pair for pair in self.pairs if pair in made and code - pair in made)
        half = next(itertools.chain(whole, pairs))
        return half, code - half

    def part(self, code: int) -> Sequence[int] | None:
        """The factors of a product that is a pair of them, or all but one or two; None for any other."""
        if code in self.pairs:
            return self.pairs[code]
        rest = self.code - code
        others = (rest,) if rest in self.single else self.pairs.get(rest)
        if others is None:
            return None
        factors = list(self.factors)
        for factor in others:
            factors.remove(factor)
        return factors


def cover(wanted: Iterable[Wanted]) -> list[Wanted]:
    """Products that have to be made besides those that are wanted.

    >>> a, b, c, d = 1, 10, 100, 1000
    >>> [each.factors for each in cover([Wanted([a, b, c]), Wanted([a, b, d])])]
    [[1, 10]]
    >>> cover([Wanted([a, b, c]), Wanted([b, c])])
    []
    """
    return _Covering(wanted).run()


class _Covering:
    def __init__(self, wanted: Iterable[Wanted]) -> None:
        self.made: set[int] = set()
        self.missing: dict[int, Wanted] = {}
        """What is wanted and can not be made yet."""
        self.uses: dict[int, int] = {}
        """Of what use each product would be to all that is missing."""
        self.readers: dict[int, list[Wanted]] = {}
        """What has been missing and might be made from each product."""
        wanted = list(wanted)
        self.made.update([each.code for each in wanted])
        for each in wanted:
            self._want(each)

    def run(self) -> list[Wanted]:
        found: list[Wanted] = []
        while self.missing:
            # Of equal ones the first.
            code = max(self.uses, key=self.uses.__getitem__)
            parts = (each.part(code) for each in self.missing.values())
            found.append(Wanted(next(part for part in parts if part is not None)))
            self._make(found[-1])
        return found

    def _want(self, each: Wanted) -> None:
        if len(each.factors) < 3 or each.code in self.missing or each.is_made(self.made):
            return
        self.missing[each.code] = each
        self._use(each, 1)
        for part in (*each.single, *each.pairs):
            self.readers.setdefault(each.code - part, []).append(each)
        for pair in each.pairs:
            self.readers.setdefault(pair, []).append(each)

    def _use(self, each: Wanted, times: int) -> None:
        """Add the use of all products to one that is missing."""
        made, uses, code, degree = self.made, self.uses, each.code, len(each.factors)
        start = -_LONG if degree > 3 else 0
        for factor in each.single:
            uses[code - factor] = uses.get(code - factor, start) + times * _ENOUGH
        start = -_LONG if degree > 4 else 0
        for pair in each.pairs:
            if pair in made:
                uses[code - pair] = uses.get(code - pair, start) + times * _ENOUGH
            else:
                uses[pair] = uses.get(pair, 0) + times * _HALF

    def _make(self, product: Wanted) -> None:
        readers = self.readers.get(product.code, ())
        touched = {each.code: each for each in readers if each.code in self.missing}
        for each in touched.values():
            self._use(each, -1)
        self.made.add(product.code)
        for each in touched.values():
            if each.is_made(self.made):
                del self.missing[each.code]
            else:
                self._use(each, 1)
        self._want(product)
