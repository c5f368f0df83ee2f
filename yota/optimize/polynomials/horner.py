"""Sums nested after Horner: the factor that most terms have is pulled out, again and again.

The scheme is the greedy one of M. Ceberio and V. Kreinovich, "Greedy algorithms for optimizing multivariate Horner
schemes" (ACM SIGSAM Bulletin 38, 2004): the factor is chosen anew in each sum. A coefficient is a factor, too.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import Counter

from yota.optimize.polynomials.system import common, multiply, quotient
from yota.optimize.polynomials.terms import Sums, Table


def nested(table: Table, sums: Sums) -> dict[int, tuple[int, ...]]:
    """``sums`` nested where that saves operations."""
    nesting = _Nesting(table, sums)
    for atom in nesting.pending:
        terms = nesting.sums[atom]
        readers = nesting.readers(terms) if len(terms) > 1 else None
        if readers:
            nesting.nest(atom, [*terms], readers)
    return nesting.sums


class _Nesting:
    def __init__(self, table: Table, sums: Sums) -> None:
        self.table = table
        self.sums = dict(sums)
        self.pending = [*sums]
        self.costs = table.costs
        self.uses = Counter(itertools.chain.from_iterable(sums.values()))
        """How often each term occurs: one that stands elsewhere, too, is computed anyhow."""
        self.made: dict[tuple[bool, tuple[int, ...]], int] = {}

    def readers(self, terms: tuple[int, ...]) -> dict[float, list[int]]:
        """Positions of the terms that have each factor; none if all differ. A coefficient is told by its negative."""
        known, found = self.table.terms, dict[float, list[int]]()
        several = False
        for position, term in enumerate(terms):
            coefficient, monomial = known[term]
            if coefficient:
                for atom, _ in monomial:
                    if atom in found:
                        found[atom].append(position)
                        several = True
                    else:
                        found[atom] = [position]
                if coefficient != 1.0 and coefficient != -1.0 and monomial:
                    size = -abs(coefficient)
                    if size in found:
                        found[size].append(position)
                        several = True
                    else:
                        found[size] = [position]
        return found if several else {}

    def nest(self, sum: int, terms: list[int], readers: dict[float, list[int]]) -> None:
        """Pull factors out of one sum; the sums that this makes are pending."""
        ordered = sum in self.table.ordered
        queue = [
            (-len(places), number, factor) for number, (factor, places) in enumerate(readers.items()) if len(places) > 1
        ]
        heapq.heapify(queue)
        merged: dict[int, set[float]] = {}
        """Factors of the terms that stand for several, by position."""
        while queue:
            count, number, factor = heapq.heappop(queue)
            group = [each for each in readers[factor] if terms[each] >= 0 and factor in merged.get(each, (factor,))]
            if ordered and factor < 0:
                # Sums keep the user's order.
                group = [each for number, each in enumerate(group) if each == number]
            if len(group) < -count:
                if len(group) > 1:
                    heapq.heappush(queue, (-len(group), number, factor))
                continue
            found = self._pulled([terms[each] for each in group], ordered, len(group) == len(terms))
            if found is not None:
                for each in group:
                    terms[each] = -1
                terms[group[0]] = found
                coefficient, monomial = self.table.terms[found]
                merged[group[0]] = {-abs(coefficient), *[atom for atom, _ in monomial]}
        if merged:
            self.sums[sum] = tuple([term for term in terms if term >= 0])

    def _pulled(self, group: list[int], ordered: bool, whole: bool) -> int | None:
        """The term that terms make together, if that saves operations; ``whole`` if they are all of a sum."""
        table, costs = self.table, self.costs
        terms = [table.terms[term] for term in group]
        monomials = [monomial for _, monomial in terms]
        if len({*monomials}) < len(terms):
            return None  # numbers in front of one monomial would be added to each other, and may cancel
        shared = functools.reduce(common, monomials)
        sizes = {abs(coefficient) for coefficient, _ in terms}
        unit = sizes.pop() if len(sizes) == 1 else 1.0
        # A number inside takes the sign, which outside of all would be an operation.
        if all(coefficient < 0 for coefficient, _ in terms) and not (whole and sizes):
            unit = -unit
        rest = tuple(
            [table.number((coefficient / unit, quotient(monomial, shared))) for coefficient, monomial in terms]
        )
        uses = self.uses
        gain = sum([costs[term] for term in group if uses[term] == 1])
        atom = self.made.get((ordered, rest))
        if atom is not None:
            gain += len(rest) - 1
        else:
            gain -= sum([costs[term] for term in rest if not uses[term]])
            atom = table.sum_of(rest)
        found = table.number((unit, multiply(shared, ((atom, 1),))))
        if gain <= (0 if uses[found] else costs[found]):
            return None
        uses.subtract(group)
        uses.update((found, *rest))
        if atom not in self.sums:
            self.made[ordered, rest] = atom
            self.sums[atom] = rest
            self.pending.append(atom)
            if ordered:
                table.ordered.add(atom)
        return found
