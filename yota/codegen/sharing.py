"""Common products: the pair of factors that most monomials share becomes a product of its own, again and again."""

from __future__ import annotations

import heapq
import itertools

from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Monomial, Term, chain_length

__all__ = ["Products", "share", "weight"]

_SAMPLE = 8


class Products:
    """Monomials of a forest as products of few factors.

    Attributes
    ----------
    numbers
        Atoms that stand for constants, and their values.
    pairs
        Atoms that stand for products of two atoms.
    factors
        For each coefficient (without sign) and monomial of the forest, its atoms with exponents.
    """

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.numbers: dict[int, float] = {}
        self.pairs: dict[int, tuple[int, int]] = {}
        self.factors: dict[Term, dict[int, int]] = {}
        self.times: dict[Term, int] = {}
        self._number_atoms: dict[float, int] = {}
        self._scalar_products: dict[tuple[tuple[int, int], ...], int] = {}
        self.products: dict[int, Monomial] = {}

    def add(self, term: Term) -> None:
        """Take a monomial in."""
        key = abs(term[0]), term[1]
        self.times[key] = self.times.get(key, 0) + 1
        if key in self.factors or not key[1]:
            return
        factors = dict(key[1])
        if key[0] != 1.0:
            factors[self._number(key[0])] = 1
        self.factors[key] = self._scalars_joined(factors) if self.forest.is_array else factors

    def signed(self, term: Term) -> bool:
        """Whether a term takes a sign without an operation: it is a number, or has one that is its own."""
        key = abs(term[0]), term[1]
        if not term[1]:
            return True
        factors = self.factors[key]
        return self.times[key] == 1 and len(factors) > 1 and any(atom in self.numbers for atom in factors)

    def _number(self, value: float) -> int:
        atom = self._number_atoms.get(value)
        if atom is None:
            atom = self._number_atoms[value] = self.forest.atom()
            self.numbers[atom] = value
            if self.forest.is_array:
                self.forest.scalars.add(atom)
        return atom

    def _scalars_joined(self, factors: dict[int, int]) -> dict[int, int]:
        """On arrays: all 0-d factors are multiplied first, so that the array is passed over once."""
        scalars = tuple(sorted(item for item in factors.items() if item[0] in self.forest.scalars))
        if len(scalars) == len(factors) or not scalars or (len(scalars) == 1 and scalars[0][1] == 1):
            return factors
        atom = self._scalar_products.get(scalars)
        if atom is None:
            atom = self._scalar_products[scalars] = self.forest.atom()
            self.products[atom] = scalars
            self.forest.scalars.add(atom)
        arrays = {atom: exponent for atom, exponent in factors.items() if atom not in self.forest.scalars}
        return {atom: 1, **arrays}


def share(forest: Forest) -> Products:
    """Extract the products that several terms of ``forest`` have in common."""
    products = Products(forest)
    for term in [*forest.roots.values(), *(term for atom in forest.living() for term in forest.parts(atom))]:
        products.add(term)
    _Extraction(products).run()
    return products


def weight(forest: Forest) -> int:
    """Number of operations of a forest on scalars, its common products shared."""
    forest = forest.copy()
    products = share(forest)
    total = len(products.pairs)
    total += sum(_length(factors) for factors in products.factors.values())
    total += sum(term[0] < 0 and not products.signed(term) for term in forest.roots.values())
    sums = [forest.sums[atom] for atom in forest.living() if atom in forest.sums]
    total += sum(len(each.alive()) - 1 + _negations(each, products) for each in sums)
    return total + len(forest.living()) - len(sums)


def _negations(each: Sum, products: Products) -> int:
    """Whether a sum begins with a negation: there is no term to subtract from, and no number to take the sign."""
    terms = each.alive()
    return int(all(term[0] < 0 for term in terms[: 2 if each.ordered else None]) and not products.signed(terms[0]))


def _length(factors: dict[int, int]) -> int:
    """Number of products that a monomial takes."""
    return sum(chain_length(exponent) + 1 for exponent in factors.values()) - 1


class _Extraction:
    def __init__(self, products: Products) -> None:
        self.products = products
        self.monomials = list(products.factors.values())
        self.members: dict[tuple[int, int], set[int]] = {}
        self.queue: list[tuple[int, int, int, bool, tuple[int, int]]] = []

    def run(self) -> None:
        for number, monomial in enumerate(self.monomials):
            for pair in _pairs(monomial):
                self.members.setdefault(pair, set()).add(number)
        for pair in self.members:
            self._enqueue(pair)
        while self.queue:
            entry = heapq.heappop(self.queue)
            found = self._entry(entry[-1])
            if found is None:
                continue
            if found > entry:
                # Its monomials have changed: back into the queue at what it is worth now.
                heapq.heappush(self.queue, found)
            else:
                self._extract(entry[-1])

    def _enqueue(self, pair: tuple[int, int]) -> None:
        entry = self._entry(pair)
        if entry is not None:
            heapq.heappush(self.queue, entry)

    def _entry(self, pair: tuple[int, int]) -> tuple[int, int, int, bool, tuple[int, int]] | None:
        """How good a pair is, the best being least.

        What counts is how often it occurs; then how much more its monomials have in common, because that can be
        shared next; then how many monomials it is the whole of.
        """
        count = self._count(pair)
        if count < 2:
            return None
        members = [self.monomials[number] for number in itertools.islice(self.members[pair], _SAMPLE)]
        alike = set(members[0]).intersection(*members[1:])
        whole = sum(sum(monomial.values()) == 2 for monomial in members)
        return -count, -len(alike), -whole, pair[0] != pair[1], pair

    def _count(self, pair: tuple[int, int]) -> int:
        return sum(_occurs(self.monomials[number], pair) for number in self.members.get(pair, ()))

    def _extract(self, pair: tuple[int, int]) -> None:
        atom = self.products.forest.atom()
        self.products.pairs[atom] = pair
        forest = self.products.forest
        if pair[0] in forest.scalars and pair[1] in forest.scalars:
            forest.scalars.add(atom)
        fresh: dict[tuple[int, int], None] = {}
        for number in sorted(self.members[pair]):
            monomial = self.monomials[number]
            times = _occurs(monomial, pair)
            if not times:
                continue
            for old in _pairs(monomial):
                self.members[old].discard(number)
            for literal in pair:
                monomial[literal] -= times * (1 if pair[0] != pair[1] else 2)
                if pair[0] == pair[1]:
                    break
            for literal in set(pair):
                if not monomial[literal]:
                    del monomial[literal]
            monomial[atom] = times
            for made in _pairs(monomial):
                self.members.setdefault(made, set()).add(number)
                fresh[made] = None
        for made in fresh:
            if atom in made:
                self._enqueue(made)


def _pairs(monomial: dict[int, int]) -> list[tuple[int, int]]:
    atoms = sorted(monomial)
    found = [(one, two) for position, one in enumerate(atoms) for two in atoms[position + 1 :]]
    found.extend((atom, atom) for atom in atoms if monomial[atom] > 1)
    return found


def _occurs(monomial: dict[int, int], pair: tuple[int, int]) -> int:
    one, two = pair
    if one == two:
        return monomial.get(one, 0) // 2
    return min(monomial.get(one, 0), monomial.get(two, 0))
