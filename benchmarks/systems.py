"""Polynomials and polynomial systems with a name: as plain functions of a sequence of numbers, symbols or tracers."""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["cyclic", "harmonics", "harmonics_by_recurrence", "katsura", "random_polynomial"]


def katsura(size: int) -> Callable[[Any], list[Any]]:
    """Katsura's equations of a magnetic field in ``size + 1`` variables.

    S. Katsura, "Spin glass problem by the method of integral equation of the effective field" (1990).
    """

    def equations(x: Any) -> list[Any]:
        def mirrored(k: int) -> Any:
            return x[abs(k)]

        def equation(m: int) -> Any:
            pairs = [k for k in range(-size, size + 1) if abs(m - k) <= size]
            return _total(mirrored(k) * mirrored(m - k) for k in pairs) - x[m]

        normal = x[0] + _total(2 * x[k] for k in range(1, size + 1)) - 1
        return [normal, *(equation(m) for m in range(size))]

    return equations


def cyclic(size: int) -> Callable[[Any], list[Any]]:
    """The cyclic roots problem: sums of all products of ``k`` neighbours on a ring, and the product of all less one.

    G. Björck and R. Fröberg, "A faster way to count the solutions of inhomogeneous systems of algebraic equations"
    (Journal of Symbolic Computation 12, 1991).
    """

    def equations(x: Any) -> list[Any]:
        def product(start: int, count: int) -> Any:
            return functools.reduce(operator.mul, (x[(start + k) % size] for k in range(count)))

        return [
            *(_total(product(start, count) for start in range(size)) for count in range(1, size)),
            product(0, size) - 1,
        ]

    return equations


def _total(terms: Iterable[Any]) -> Any:
    """The sum; Python's own begins with 0, whose addition is an operation like any other."""
    return functools.reduce(operator.add, terms)


def random_polynomial(variables: int, terms: int, degree: int, *, seed: int = 0) -> Callable[[Any], Any]:
    """Different monomials of total degree 1 to ``degree``, with coefficients between -2 and 2."""
    choose = random.Random(seed)
    monomials: dict[tuple[int, ...], float] = {}
    while len(monomials) < terms:
        exponents = [0] * variables
        for _ in range(choose.randint(1, degree)):
            exponents[choose.randrange(variables)] += 1
        monomials.setdefault(tuple(exponents), round(choose.uniform(-2, 2), 3) or 1.0)

    def value(x: Any) -> Any:
        return _total(_monomial(x, coefficient, exponents) for exponents, coefficient in monomials.items())

    return value


def _monomial(x: Any, coefficient: float, exponents: Sequence[int]) -> Any:
    powers = (x[k] if exponent == 1 else x[k] ** exponent for k, exponent in enumerate(exponents) if exponent)
    return functools.reduce(operator.mul, powers, coefficient)


def harmonics(degree: int) -> Callable[[Any], list[Any]]:
    """Real solid harmonics up to ``degree``, each written out as a polynomial in x, y and z.

    T. Helgaker, P. Jorgensen and J. Olsen, "Molecular Electronic-Structure Theory" (2000), equation 6.4.47.
    """
    tables = [_solid_terms(n, m) for n in range(degree + 1) for m in range(-n, n + 1)]

    def values(x: Any) -> list[Any]:
        return [_total(_monomial(x, coefficient, exponents) for exponents, coefficient in table) for table in tables]

    return values


def _solid_terms(degree: int, order: int) -> list[tuple[tuple[int, int, int], float]]:
    """Exponents and coefficients of one solid harmonic, normalised on the unit sphere."""
    m = abs(order)
    half = 0.0 if order >= 0 else 0.5
    scale = math.sqrt((2 * degree + 1) / (4 * math.pi) * (2 if m else 1))
    scale *= math.sqrt(math.factorial(degree + m) * math.factorial(degree - m)) / (2**m * math.factorial(degree))
    terms: dict[tuple[int, int, int], float] = {}
    for t in range((degree - m) // 2 + 1):
        for u in range(t + 1):
            v = half
            while v <= (m // 2 if order >= 0 else (m - 1) // 2 + 0.5):
                sign = (-1) ** int(t + v - half)
                number = (
                    math.comb(degree, t) * math.comb(degree - t, m + t) * math.comb(t, u) * math.comb(m, int(2 * v))
                )
                exponents = (int(2 * t + m - 2 * (u + v)), int(2 * (u + v)), degree - 2 * t - m)
                terms[exponents] = terms.get(exponents, 0.0) + sign * 0.25**t * number * scale
                v += 1
    return [(exponents, coefficient) for exponents, coefficient in terms.items() if coefficient]


def harmonics_by_recurrence(degree: int) -> Callable[[Any], list[Any]]:
    """The same, up to a factor for each, as a person would write them: by recurrences in degree and order."""

    def values(point: Any) -> list[Any]:
        x, y, z = point[0], point[1], point[2]
        r2 = x * x + y * y + z * z
        found: list[Any] = []
        cosines, sines = [1.0, x], [0.0, y]
        for _ in range(2, degree + 1):
            cosines.append(x * cosines[-1] - y * sines[-1])
            sines.append(x * sines[-1] + y * cosines[-2])
        for m in range(degree + 1):
            legendre: list[Any] = [float(math.prod(range(2 * m - 1, 0, -2)))]
            for n in range(m + 1, degree + 1):
                above = (2 * n - 1) * z * legendre[-1]
                if n > m + 1:
                    above = above - (n + m - 1) * r2 * legendre[-2]
                legendre.append(above / (n - m))
            found += [each * cosines[m] for each in legendre]
            if m:
                found += [each * sines[m] for each in legendre]
        return found

    return values
