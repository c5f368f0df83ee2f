"""Sums as tuples of numbers of terms: what two terms have in common is found out once and then looked up.

Searches try thousands of ways to factor the same sums, which differ in a few of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from yota.codegen.monomials import Monomial, Term, chain_length, length, parted, quotient, reduced
from yota.codegen.polynomials import PolynomialSystem, Sum

__all__ = ["Costs", "Divisor", "Pair", "Place", "Sums", "Table"]

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


class Place(NamedTuple):
    """Where a divisor occurs: ``scale * factor * divisor`` is two terms of a sum, at these positions."""

    sum: int
    first: int
    second: int
    left: int
    right: int
    scale: float
    factor: Monomial


class Table:
    """The sums of a system, and those that are made from them, by numbers.

    Parameters
    ----------
    system
        What is to be rewritten.
    window, near
        Each term is paired with at most ``window`` before it in its sum: the nearest of those that have a factor in
        common with it, half as many for each factor, and of the ``near`` last ones.

    Attributes
    ----------
    original
        The sums of the system as they were.
    ordered
        Sums that keep the user's order.
    defined
        Sums of two terms that were taken out of others.
    quotients
        Numerator and denominator.
    roots
        Terms that the system is made for.
    terms
        Coefficient and monomial, by number.
    divisors
        By number.
    """

    def __init__(self, system: PolynomialSystem, window: int = 64, near: int = 64) -> None:
        self.origin = system
        self.window, self.near = window, near
        self.terms: list[Term] = []
        self.divisors: list[Divisor] = []
        self.scalars = set(system.scalars)
        self.count = system.count
        self._numbers: dict[Hashable, int] = {}
        self._pairs: dict[tuple[int, int], Pair | None] = {}
        self._divisor_numbers: dict[Divisor, int] = {}
        self._places: dict[tuple[int, tuple[int, ...]], list[tuple[int, Place]]] = {}
        self._costs: dict[int, Costs] = {}
        self._alone: dict[tuple[int, bool], dict[tuple[int, int], tuple[float, float]]] = {}
        self._inside: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._atoms: dict[tuple[int, float], int] = {}
        self.defined: dict[int, tuple[int, int]] = {}
        living = system.living()
        self.original = {atom: self._sum(system.sums[atom].alive()) for atom in living if atom in system.sums}
        self.ordered = {atom for atom in self.original if system.sums[atom].ordered}
        self.quotients = {atom: self._sum(system.quotients[atom]) for atom in living if atom in system.quotients}
        self.roots = self._sum(system.roots.values())
        self.divisor_of: dict[int, tuple[int, float]] = {}
        """What divisor a sum of two terms is, and the scale that it carries itself."""

    def whole(self) -> Iterator[int]:
        """Original sums that are divisors, with a sign at most, which is noted."""
        for atom, terms in self.original.items():
            if atom not in self.divisor_of:
                pair = self.pair(*terms) if len(terms) == 2 else None
                if pair is None or pair.factor or abs(pair.scale) != 1.0:
                    continue
                self.divisor_of[atom] = pair.divisor, pair.scale
            yield atom

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
        return found

    def unsigned(self, number: int) -> int:
        """The number of the same term with a positive coefficient."""
        coefficient, monomial = self.terms[number]
        return self.number((-coefficient, monomial)) if coefficient < 0 else number

    def pair(self, one: int, two: int) -> Pair | None:
        """Two terms as a multiple of a divisor; None where they differ in nothing but the coefficient."""
        key = one, two
        try:
            return self._pairs[key]
        except KeyError:
            found = self._pairs[key] = self._paired(self.terms[one], self.terms[two])
            return found

    def _paired(self, left: Term, right: Term) -> Pair | None:
        (a, one), (b, two) = left, right
        if one == two:
            return None
        shared, one, two = parted(one, two)
        if one > two:
            one, two, a, b = two, one, b, a
        numbers = reduced(a, b)
        if numbers is None:
            return None
        scale, a, b = numbers
        divisor = Divisor(one, two, a, b)
        number = self._divisor_numbers.setdefault(divisor, len(self.divisors))
        if number == len(self.divisors):
            self.divisors.append(divisor)
        return Pair(number, scale, shared)

    def places(self, atom: int, terms: tuple[int, ...]) -> list[tuple[int, Place]]:
        """The divisors that any two terms of a sum make; terms without common factor only where they may be shared."""
        key = atom, terms
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = []
            for first, second, _ in self.paired(atom, terms):
                pair = self.pair(terms[first], terms[second])
                if pair is not None:
                    place = Place(atom, first, second, terms[first], terms[second], pair.scale, pair.factor)
                    found.append((pair.divisor, place))
        return found

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

    def costs(self, most: int) -> Costs:
        """Number of products in a term, by its number, but no more than ``most``."""
        found = self._costs.get(most)
        if found is None:
            found = self._costs[most] = Costs(self, most)
        return found

    def alone(self, most: int, inside: bool) -> dict[tuple[int, int], tuple[float, float]]:
        """For two terms the scale of their divisor, and what it is worth, where it has no other place; to be filled."""
        return self._alone.setdefault((most, inside), {})

    def define(self, number: int, unit: float, places: Sequence[Place]) -> int:
        """The atom of ``unit`` times a divisor that is taken out at ``places``; the same whenever that is done."""
        found = self._atoms.get((number, unit))
        if found is not None:
            return found
        divisor, first = self.divisors[number], places[0]
        terms = (
            self.number((divisor.left_coefficient * unit, divisor.left)),
            self.number((divisor.right_coefficient * unit, divisor.right)),
        )
        if quotient(self.terms[first.left][1], first.factor) != divisor.left:
            terms = terms[::-1]
        found = self._atoms[number, unit] = self._atom()
        self.defined[found] = terms
        self.divisor_of[found] = number, unit
        # Two terms have one order; an ordered sum keeps its first term first wherever signs allow.
        if any(place.sum in self.ordered for place in places):
            self.ordered.add(found)
        if self.origin.is_array and self._is_scalar(divisor.left) and self._is_scalar(divisor.right):
            self.scalars.add(found)
        return found

    def _atom(self) -> int:
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

    def system(self, sums: Sums) -> PolynomialSystem:
        """The system that ``sums`` stand for."""
        origin, known = self.origin, self.terms
        found = {
            atom: Sum([known[term] for term in terms], atom in self.ordered)
            for atom, terms in (*sums.items(), *self.defined.items())
        }
        return PolynomialSystem(
            origin.variables, found, origin.quotients, origin.roots, set(self.scalars), origin.is_array, self.count
        )


class Costs(dict[int, float]):
    """Number of products in each term of a table, found when it is first asked for."""

    def __init__(self, table: Table, most: int) -> None:
        super().__init__()
        # The table holds these costs: a reference back would leave both to the garbage collector.
        self.terms, self.scalars, self.is_array = table.terms, table.scalars, table.origin.is_array
        self.most = most

    def __missing__(self, number: int) -> float:
        found = self[number] = min(self._counted(self.terms[number]), self.most)
        return found

    def _counted(self, term: Term) -> float:
        """On arrays, what is 0-d counts as one factor and is almost free itself."""
        coefficient, monomial = term
        if not monomial:
            return 0
        outside = int(abs(coefficient) != 1.0)
        if not self.is_array:
            return outside + length(monomial)
        scalars, arrays, inner = outside, 0, 0
        for atom, exponent in monomial:
            if atom in self.scalars:
                scalars += exponent
            else:
                arrays += 1
                inner += chain_length(exponent)
        if not arrays:
            return 0.01 * scalars
        return inner + arrays - 1 + (1 if scalars else 0) + 0.01 * max(scalars - 1, 0)
