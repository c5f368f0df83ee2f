"""The monomials of a system of polynomials as products of few factors, which they share."""

from __future__ import annotations

import math

from yota.optimize.polynomials.pairs import extract
from yota.optimize.polynomials.system import Monomial, Term, length
from yota.optimize.polynomials.terms import Table


class Products:
    """Monomials of a table as products of few factors.

    numbers: atoms that stand for constants, and their values.
    pairs: atoms that stand for products of two atoms.
    terms, times: coefficients (without sign) and monomials; and how often each occurs. The place in these lists is the
        number of a term.
    factors: the atoms of each product with exponents; none for numbers.
    parts: the terms of each sum and quotient, and whether they are positive.
    roots: the term of each root, and whether it is positive.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.is_array = table.origin.is_array
        self.numbers: dict[int, float] = {}
        self.pairs: dict[int, tuple[int, int]] = {}
        self.terms: list[Term] = []
        self.times: list[int] = []
        self.factors: list[dict[int, int]] = []
        self.products: dict[int, Monomial] = {}
        self._known: dict[int, tuple[bool, int]] = {}
        self._number_atoms: dict[float, int] = {}
        self._scalar_products: dict[tuple[tuple[int, int], ...], int] = {}
        self.roots = dict(zip(table.origin.roots, map(self._add, table.roots), strict=True))
        self.parts = {atom: [*map(self._add, terms)] for atom, terms in sorted(table.living(table.sums).items())}

    def _add(self, term: int) -> tuple[bool, int]:
        """Whether a term of the table is positive, and its number."""
        found = self._known.get(term)
        if found is None:
            found = self._known[term] = self._new(term)
        self.times[found[1]] += 1
        return found

    def _new(self, term: int) -> tuple[bool, int]:
        coefficient, monomial = self.table.terms[term]
        if math.copysign(1.0, coefficient) < 0:
            positive = self.table.number((-coefficient, monomial))
            if positive not in self._known:
                self._known[positive] = self._new(positive)
            return False, self._known[positive][1]
        factors = dict(monomial)
        if monomial and coefficient != 1.0:
            atom = self._number_atoms.get(coefficient)
            if atom is None:
                atom = self._number_atoms[coefficient] = self.table.atom()
                self.numbers[atom] = coefficient
                if self.is_array:
                    self.table.scalars.add(atom)
            factors[atom] = 1
        self.terms.append((coefficient, monomial))
        self.times.append(0)
        self.factors.append(self._scalars_joined(factors) if self.is_array else factors)
        return True, len(self.terms) - 1

    def signed(self, number: int) -> bool:
        """Whether a term takes a sign without an operation: it is a number, or has one that is its own."""
        factors = self.factors[number]
        if not factors:
            return True
        return self.times[number] == 1 and len(factors) > 1 and any(atom in self.numbers for atom in factors)

    def least(self) -> int:
        """How many operations all takes, but for changes of sign."""
        sums = sum([len(parts) - 1 for parts in self.parts.values()])
        return sums + len(self.pairs) + sum([length(each.items()) for each in self.factors])

    def _scalars_joined(self, factors: dict[int, int]) -> dict[int, int]:
        """On arrays: all 0-d factors are multiplied first, so that the array is passed over once."""
        scalars = tuple(sorted(item for item in factors.items() if item[0] in self.table.scalars))
        if len(scalars) == len(factors) or not scalars or (len(scalars) == 1 and scalars[0][1] == 1):
            return factors
        atom = self._scalar_products.get(scalars)
        if atom is None:
            atom = self._scalar_products[scalars] = self.table.atom()
            self.products[atom] = scalars
            self.table.scalars.add(atom)
        arrays = {atom: exponent for atom, exponent in factors.items() if atom not in self.table.scalars}
        return {atom: 1, **arrays}


def share(table: Table) -> Products:
    """Extract the products that several terms of the sums of ``table`` have in common."""
    products = Products(table)
    products.pairs = extract(products.factors, table.atom)
    for atom, pair in products.pairs.items():
        if table.scalars.issuperset(pair):
            table.scalars.add(atom)
    return products
