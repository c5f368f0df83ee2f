"""Sums of products over atoms: the form in which arithmetic is factored and shared."""

from __future__ import annotations

from dataclasses import dataclass, field

from yota.codegen.monomials import Monomial, Term


@dataclass(slots=True)
class Sum:
    """Terms of a sum; those of an ordered one are added from left to right, as the user wrote them."""

    terms: list[Term | None]
    ordered: bool

    def alive(self) -> list[Term]:
        """The terms that have not been merged into others."""
        return [term for term in self.terms if term is not None]


@dataclass(slots=True)
class PolynomialSystem:
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

    def copy(self) -> PolynomialSystem:
        """A system that can be rewritten without touching this one."""
        sums = {atom: Sum(list(each.terms), each.ordered) for atom, each in self.sums.items()}
        return PolynomialSystem(
            dict(self.variables),
            sums,
            dict(self.quotients),
            dict(self.roots),
            set(self.scalars),
            self.is_array,
            self.count,
        )

    def is_scalar(self, monomial: Monomial) -> bool:
        """Whether all atoms are 0-d while the system's arithmetic is on arrays."""
        return all(atom in self.scalars for atom, _ in monomial)
