"""The monomials of a system of polynomials as products of few factors, which they share."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from yota.optimize.polynomials.pairs import LARGEST_DEGREE, Wanted, cover, extract, length
from yota.optimize.polynomials.system import Monomial, Term
from yota.optimize.polynomials.terms import Table

_BITS = 4
"""Room for an exponent of at most the largest degree."""
_MOST = 400
"""Monomials up to which it is looked for fewer products for all of them: each step looks at all that are missing."""


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
        return sums + len(self.pairs) + sum(map(length, self.factors))

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


def share(table: Table, *, covered: bool = True) -> Products:
    """Extract the products that several terms of the sums of ``table`` have in common.

    With ``covered`` it is also tried to make all monomials from the fewest others, which takes several times as long.
    """
    products = Products(table)
    found = _covered(products) if covered and not products.is_array else None
    products.pairs = extract(products.factors, table.atom)
    if found is not None and found.count < len(products.pairs) + sum(map(length, products.factors)):
        products.pairs, products.factors = found.pairs, found.factors
    for atom, pair in products.pairs.items():
        if table.scalars.issuperset(pair):
            table.scalars.add(atom)
    return products


@dataclass(frozen=True, slots=True)
class _Covered:
    """Pairs of factors and monomials made from them, and the number of products that this takes."""

    pairs: dict[int, tuple[int, int]]
    factors: list[dict[int, int]]
    count: int


def _covered(products: Products) -> _Covered | None:
    """Monomials as products of two others at most; None where there are many, or one has many factors."""
    if len(products.factors) > _MOST:
        return None
    codes: dict[int, int] = {}
    wanted: dict[int, Wanted] = {}
    for number, factors in enumerate(products.factors):
        if sum(factors.values()) > LARGEST_DEGREE:
            return None
        # Numbers first: one that is a factor by itself takes the sign.
        order = sorted(factors.items(), key=lambda item: (item[0] not in products.numbers, item[0]))
        found = [codes.setdefault(atom, 1 << (_BITS * len(codes))) for atom, times in order for _ in range(times)]
        if len(found) > 1:
            wanted[number] = Wanted(found)
    made = {each.code: each for each in (*wanted.values(), *cover(list(wanted.values())))}
    halves = {code: each.halves(made) for code, each in made.items()}
    atoms = {code: atom for atom, code in codes.items()}
    used = {code for pair in halves.values() for code in pair}
    pairs: dict[int, tuple[int, int]] = {}
    for code in sorted((code for code in made if code in used), key=lambda code: len(made[code].factors)):
        one, two = sorted(atoms[half] for half in halves[code])
        atoms[code] = products.table.atom()
        pairs[atoms[code]] = one, two
    rewritten = list(products.factors)
    for number, each in wanted.items():
        parts = (each.code,) if each.code in atoms else halves[each.code]
        rewritten[number] = dict(Counter([atoms[part] for part in parts]))
    return _Covered(pairs, rewritten, len(made))
