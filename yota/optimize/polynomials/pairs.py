"""Common products: the pair of factors that most monomials share, again and again."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TypeAlias

Pair: TypeAlias = tuple[int, int]

Entry: TypeAlias = tuple[int, int, int, bool, Pair]
"""How good a pair is, and the pair."""

_SAMPLE, _MANY = 8, 1 << 30


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
