"""Sums nested after Horner: the factor that most terms have is pulled out, again and again.

The scheme is the greedy one of M. Ceberio and V. Kreinovich, "Greedy algorithms for optimizing multivariate Horner
schemes" (ACM SIGSAM Bulletin 38, 2004): the factor is chosen anew in each sum.
"""

from __future__ import annotations

import functools
import random
from collections import Counter

from yota.codegen.polynomials import PolynomialSystem, Sum, Term, common, multiply, quotient

_LONG = 8
"""Terms of a sum from which on what they all have in common is pulled out at once."""


def nest(system: PolynomialSystem, seed: int) -> None:
    """Nest all sums of ``system`` in place; where several factors serve equally well, ``seed`` decides."""
    _Nesting(system, random.Random(seed)).run()


def pull_out(system: PolynomialSystem) -> None:
    """Pull out what all terms of a long sum have in common, in place: taken in pairs it would take as many steps."""
    long = [each for each in system.sums.values() if len(each.terms) >= _LONG]
    nesting = _Nesting(system, random.Random(0)) if long else None
    for each in long:
        monomials = {monomial for _, monomial in each.alive()}
        if nesting and len(monomials) == len(each.terms) and functools.reduce(common, monomials):
            nesting.pull(each, dict(enumerate(each.alive())))


class _Nesting:
    def __init__(self, system: PolynomialSystem, choose: random.Random) -> None:
        self.system = system
        self.choose = choose
        self.made: dict[tuple[bool, tuple[Term, ...]], int] = {}
        self.ranks: dict[int, float] = {}

    def run(self) -> None:
        pending = [*self.system.sums]
        while pending:
            pending += self._nested(self.system.sums[pending.pop()])

    def _nested(self, each: Sum) -> list[int]:
        """Pull factors out of one sum; the sums that this makes."""
        found: list[int] = []
        # Numbers in front of one monomial would be added to each other, and may cancel.
        often = Counter(monomial for _, monomial in each.alive())
        open_terms = {place: term for place, term in enumerate(each.terms) if term and often[term[1]] == 1}
        while True:
            counts = Counter(atom for _, monomial in open_terms.values() for atom, _ in monomial)
            best = max(counts.items(), key=lambda item: (item[1], self._rank(item[0])), default=(0, 0))
            if best[1] < 2:
                return found
            group = {place: term for place, term in open_terms.items() if any(atom == best[0] for atom, _ in term[1])}
            open_terms = {place: term for place, term in open_terms.items() if place not in group}
            found += self.pull(each, group)

    def pull(self, each: Sum, group: dict[int, Term]) -> list[int]:
        """Replace terms by the product of what they have in common and a sum of the rest, where the first one stood."""
        first, *others = group.values()
        shared = first[1]
        for _, monomial in others:
            shared = common(shared, monomial)
        rest = tuple((coefficient, quotient(monomial, shared)) for coefficient, monomial in group.values())
        known = self.made.get((each.ordered, rest))
        atom = self.system.atom() if known is None else known
        for place in group:
            each.terms[place] = None
        each.terms[min(group)] = 1.0, multiply(shared, ((atom, 1),))
        if known is not None:
            return []
        self.made[each.ordered, rest] = atom
        self.system.sums[atom] = Sum(list(rest), each.ordered)
        return [atom]

    def _rank(self, atom: int) -> float:
        if atom not in self.ranks:
            self.ranks[atom] = self.choose.random()
        return self.ranks[atom]
