"""Sums as tuples of numbers of terms: what two terms have in common is found out once and then looked up."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from yota.optimize.polynomials.gains import Costs
from yota.optimize.polynomials.system import Monomial, PolynomialSystem, Term, parted, quotient, reduced

_BITS = 60
"""Of the codes of atoms: a monomial has the sum of those of its factors, by which quotients are told apart."""

Sums: TypeAlias = Mapping[int, tuple[int, ...]]
"""The numbers of the terms of each sum, by its atom."""


class Divisor(NamedTuple):
    """Two terms up to scale: monomials without common factor, and their coefficients."""

    left: Monomial
    right: Monomial
    left_coefficient: float
    right_coefficient: float


class Pair(NamedTuple):
    """Two terms as ``scale * factor`` times a divisor, which is told by its number."""

    divisor: int
    scale: float
    factor: Monomial


class Table:
    """The sums of a system, and those that are made from them, by numbers.

    window, near: each term is paired with at most ``window`` before it in its sum: the nearest of those that have a
        factor in common with it, half as many for each factor, and of the ``near`` last ones.
    original: the sums of the system as they were.
    sums: the same after they have been factored.
    ordered: sums that keep the user's order.
    defined: sums of two terms that were taken out of others.
    terms: coefficient and monomial, by number.
    codes: codes of the monomials, by number: two pairs of terms whose codes differ by the same have one divisor.
    divisors: by number; None for one that nobody has asked for.
    """

    def __init__(self, system: PolynomialSystem, window: int = 64, near: int = 64) -> None:
        self.origin = system
        self.window, self.near = window, near
        self.terms: list[Term] = []
        self.codes: list[int] = []
        self.divisors: list[Divisor | None] = []
        self.scalars = set(system.scalars)
        self.count = system.count
        self._numbers: dict[Hashable, int] = {}
        self._pairs: dict[tuple[int, int], Pair | None] = {}
        self._divisor_numbers: dict[Hashable, int] = {}
        self._atom_codes = _Codes()
        self.costs = Costs(self.terms, self.scalars, system.is_array)
        self._inside: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._atoms: dict[tuple[int, float], int] = {}
        self.defined: dict[int, tuple[int, int]] = {}
        self.original = {atom: self._sum(each.alive()) for atom, each in system.sums.items()}
        self.sums: Sums = self.original
        self.ordered = {atom for atom, each in system.sums.items() if each.ordered}
        self.quotients = {atom: self._sum(terms) for atom, terms in system.quotients.items()}
        self.roots = self._sum(system.roots.values())
        self.divisor_of: dict[int, tuple[int, float]] = {}
        """What divisor a sum of two terms is, and the scale that it carries itself."""

    def _sum(self, terms: Iterable[Term]) -> tuple[int, ...]:
        return tuple([self.number(term) for term in terms])

    def number(self, term: Term) -> int:
        """The number of a term."""
        # 0.0 and -0.0 are equal, but not the same coefficient.
        key = term if term[0] else (str(term[0]), term[1])
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.terms)
            self.terms.append(term)
            codes, monomial = self._atom_codes, term[1]
            if len(monomial) == 1:
                self.codes.append(codes[monomial[0][0]] * monomial[0][1])
            else:
                self.codes.append(sum([codes[atom] * exponent for atom, exponent in monomial]))
        return found

    def unsigned(self, number: int) -> int:
        """The number of the same term with a positive coefficient."""
        coefficient, monomial = self.terms[number]
        return self.number((-coefficient, monomial)) if coefficient < 0 else number

    def divisor(self, one: int, two: int) -> int | None:
        """The number of the divisor of two terms; None where they differ in nothing but the coefficient."""
        codes, terms = self.codes, self.terms
        difference = codes[one] - codes[two]
        a, b = terms[one][0], terms[two][0]
        if difference < 0:
            difference, a, b = -difference, b, a
        key: Hashable = difference
        if a != b or not a:
            numbers = reduced(a, b)
            if numbers is None:
                return None
            key = -difference if a == -b else (difference, *numbers[1:])
        found = self._divisor_numbers.get(key)
        if found is None:
            if not difference:
                return None
            found = self._divisor_numbers[key] = len(self.divisors)
            self.divisors.append(None)
        return found

    def pair(self, one: int, two: int) -> Pair | None:
        """Two terms as a multiple of a divisor; None where they differ in nothing but the coefficient."""
        key = one, two
        try:
            return self._pairs[key]
        except KeyError:
            found = self._pairs[key] = self._paired(one, two)
            return found

    def _paired(self, one: int, two: int) -> Pair | None:
        number = self.divisor(one, two)
        if number is None:
            return None
        if self.codes[one] < self.codes[two]:
            one, two = two, one
        (a, left), (b, right) = self.terms[one], self.terms[two]
        shared, left, right = parted(left, right)
        numbers = reduced(a, b)
        assert numbers is not None
        scale, a, b = numbers
        divisor = Divisor(left, right, a, b)
        if self.divisors[number] is None:
            self.divisors[number] = divisor
        # Others may have the same code, if only by a chance of one in many millions.
        return Pair(number, scale, shared) if self.divisors[number] == divisor else None

    def paired(self, atom: int, terms: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
        """Positions of the terms that are paired, and whether they have a factor in common."""
        near, window, known = self.near, self.window, self.terms
        if len(terms) == 2:
            others = dict(known[terms[1]][1])
            alike = any(each in others for each, _ in known[terms[0]][1])
            if alike or near:
                yield 0, 1, alike
            return
        ordered = atom in self.ordered
        readers: dict[int, list[int]] = {}
        each_most = (window + 1) // 2
        for second, right in enumerate(terms):
            common: set[int] = set()
            for each, _ in known[right][1]:
                positions = readers.get(each)
                if positions is None:
                    readers[each] = [second]
                else:
                    common.update(positions[-each_most:])
                    positions.append(second)
            beside = range(max(second - near, 0) if not ordered or second == 1 else second, second)
            for first in sorted(common.union(beside) if common else beside, reverse=True)[:window]:
                yield first, second, first in common

    def define(self, number: int, unit: float, first: int, factor: Monomial, ordered: bool) -> int:
        """The atom of ``unit`` times a divisor, always the same; it is first taken out of the term ``first``."""
        found = self._atoms.get((number, unit))
        if found is not None:
            return found
        divisor = self.divisors[number]
        assert divisor is not None
        terms = (
            self.number((divisor.left_coefficient * unit, divisor.left)),
            self.number((divisor.right_coefficient * unit, divisor.right)),
        )
        if quotient(self.terms[first][1], factor) != divisor.left:
            terms = terms[::-1]
        found = self._atoms[number, unit] = self.sum_of(terms)
        self.defined[found] = terms
        self.divisor_of[found] = number, unit
        if ordered:
            self.ordered.add(found)
        return found

    def sum_of(self, terms: Iterable[int]) -> int:
        """A new atom for a sum of ``terms``."""
        found = self.atom()
        if self.origin.is_array and all(self._is_scalar(self.terms[term][1]) for term in terms):
            self.scalars.add(found)
        return found

    def atom(self) -> int:
        """A new atom."""
        self.count += 1
        return self.count

    def _is_scalar(self, monomial: Monomial) -> bool:
        return all(atom in self.scalars for atom, _ in monomial)

    def inside(self, terms: tuple[int, ...]) -> tuple[int, ...]:
        """The sums and quotients that some terms are made from."""
        found = self._inside.get(terms)
        if found is None:
            variables, known = self.origin.variables, self.terms
            atoms = [atom for term in terms for atom, _ in known[term][1] if atom not in variables]
            found = self._inside[terms] = tuple(dict.fromkeys(atoms))
        return found

    def living(self, sums: Sums) -> dict[int, tuple[int, ...]]:
        """Terms of all sums and quotients that the roots depend on."""
        defined, inside = self.defined, self._inside
        found: dict[int, tuple[int, ...]] = {}
        pending = [*self.inside(self.roots)]
        for atom in pending:
            if atom not in found:
                terms = defined.get(atom) or sums.get(atom) or self.quotients[atom]
                found[atom] = terms
                pending += inside.get(terms) or self.inside(terms)
        return found


class _Codes(dict[int, int]):
    """Random numbers for atoms, the same in each run."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = random.Random(0)

    def __missing__(self, atom: int) -> int:
        found = self[atom] = self.chance.getrandbits(_BITS)
        return found
