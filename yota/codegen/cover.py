"""Fewest products for all monomials that are wanted: each is made of two others that are there, or of few more."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence

__all__ = ["LARGEST_DEGREE", "Wanted", "cover"]

LARGEST_DEGREE = 8
"""Number of factors up to which monomials are looked at in this way."""
_LONG, _HALF = 0.6, 0.5
"""What is taken off the use of a product that may need another one first, and the use of one that does not suffice."""


class Wanted:
    """A monomial of several factors.

    Parameters
    ----------
    factors
        The numbers of its factors, each as often as its exponent says. A product of some factors has the sum of their
        numbers, by which it is told from all others.
    """

    __slots__ = ("code", "factors", "pairs", "single")

    def __init__(self, factors: Sequence[int]) -> None:
        self.factors = factors
        self.code = sum(factors)
        self.single = list(dict.fromkeys(factors))
        pairs = itertools.combinations(factors, 2) if 3 < len(factors) <= LARGEST_DEGREE else ()
        self.pairs = list(dict.fromkeys(map(sum, pairs)))

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

    def without(self, rest: int) -> Sequence[int] | None:
        """The factors of which the product is ``rest``, if that leaves one factor or two."""
        for left in (1, 2):
            for places in itertools.combinations(range(len(self.factors)), left):
                if self.code - sum(self.factors[place] for place in places) == rest:
                    return [factor for place, factor in enumerate(self.factors) if place not in places]
        return None


def cover(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Products that have to be made besides those that are wanted.

    Examples
    --------
    >>> a, b, c, d = 1, 10, 100, 1000
    >>> [each.factors for each in cover([Wanted([a, b, c]), Wanted([a, b, d])])]
    [[1, 10]]
    >>> cover([Wanted([a, b, c]), Wanted([b, c])])
    []
    """
    made = {each.code for each in wanted}
    found: list[Wanted] = []
    missing = [each for each in wanted if len(each.factors) > 2 and not each.is_made(made)]
    while missing:
        found.append(_best(missing, made))
        made.add(found[-1].code)
        missing = [each for each in missing if not each.is_made(made)]
        if len(found[-1].factors) > 2 and not found[-1].is_made(made):
            missing.append(found[-1])
    return found


def _best(missing: Iterable[Wanted], made: set[int]) -> Wanted:
    """The product that most of those that are missing can be made from; of equal ones the first."""
    uses: dict[tuple[int, int], float] = {}
    for each in missing:
        degree = len(each.factors)
        for factor in each.single:
            key = degree - 1, each.code - factor
            uses[key] = uses.get(key, 0.0) + 1.0
        for pair in each.pairs:
            key, use = ((degree - 2, each.code - pair), 1.0) if pair in made else ((2, pair), _HALF)
            uses[key] = uses.get(key, 0.0) + use
    degree, code = max(uses, key=lambda key: uses[key] - _LONG * (key[0] > 2))
    for each in missing:
        found = each.without(code)
        if found is not None and len(found) == degree:
            return Wanted(found)
        if degree == 2 and code in each.pairs:
            return Wanted(next(list(two) for two in itertools.combinations(each.factors, 2) if sum(two) == code))
    raise AssertionError("no monomial needs what was found to be of use")
