"""Sums that are contained in others, times a factor: found by division of polynomials without remainder.

The derivative of a sum is often a factor of much of the sum itself, as in Euler's theorem on homogeneous functions.
The method is the algebraic division of R. K. Brayton and C. McMullen, "The decomposition and factorization of Boolean
expressions" (1982), with coefficients.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from yota.codegen.forest import Forest, Sum
from yota.codegen.polynomial import Monomial, Term, chain_length, common, multiply, quotient

__all__ = ["divide"]

_LONGEST = 64
"""Terms up to which sums are written out."""
_SHARED = 2
"""A product counts as at most so many: most of a long one is shared with others."""


@dataclass(frozen=True, slots=True)
class _Quotient:
    """Terms of a sum that are ``scale * factor`` times all terms of another one."""

    divisor: int
    scale: float
    factor: Monomial
    positions: tuple[int, ...]
    gain: int


def divide(forest: Forest, atom: int, planted: Mapping[int, Sum], choose: random.Random) -> None:
    """Write a sum by other sums of ``forest`` as far as it is made of their multiples, the longest first.

    Parameters
    ----------
    planted
        The sums as they were before they were factored; ``atom`` is one of them.
    choose
        Decides between choices that look equal.
    """
    each = forest.sums[atom]
    written = _Written(forest, planted)
    divisors = [(other, written[other]) for other in forest.living() if other in forest.sums and other != atom]
    divisors = [(other, terms) for other, terms in divisors if all(coefficient for coefficient, _ in terms)]
    while True:
        found = [
            one
            for other, terms in divisors
            if 2 <= len(terms) <= len(each.terms)
            for one in _quotients(each, other, terms)
            if one.gain > 0 and not forest.reaches(other, atom)
        ]
        if not found:
            return
        most = max(one.gain for one in found)
        best = choose.choice([one for one in found if one.gain == most])
        for position in best.positions:
            each.terms[position] = None
        each.terms[min(best.positions)] = best.scale, multiply(best.factor, ((best.divisor, 1),))


class _Written(dict[int, "list[Term]"]):
    """Sums written out in the atoms of the sums that were planted; empty where they are too long for that."""

    def __init__(self, forest: Forest, planted: Mapping[int, Sum]) -> None:
        super().__init__((atom, each.alive()) for atom, each in planted.items())
        self.forest = forest
        self.planted = planted

    def __missing__(self, atom: int) -> list[Term]:
        found: list[Term] = []
        for coefficient, monomial in self.forest.sums[atom].alive():
            products: list[Term] = [(coefficient, ())]
            for factor, exponent in monomial:
                inner: Sequence[Term] = [(1.0, ((factor, exponent),))]
                if factor in self.forest.sums and factor not in self.planted:
                    inner = self[factor] if exponent == 1 else ()
                products = [(a * b, multiply(one, two)) for a, one in products for b, two in inner]
            found += products
            if not products or len(found) > _LONGEST:
                found = []
                break
        self[atom] = found
        return found


def _quotients(each: Sum, divisor: int, terms: Sequence[Term]) -> Iterator[_Quotient]:
    """Multiples of ``terms`` in a sum; in the user's own order nothing is summed apart without a factor."""
    places = {term[1]: position for position, term in enumerate(each.terms) if term is not None}
    first, *others = terms
    for position in list(places.values()):
        coefficient, monomial = each.terms[position] or (0.0, ())
        if common(monomial, first[1]) != first[1]:
            continue
        factor, scale = quotient(monomial, first[1]), coefficient / first[0]
        if not factor and (each.ordered or abs(scale) != 1.0):
            continue
        positions = [position]
        for number, other in others:
            place = places.get(multiply(factor, other), -1)
            if place < 0 or (each.terms[place] or (0.0,))[0] != scale * number:
                break
            positions.append(place)
        if len(set(positions)) == len(terms) and scale * first[0] == coefficient:
            gain = len(terms) - 1 + sum(_cost(each.terms[place] or (0.0, ())) for place in positions)
            gain -= 1 + _cost((scale, factor)) if factor else 0
            yield _Quotient(divisor, scale, factor, tuple(positions), gain)


def _cost(term: Term) -> int:
    """Number of products of a term."""
    products = sum(chain_length(exponent) + 1 for _, exponent in term[1]) - 1 + int(abs(term[0]) != 1.0)
    return min(max(products, 0), _SHARED)
