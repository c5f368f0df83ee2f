"""Forests that have been weighed before: those of the same sums weigh the same, whatever their atoms are called."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from yota.codegen.forest import Forest
from yota.codegen.polynomial import Term
from yota.codegen.sharing import weight

__all__ = ["Scales"]

_Likeness: TypeAlias = tuple[bool | None, tuple[Term, ...]]
"""Whether a sum has an order, None for a quotient; and the terms."""


class Scales:
    """Weighs forests of one origin, each only once."""

    def __init__(self) -> None:
        self._numbers: dict[_Likeness, int] = {}
        self._weights: dict[Hashable, int] = {}

    def weight(self, forest: Forest) -> int:
        """Number of operations of a forest on scalars; that of one that differs in nothing but numbering and order."""
        looks = self._looks(forest)
        found = self._weights.get(looks)
        if found is None:
            found = self._weights[looks] = weight(forest)
        return found

    def _looks(self, forest: Forest) -> Hashable:
        """What two forests have in common if they compute the same sums."""
        names: dict[int, int] = {}

        def named(term: Term) -> Term:
            return term[0], tuple(sorted([(names.get(atom, atom), exponent) for atom, exponent in term[1]]))

        for atom in _innermost_first(forest):
            each = forest.sums.get(atom)
            terms = [named(term) for term in forest.parts(atom)]
            likeness: _Likeness = (None, tuple(terms)) if each is None else (each.ordered, tuple(sorted(terms)))
            # Below the atoms of variables, which are positive.
            names[atom] = -1 - self._numbers.setdefault(likeness, len(self._numbers))
        return tuple((root, named(term)) for root, term in forest.roots.items())


def _innermost_first(forest: Forest) -> list[int]:
    found: dict[int, None] = {}
    opened: set[int] = set()
    pending = [atom for _, monomial in forest.roots.values() for atom, _ in monomial]
    while pending:
        atom = pending[-1]
        if atom in found or (atom not in forest.sums and atom not in forest.quotients):
            pending.pop()
        elif atom in opened:
            found[pending.pop()] = None
        else:
            opened.add(atom)
            pending.extend(inner for _, monomial in forest.parts(atom) for inner, _ in monomial)
    return list(found)
