"""How many operations sums on scalars take, their common products shared."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection

from yota.codegen.cover import LARGEST_DEGREE, Wanted, cover
from yota.codegen.pairs import extract, length
from yota.codegen.table import Sums, Table

_BITS = 60
"""Of the numbers by which factors are told apart."""


class Scales:
    """Weighs sums of one table; what is found out about products on the way is kept."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._products: dict[int, Wanted] = {}
        self._codes: dict[tuple[float | str, ...], int] = {}
        self._chance = random.Random(0)

    def weight(self, sums: Sums) -> int:
        """Number of additions, subtractions, products, divisions and negations."""
        table = self.table
        living = table.living(sums)
        times = Counter([table.unsigned(term) for terms in (table.roots, *living.values()) for term in terms])
        total = sum(self._is_negated(term, times) for term in table.roots)
        for atom, terms in living.items():
            if atom in table.quotients:
                total += 1
            else:
                total += len(terms) - 1 + self._begins_negated(atom, terms, times)
        return total + self._multiplied(times)

    def _begins_negated(self, atom: int, terms: tuple[int, ...], times: Counter[int]) -> bool:
        """Whether there is no term to subtract from, and no number to take the sign."""
        if not self._is_negated(terms[0], times):
            return False
        others = terms[1:2] if atom in self.table.ordered else terms[1:]
        return all(self.table.terms[term][0] < 0 for term in others)

    def _is_negated(self, term: int, times: Counter[int]) -> bool:
        """Whether a sign is an operation: a number takes it if the product that it is a factor of is only one."""
        coefficient, monomial = self.table.terms[term]
        return coefficient < 0 and bool(monomial) and (coefficient == -1.0 or times[self.table.unsigned(term)] > 1)

    def _multiplied(self, terms: Collection[int]) -> int:
        """Number of products."""
        products = [product for product in map(self._product, terms) if len(product.factors) > 1]
        if all(len(product.factors) <= LARGEST_DEGREE for product in products):
            return len(products) + len(cover(products))
        monomials: list[dict[int, int]] = [Counter(product.factors) for product in products]
        pairs = extract(monomials, lambda: self._chance.getrandbits(_BITS))
        return len(pairs) + sum(map(length, monomials))

    def _product(self, term: int) -> Wanted:
        found = self._products.get(term)
        if found is None:
            coefficient, monomial = self.table.terms[term]
            factors = [self._code(atom) for atom, exponent in monomial for _ in range(exponent)]
            if monomial and coefficient != 1.0:
                factors.append(self._code(coefficient, "number"))
            found = self._products[term] = Wanted(factors)
        return found

    def _code(self, *factor: float | str) -> int:
        found = self._codes.get(factor)
        if found is None:
            found = self._codes[factor] = self._chance.getrandbits(_BITS)
        return found
