"""How many operations terms take, and how many it saves to divide two of them by what they have in common."""

from __future__ import annotations

from collections.abc import Container, Sequence

from yota.codegen.polynomials import Term, chain_length, length


def saved(left: Term, right: Term) -> tuple[float, float]:
    """How many operations on numbers it saves to divide two terms by what they have in common, and how many are left.

    >>> x, y, z = 1, 2, 3
    >>> saved((1.0, ((x, 1), (y, 1))), (3.0, ((x, 1), (z, 2))))
    (1, 3)
    """
    (a, one), (b, two) = left, right
    a, b = abs(a), abs(b)
    gain, size, exponents = 0, -1, dict(two)
    rest, other = len(one), len(exponents)
    for atom, exponent in one:
        if atom not in exponents:
            size += 1 if exponent == 1 else _works(exponent)
            continue
        times = exponents.pop(atom)
        if exponent == times == 1:
            gain += 1
            rest -= 1
            other -= 1
        else:
            shared = min(exponent, times)
            left_over, right_over = _works(exponent - shared), _works(times - shared)
            size += left_over + right_over
            gain += _works(exponent) + _works(times) - left_over - right_over - _works(shared)
            rest -= shared == exponent
            other -= shared == times
    for exponent in exponents.values():
        size += 1 if exponent == 1 else _works(exponent)
    same, scaled = a == b, a != 1.0
    if len(exponents) < len(two):
        gain += same and scaled
        gain -= (not rest and (same or not scaled)) + (not other and (same or b == 1.0))
    elif same and scaled:
        gain = bool(one) + bool(two) - 1
    size += (not rest) + (not other)
    if not same:
        size += (scaled and rest > 0) + (b != 1.0 and other > 0)
    return gain, size


def _works(exponent: int) -> int:
    """Number of factors of a power, as products count them."""
    return exponent if exponent < 2 else chain_length(exponent) + 1


class Costs(dict[int, float]):
    """Number of products in each term of a table, found when it is first asked for."""

    def __init__(self, terms: Sequence[Term], scalars: Container[int], is_array: bool, most: int) -> None:
        super().__init__()
        self.terms, self.scalars, self.is_array, self.most = terms, scalars, is_array, most

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
