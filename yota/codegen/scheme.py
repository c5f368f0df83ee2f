"""Horner's scheme for a sum and its gradient together: each term gives up the factor that leaves fewest products.

Every monomial but 1 is a factor times another monomial: a tree, whose edges are the products of the nested sum. In
reverse mode an edge adds to the adjoint of its factor what is below it, times the monomial it starts from; so it
depends on the choice of factors how many products the gradient takes.

The search is that of S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, "Optimization by simulated annealing" (Science 220,
1983).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence

from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Monomial, Term, multiply

__all__ = ["arrange", "is_worth_it"]

_BITS = 8
"""Room for an exponent and the bit that tells of a borrow."""
_FEWEST, _MOST = 24, 400
"""Terms of a sum that is worth it, and of one that is too long."""
_LARGEST_DEGREE = 32
_TRIES_EACH = 60
_EFFORT = 400_000
"""Tries, times the terms that each of them may look at."""
_HOT, _COLD = 1.5, 0.05
"""Products by which a try may be worse, at first and in the end."""


def is_worth_it(forest: Forest) -> bool:
    """Whether scalars are added up in a sum, just one, that is neither short nor very long."""
    sums = [forest.sums[atom] for atom in forest.living() if atom in forest.sums]
    long = [each for each in sums if len(each.alive()) >= _FEWEST]
    return len(long) == 1 and not forest.is_array and _fits(long[0])


def arrange(forest: Forest, seed: int) -> None:
    """Nest the long sums of ``forest`` in place; ``seed`` decides between choices that look equal."""
    for atom in forest.living():
        if atom in forest.sums and _fits(forest.sums[atom]):
            _Nested(forest, forest.sums[atom], random.Random(seed)).run(atom)


def _fits(each: Sum) -> bool:
    terms = each.alive()
    degrees = (sum(exponent for _, exponent in monomial) for _, monomial in terms)
    return _FEWEST <= len(terms) <= _MOST and max(degrees) <= _LARGEST_DEGREE


class _Tree:
    """Monomials, each a number whose digits are exponents, and the factor that each of them gives up.

    Parameters
    ----------
    terms
        Monomials that must be in the tree, and whether they have a coefficient that takes a product.
    width
        Number of different factors.
    """

    def __init__(self, terms: Mapping[int, bool], width: int, choose: random.Random) -> None:
        self.terms = terms
        self.units = [1 << (_BITS * number) for number in range(width)]
        self.borrow = sum(unit << (_BITS - 1) for unit in self.units)
        self.choose = choose
        self.factor: dict[int, int] = {}
        self.users: dict[int, int] = {0: 0}
        self.made: list[set[int]] = [set() for _ in self.units]
        self._factors: dict[int, tuple[int, ...]] = {}
        self.log: list[tuple[int, int | None]] = []
        for term in sorted(terms, key=self.degree, reverse=True):
            if term and term not in self.factor:
                self._grow(term)
        self.products = [self._products(number) for number in range(width)]
        self.count = self._count()

    def factors(self, monomial: int) -> tuple[int, ...]:
        """Numbers of the factors that a monomial has, each as often as its exponent says."""
        found = self._factors.get(monomial)
        if found is None:
            digits = ((number, monomial >> (_BITS * number) & (1 << _BITS) - 1) for number in range(len(self.units)))
            found = self._factors[monomial] = tuple(number for number, digit in digits for _ in range(digit))
        return found

    def degree(self, monomial: int) -> int:
        """Number of factors."""
        return len(self.factors(monomial))

    def search(self, tries: int) -> dict[int, int]:
        """The factor of each monomial, in the tree that takes fewest products of all that are tried."""
        least, best = self.count, dict(self.factor)
        movable = [term for term in self.terms if len(set(self.factors(term))) > 1]
        for number in range(tries if movable else 0):
            limit = self.count - math.log(1.0 - self.choose.random()) * (_HOT * (1 - number / tries) + _COLD)
            inner = self.choose.random() < 0.2
            monomial = self.choose.choice(list(self.factor) if inner else movable)
            self._change(monomial, self.choose.choice(self.factors(monomial)), limit)
            if self.count < least:
                least, best = self.count, dict(self.factor)
        return best

    def _change(self, monomial: int, factor: int, limit: float) -> None:
        """Let a monomial give up another factor, unless that takes more products than ``limit``."""
        if factor == self.factor[monomial]:
            return
        self.log.clear()
        self._set(monomial, factor)
        changed = self.log[:]
        touched = self._touched(changed)
        kept, count = {label: self.products[label] for label in touched}, self.count
        for label in touched:
            self.products[label] = self._products(label)
        self.count = self._count()
        if self.count > limit:
            for each, before in reversed(changed):
                self._write(each, before)
            for label, products in kept.items():
                self.products[label] = products
            self.count = count

    def _touched(self, changed: Iterable[tuple[int, int | None]]) -> set[int]:
        """Factors whose products depend on what has changed: given up by a monomial, or by what it was made from."""
        found: set[int | None] = set()
        for monomial, before in changed:
            for factor in (before, self.factor.get(monomial)):
                if factor is not None:
                    found |= {factor, self.factor.get(monomial - self.units[factor])}
        return {each for each in found if each is not None}

    def _set(self, monomial: int, factor: int) -> None:
        before = self.factor.get(monomial)
        self._write(monomial, factor)
        parent = monomial - self.units[factor]
        if parent and parent not in self.factor:
            self._grow(parent)
        while before is not None:
            monomial -= self.units[before]
            if not monomial or monomial in self.terms or self.users[monomial]:
                break
            before = self.factor[monomial]
            self._write(monomial, None)

    def _grow(self, monomial: int) -> None:
        """Take a monomial in, made from one that is there already if possible."""
        while True:
            factors = self.factors(monomial)
            ready = [each for each in factors if self._is_there(monomial - self.units[each])]
            factor = self.choose.choice(ready or factors)
            self._write(monomial, factor)
            monomial -= self.units[factor]
            if not monomial or monomial in self.factor:
                return

    def _is_there(self, monomial: int) -> bool:
        return not monomial or monomial in self.factor or monomial in self.terms

    def _write(self, monomial: int, factor: int | None) -> None:
        before = self.factor.pop(monomial, None)
        self.log.append((monomial, before))
        if before is not None:
            self.made[before].discard(monomial)
            self.users[monomial - self.units[before]] -= 1
        if factor is not None:
            self.factor[monomial] = factor
            self.made[factor].add(monomial)
            parent = monomial - self.units[factor]
            self.users[parent] = self.users.get(parent, 0) + 1

    def _count(self) -> int:
        """Products of the sum, and sums and products of its gradient."""
        return 2 * len(self.factor) + sum(self.products)

    def _products(self, label: int) -> int:
        """Products in the adjoint of one factor, itself nested; less those of the sum that a coefficient of 1 saves."""
        unit, made, terms = self.units[label], self.made[label], self.terms
        wanted: set[int] = set()
        saved = 0
        for monomial in made:
            start = monomial - unit
            bare = not self.users.get(monomial) and not terms[monomial]
            saved += bare + (bare and start > 0)
            # In x*(a + b*x) the product b*x of the value serves the derivative a + b*x + b*x too.
            if start not in made or monomial + unit in made:
                wanted.add(start)
        wanted.discard(0)
        return len(wanted) + self._missing(wanted) - saved

    def _missing(self, wanted: set[int]) -> int:
        """How many more monomials are needed for each to be a factor times another."""
        found = set(wanted)
        for factors, monomial in sorted([(self.factors(each), each) for each in wanted], key=_degree_first):
            while len(factors) > 1:
                ways = {monomial - self.units[each] for each in factors}
                if not found.isdisjoint(ways):
                    break
                monomial = max(ways, key=lambda way: (self._multiples(way, found), way))
                found.add(monomial)
                factors = self.factors(monomial)
        return len(found) - len(wanted)

    def _multiples(self, divisor: int, monomials: Iterable[int]) -> int:
        borrow = self.borrow
        return sum(((each | borrow) - divisor) & borrow == borrow for each in monomials)


def _degree_first(item: tuple[tuple[int, ...], int]) -> tuple[int, int]:
    return -len(item[0]), item[1]


class _Nested:
    """A sum and the tree that it is nested by."""

    def __init__(self, forest: Forest, each: Sum, choose: random.Random) -> None:
        self.forest = forest
        self.ordered = each.ordered
        self.atoms = sorted({atom for _, monomial in each.alive() for atom, _ in monomial})
        numbers = {atom: number for number, atom in enumerate(self.atoms)}
        self.places: dict[int, list[tuple[int, float]]] = {}
        for place, (coefficient, monomial) in enumerate(each.alive()):
            packed = sum(exponent << (_BITS * numbers[atom]) for atom, exponent in monomial)
            self.places.setdefault(packed, []).append((place, coefficient))
        terms = {packed: len(found) > 1 or abs(found[0][1]) != 1.0 for packed, found in self.places.items()}
        tree = _Tree(terms, len(self.atoms), choose)
        found = tree.search(min(_TRIES_EACH * len(terms), _EFFORT // len(terms)))
        self.below: dict[int, list[tuple[int, int]]] = {}
        for made in sorted(found, key=tree.degree):
            self.below.setdefault(made - tree.units[found[made]], []).append((made, found[made]))

    def run(self, atom: int) -> None:
        """Nest the sum of ``atom``."""
        self.forest.sums[atom] = Sum(list(self._terms(0)[1]), self.ordered)

    def _terms(self, start: int) -> tuple[int, Sequence[Term]]:
        """What is to be multiplied by a monomial, in the user's order; and where its first term stood."""
        found: list[tuple[int, Term]] = [(place, (number, ())) for place, number in self.places.get(start, ())]
        for monomial, label in self.below.get(start, ()):
            first, terms = self._terms(monomial)
            coefficient, rest = terms[0]
            if len(terms) > 1:
                inner = self.forest.atom()
                self.forest.sums[inner] = Sum(list(terms), self.ordered)
                coefficient, rest = 1.0, ((inner, 1),)
            factor: Monomial = ((self.atoms[label], 1),)
            found.append((first, (coefficient, multiply(rest, factor))))
        found.sort(key=lambda item: item[0])
        return found[0][0], [term for _, term in found]
