"""Sums of products over atoms, in which arithmetic is factored and shared, and the exact algebra of their monomials."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

Monomial: TypeAlias = tuple[tuple[int, int], ...]
"""Atoms and their exponents, sorted by atom."""

Term: TypeAlias = tuple[float, Monomial]
"""A coefficient and a monomial."""

_LARGEST_EXACT = 2.0**53
_SMALLEST, _LARGEST = 1e-280, 1e280


def multiply(left: Monomial, right: Monomial) -> Monomial:
    """The product.

    >>> multiply(((1, 1), (2, 1)), ((2, 2),))
    ((1, 1), (2, 3))
    """
    if not left or not right:
        return left or right
    if left[-1][0] < right[0][0]:
        return left + right
    if right[-1][0] < left[0][0]:
        return right + left
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(exponents.items()))


def common(left: Monomial, right: Monomial) -> Monomial:
    """The greatest common divisor.

    >>> common(((1, 1), (2, 3)), ((2, 2), (5, 1)))
    ((2, 2),)
    """
    exponents = dict(right)
    return tuple([(atom, min(exponent, exponents[atom])) for atom, exponent in left if atom in exponents])


def parted(left: Monomial, right: Monomial) -> tuple[Monomial, Monomial, Monomial]:
    """The greatest common divisor, and what is left of each.

    >>> parted(((1, 1), (2, 3)), ((2, 2), (5, 1)))
    (((2, 2),), ((1, 1), (2, 1)), ((5, 1),))
    """
    others = dict(right)
    shared: list[tuple[int, int]] = []
    rest: list[tuple[int, int]] = []
    for atom, exponent in left:
        times = min(others.get(atom, 0), exponent)
        if times:
            shared.append((atom, times))
            others[atom] -= times
        if times < exponent:
            rest.append((atom, exponent - times))
    if not shared:
        return (), left, right
    return tuple(shared), tuple(rest), tuple([factor for factor in others.items() if factor[1]])


def quotient(monomial: Monomial, divisor: Monomial) -> Monomial:
    """What is left of ``monomial`` when its divisor is taken out."""
    if not divisor:
        return monomial
    exponents = dict(divisor)
    return tuple(
        [(atom, exponent - exponents.get(atom, 0)) for atom, exponent in monomial if exponent > exponents.get(atom, 0)]
    )


def chain_length(exponent: int) -> int:
    """Number of products for a power by repeated squaring.

    >>> [chain_length(n) for n in (1, 2, 3, 4, 7)]
    [0, 1, 2, 2, 4]
    """
    return exponent.bit_length() + exponent.bit_count() - 2


def length(monomial: Iterable[tuple[int, int]]) -> int:
    """Number of products in a monomial.

    >>> length(((1, 2), (3, 1))), length(())
    (2, 0)
    """
    return max(sum([1 if exponent == 1 else chain_length(exponent) + 1 for _, exponent in monomial]) - 1, 0)


def same_scale(left: float, right: float) -> bool:
    """Whether the product of two coefficients is an ordinary number, far from overflow and underflow."""
    return abs(left) == 1.0 or abs(right) == 1.0 or _SMALLEST < abs(left * right) < _LARGEST


def is_multiple(number: float, unit: float) -> bool:
    """Whether ``number / unit`` is an integer, and exact.

    >>> is_multiple(-6.0, 3.0), is_multiple(0.5, 0.1), 0.5 / 0.1
    (True, False, 5.0)
    """
    # The remainder is exact, the quotient need not be.
    return not math.fmod(number, unit) and abs(number / unit) < _LARGEST_EXACT


def reduced(first: float, second: float) -> tuple[float, float, float] | None:
    """Coefficients as ``scale * (a, b)`` with ``a`` positive and ``scale``, ``a`` and ``b`` exact; None for 0.

    >>> reduced(6.0, -2.0), reduced(-0.3, 0.3), reduced(0.5, 3.0)
    ((2.0, 3.0, -1.0), (-0.3, 1.0, -1.0), (1.0, 0.5, 3.0))
    """
    if not first or not second:
        return None
    sign = math.copysign(1.0, first)
    if abs(first) == abs(second):
        return first, 1.0, second / first
    if first.is_integer() and second.is_integer() and max(abs(first), abs(second)) < _LARGEST_EXACT:
        scale = sign * math.gcd(int(first), int(second))
        return scale, first / scale, second / scale
    return sign, abs(first), sign * second


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

    def is_scalar(self, monomial: Monomial) -> bool:
        """Whether all atoms are 0-d while the system's arithmetic is on arrays."""
        return all(atom in self.scalars for atom, _ in monomial)
