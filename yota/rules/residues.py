"""Numbers of a finite field in the place of formulas: where two of them differ, so do the formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from hashlib import blake2b

from yota.rules.model import as_written

__all__ = ["PRIME", "ROOTS", "UnclearError", "inverse", "number", "opaque", "raised"]

PRIME = 2**61 - 1
"""Two polynomials of degree d that differ agree at a random place with a chance of d in so many.

J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, J. ACM 27 (1980).
"""

ROOTS = 720
"""Names and opaque functions stand for powers of this order, so that their usual roots are numbers too."""


class UnclearError(Exception):
    """A formula has no number in the field."""


def opaque(*parts: str | int) -> int:
    """A number that depends on ``parts`` and on nothing else, as if drawn at random; never zero."""
    digest = blake2b(repr(parts).encode(), digest_size=16).digest()
    return int.from_bytes(digest, "little") % (PRIME - 1) + 1


def inverse(value: int) -> int:
    """The reciprocal.

    Raises
    ------
    UnclearError
        Of zero.
    """
    if value == 0:
        raise UnclearError
    return pow(value, -1, PRIME)


def number(value: object) -> int:
    """The residue of a literal; that of pi is one of its own, since pi is no fraction.

    Examples
    --------
    >>> number(0.5) * 2 % PRIME
    1
    """
    if isinstance(value, float) and math.isfinite(value):
        if abs(value) == math.pi:
            return opaque("pi") if value > 0 else PRIME - opaque("pi")
        exact = as_written(value)
        return exact.numerator * inverse(exact.denominator) % PRIME
    if isinstance(value, int):
        return value % PRIME
    raise UnclearError


def raised(root: int | None, value: int, exponent: object) -> int:
    """``value`` to a power; ``root`` is its root of order `ROOTS` if one is known.

    Raises
    ------
    UnclearError
        If the exponent is no fraction whose root is known.
    """
    if not isinstance(exponent, (int, float)) or not math.isfinite(exponent):
        raise UnclearError
    order = as_written(exponent) if isinstance(exponent, float) else Fraction(exponent)
    if order.denominator == 1:
        return pow(value or inverse(0) if order < 0 else value, int(order), PRIME)
    if root is None or ROOTS % order.denominator:
        raise UnclearError
    return pow(root, int(order * ROOTS), PRIME)
