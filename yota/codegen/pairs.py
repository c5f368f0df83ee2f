"""Common products: the pair of factors that most monomials share becomes a product of its own, again and again."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import TypeAlias

from yota.codegen.monomials import chain_length

__all__ = ["Pair", "extract", "length", "occurrences"]

Pair: TypeAlias = tuple[int, int]

_SAMPLE = 8


def length(monomial: Mapping[int, int]) -> int:
    """Number of products that a monomial takes by itself.

    Examples
    --------
    >>> length({1: 2, 3: 1}), length({1: 1}), length({})
    (2, 0, 0)
    """
    found = -1
    for exponent in monomial.values():
        found += 1 if exponent == 1 else chain_length(exponent) + 1
    return max(found, 0)


def occurrences(monomial: Mapping[int, int]) -> dict[Pair, int]:
    """Pairs of factors of a monomial, and how often each occurs in it.

    Examples
    --------
    >>> occurrences({1: 2, 3: 2})
    {(1, 3): 2, (1, 1): 1, (3, 3): 1}
    """
    if len(monomial) < 2:
        return {(atom, atom): exponent // 2 for atom, exponent in monomial.items() if exponent > 1}
    factors = sorted(monomial.items())
    if len(factors) == 2 and factors[0][1] == factors[1][1] == 1:
        return {(factors[0][0], factors[1][0]): 1}
    found = {
        (one, other): min(exponent, times) for (one, exponent), (other, times) in itertools.combinations(factors, 2)
    }
    for atom, exponent in factors:
        if exponent > 1:
            found[atom, atom] = exponent // 2
    return found


def extract(monomials: Sequence[MutableMapping[int, int]], atom: Callable[[], int]) -> dict[int, Pair]:
    """Replace pairs of factors that occur more than once in ``monomials`` by atoms of their own, in place.

    Parameters
    ----------
    monomials
        Atoms and their exponents.
    atom
        Gives new atoms.

    Returns
    -------
    dict
        The pairs, in the order in which they were found, by their atoms.

    Examples
    --------
    >>> monomials = [{1: 1, 2: 1, 3: 1}, {1: 1, 2: 1, 4: 1}]
    >>> extract(monomials, lambda: 5), monomials
    ({5: (1, 2)}, [{3: 1, 5: 1}, {4: 1, 5: 1}])
    """
    return _Extraction(monomials, atom).run()


class _Extraction:
    def __init__(self, monomials: Sequence[MutableMapping[int, int]], atom: Callable[[], int]) -> None:
        self.monomials = monomials
        self.atom = atom
        self.members: dict[Pair, dict[int, int]] = {}
        """How often each pair occurs in which monomials; not of pairs that occurred once."""
        self.queue: list[tuple[int, int, int, bool, Pair]] = []

    def run(self) -> dict[int, Pair]:
        first: dict[Pair, int] = {}
        for number, monomial in enumerate(self.monomials):
            if len(monomial) == 1 and 1 in monomial.values():
                continue
            for pair, times in occurrences(monomial).items():
                if pair in self.members:
                    self.members[pair][number] = times
                elif pair in first:
                    self.members[pair] = {first[pair]: 1, number: times}
                elif times > 1:
                    self.members[pair] = {number: times}
                else:
                    first[pair] = number
        for pair in self.members:
            self._enqueue(pair)
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

    def _enqueue(self, pair: Pair) -> None:
        entry = self._entry(pair)
        if entry is not None:
            heapq.heappush(self.queue, entry)

    def _entry(self, pair: Pair) -> tuple[int, int, int, bool, Pair] | None:
        """How good a pair is, the best being least.

        What counts is how often it occurs; then how much more its monomials have in common, because that can be
        shared next; then how many monomials it is the whole of.
        """
        members = self.members[pair]
        count = sum(members.values())
        if count < 2:
            return None
        sample = [self.monomials[number] for number in itertools.islice(members, _SAMPLE)]
        alike = set(sample[0]).intersection(*sample[1:])
        whole = sum(len(monomial) <= 2 and sum(monomial.values()) == 2 for monomial in sample)
        return -count, -len(alike), -whole, pair[0] != pair[1], pair

    def _extract(self, pair: Pair, atom: int) -> None:
        parts, fresh = dict.fromkeys(pair), dict[Pair, None]()
        for number, times in sorted(self.members[pair].items()):
            monomial = self.monomials[number]
            for before, _ in _around(monomial, parts):
                if before in self.members:
                    self.members[before].pop(number, None)
            for factor in pair:
                monomial[factor] -= times
                if not monomial[factor]:
                    del monomial[factor]
            monomial[atom] = times
            for made, often in _around(monomial, (*parts, atom)):
                if atom in made or made in self.members:
                    self.members.setdefault(made, {})[number] = often
                    if atom in made:
                        fresh[made] = None
        for made in fresh:
            self._enqueue(made)


def _around(monomial: Mapping[int, int], atoms: Iterable[int]) -> Iterator[tuple[Pair, int]]:
    """Pairs of one of ``atoms`` and any factor of a monomial, and how often each occurs in it."""
    for atom in atoms:
        exponent = monomial.get(atom, 0)
        if exponent > 1:
            yield (atom, atom), exponent // 2
        for other, times in monomial.items() if exponent else ():
            if other != atom:
                yield (atom, other) if atom < other else (other, atom), min(exponent, times)
