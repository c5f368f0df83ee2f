"""Sums of products over atoms: the form in which arithmetic is factored and shared."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable
from dataclasses import dataclass, field

from yota.codegen.polynomial import Monomial, Term, multiply

__all__ = ["Forest", "Sum"]


@dataclass(slots=True)
class Sum:
    """Terms of a sum; those of an ordered one are added from left to right, as the user wrote them."""

    terms: list[Term | None]
    ordered: bool

    def alive(self) -> list[Term]:
        """The terms that have not been merged into others."""
        return [term for term in self.terms if term is not None]


@dataclass(slots=True)
class Forest:
    """Sums of products that refer to each other through atoms.

    An atom is a variable of the tape that is no arithmetic of this kind, a sum, a quotient, or (later) a product
    that several monomials share. Atoms are numbered in the order in which the tape meets them.
    """

    variables: dict[int, int] = field(default_factory=dict)
    sums: dict[int, Sum] = field(default_factory=dict)
    quotients: dict[int, tuple[Term, Term]] = field(default_factory=dict)
    roots: dict[int, Term] = field(default_factory=dict)
    scalars: set[int] = field(default_factory=set)
    is_array: bool = False
    count: int = 0

    def atom(self) -> int:
        """A new atom."""
        self.count += 1
        return self.count

    def copy(self) -> Forest:
        """A forest that can be rewritten without touching this one."""
        sums = {atom: Sum(list(each.terms), each.ordered) for atom, each in self.sums.items()}
        return Forest(
            dict(self.variables),
            sums,
            dict(self.quotients),
            dict(self.roots),
            set(self.scalars),
            self.is_array,
            self.count,
        )

    def looks(self) -> Hashable:
        """Two forests of one origin that look alike are the same, down to the order of their parts."""
        sums = tuple((atom, tuple(each.terms), each.ordered) for atom, each in self.sums.items())
        return sums, tuple(self.quotients.items()), tuple(self.roots.items()), frozenset(self.scalars), self.count

    def is_scalar(self, monomial: Monomial) -> bool:
        """Whether all atoms are 0-d while the forest's arithmetic is on arrays."""
        return all(atom in self.scalars for atom, _ in monomial)

    def living(self) -> list[int]:
        """Sums and quotients that the roots depend on, in the order of their atoms."""
        sums, quotients = self.sums, self.quotients
        found: set[int] = set()
        pending: list[Iterable[Term | None]] = [self.roots.values()]
        while pending:
            for term in pending.pop():
                for atom, _ in term[1] if term else ():
                    if atom not in found and (atom in sums or atom in quotients):
                        found.add(atom)
                        pending.append(sums[atom].terms if atom in sums else quotients[atom])
        return sorted(found)

    def reaches(self, atom: int, other: int) -> bool:
        """Whether ``atom`` is made from ``other``, or is it."""
        found: set[int] = set()
        pending = [atom]
        while pending:
            each = pending.pop()
            if each == other:
                return True
            if each not in found:
                found.add(each)
                pending.extend(inner for _, monomial in self.parts(each) for inner, _ in monomial)
        return False

    def tidy(self, kept: Container[int]) -> None:
        """Drop sums that nothing needs, and those that are but another name of an atom, unless they are ``kept``."""
        names = {}
        for atom, each in self.sums.items():
            if atom not in kept and len(terms := each.alive()) == 1 and terms[0][0] == 1.0:
                ((other, exponent),) = terms[0][1] if len(terms[0][1]) == 1 else ((0, 0),)
                if exponent == 1:
                    names[atom] = other
        for atom, other in names.items():
            while other in names:
                other = names[other]
            names[atom] = other

        def named(term: Term) -> Term:
            if names.keys().isdisjoint(atom for atom, _ in term[1]):
                return term
            monomial: Monomial = ()
            for atom, exponent in term[1]:
                monomial = multiply(monomial, ((names.get(atom, atom), exponent),))
            return term[0], monomial

        if names:
            self.roots = {variable: named(term) for variable, term in self.roots.items()}
            self.quotients = {atom: (named(top), named(bottom)) for atom, (top, bottom) in self.quotients.items()}
            for each in self.sums.values():
                each.terms = [None if term is None else named(term) for term in each.terms]
        living = set(self.living())
        self.sums = {atom: each for atom, each in self.sums.items() if atom in kept or atom in living}

    def parts(self, atom: int) -> Iterable[Term]:
        """The terms that an atom is made from."""
        if atom in self.sums:
            return self.sums[atom].alive()
        return self.quotients.get(atom, ())
