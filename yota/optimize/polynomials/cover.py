"""Fewest products for all monomials that are wanted: each is made of two others that are there, or of few more."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Sequence

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
