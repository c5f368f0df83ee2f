"""Rules of `simplify` for arithmetic: neutral elements, signs, reciprocals, powers, constant choices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from yota.optimize.case import Case, Rule

_LARGEST_EXPONENT = 64


def _constant_power(case: Case) -> int | None:
    """A small integer power as a chain of products; a negative one as the reciprocal of a chain."""
    base, exponent = case.operands
    value = case.value(exponent)
    type = case.type
    if value is None or isinstance(value, complex) or type.dtype.kind != "f":
        return None
    if not abs(value) <= _LARGEST_EXPONENT or value != int(value) or case.type_of(base).shape != type.shape:
        return None
    if case.type_of(base).dtype != type.dtype:
        return None
    count = int(value)
    if count == 0:
        one = case.constant(1.0 if type.weak else type.dtype.type(1))
        return case.same(one)
    found = _chain(case, base, abs(count))
    if count > 0:
        return found
    one = case.constant(1.0 if type.weak else type.dtype.type(1))
    return case.make("divide", (one, found), (), type)


def _chain(case: Case, base: int, count: int) -> int:
    """``base ** count`` by squaring, from the exponent's leading bit downwards."""
    found = base
    for digit in bin(count)[3:]:
        found = case.make("square", (found,), (), case.type)
        if digit == "1":
            found = case.make("multiply", (found, base), (), case.type)
    return found


_NEVER_MINUS_ZERO = frozenset({"square", "abs", "absolute", "exp", "cosh", "hypot", "exp2"})


def _is(case: Case, variable: int, number: int) -> bool:
    """Whether a variable is a constant, all of whose elements are ``number``."""
    value = case.value(variable)
    return value is not None and not isinstance(value, str) and bool(value == number)


def is_ordinary(value: Any) -> bool:
    """Whether a constant is a number other than 0, 1 and -1."""
    return type(value) in (int, float, np.float64) and value not in (0, 1, -1)


def _beside(case: Case, number: int) -> Iterator[int]:
    """Each operand whose neighbour is ``number``."""
    left, right = case.operands
    yield from (other for constant, other in ((left, right), (right, left)) if _is(case, constant, number))


def _multiply_by_one(case: Case) -> int | None:
    found = map(case.same, _beside(case, 1))
    return next((each for each in found if each is not None), None)


def _by_one(case: Case) -> int | None:
    """``x / 1`` and ``x ** 1`` to ``x``."""
    return case.same(case.operands[0]) if _is(case, case.operands[1], 1) else None


def _multiply_by_minus_one(case: Case) -> int | None:
    other = next(_beside(case, -1), None)
    return case.instead("negative", other) if other is not None and case.type.dtype.kind == "f" else None


def _square(case: Case) -> int | None:
    left, right = case.operands
    return case.instead("square", left) if left == right and case.type.dtype.kind in "fi" else None


def _double_negation(case: Case) -> int | None:
    inner = case.definition(case.operands[0], "negative")
    return case.same(inner.operands[0]) if inner is not None else None


def _double_conjugate(case: Case) -> int | None:
    inner = case.definition(case.operands[0])
    return case.same(inner.operands[0]) if inner is not None and inner.name in ("conjugate", "conj") else None


def _negated(case: Case, variable: int) -> int | None:
    """What ``variable`` is the negative of, provided that nobody else reads it."""
    inner = case.definition(variable, "negative")
    return inner.operands[0] if inner is not None and case.single(variable) else None


def _add_negative(case: Case) -> int | None:
    left, right = case.operands
    inner = _negated(case, right)
    if inner is not None:
        return case.instead("subtract", left, inner)
    inner = _negated(case, left)
    return case.instead("subtract", right, inner) if inner is not None else None


def _subtract_negative(case: Case) -> int | None:
    inner = _negated(case, case.operands[1])
    return case.instead("add", case.operands[0], inner) if inner is not None else None


def _sign_out(case: Case) -> int | None:
    """``(-a) * b`` to ``-(a * b)``, so that the sign meets a sum and becomes a subtraction."""
    left, right = case.operands
    for position, variable in enumerate(case.operands):
        inner = _negated(case, variable)
        if inner is None or case.type_of(inner).shape != case.type.shape or case.type.dtype.kind != "f":
            continue
        pair = (inner, right) if position == 0 else (left, inner)
        if case.fits(case.primitive, pair):
            return case.make("negative", (case.make(case.primitive, pair, (), case.type),), (), case.type)
    return None


def _negate_coefficient(case: Case) -> int | None:
    """``-(c * x)`` to ``(-c) * x`` for a constant ``c``."""
    inner = case.definition(case.operands[0], "multiply")
    if inner is None or not case.single(case.operands[0]) or case.type.dtype.kind != "f":
        return None
    for constant, other in (inner.operands, inner.operands[::-1]):
        value = case.value(constant)
        if value is not None and not case.type_of(constant).shape and case.type_of(constant).dtype.kind == "f":
            return case.instead("multiply", case.constant(-value), other)
    return None


def _zero_sum(case: Case) -> int | None:
    """``x + 0.0`` is ``x`` only where ``x`` is never -0.0, because ``-0.0 + 0.0`` is ``0.0``."""
    left, right = case.operands
    for constant, other in ((right, left), (left, right)):
        if not _is(case, constant, 0) or case.type.is_complex:
            continue
        value = case.value(constant)
        if case.type.dtype.kind != "f" or _is_minus_zero(value) or _never_minus_zero(case, other):
            return case.same(other)
    return None


def _zero_difference(case: Case) -> int | None:
    left, right = case.operands
    if not _is(case, right, 0) or case.type.is_complex:
        return None
    return None if _is_minus_zero(case.value(right)) and case.type.dtype.kind == "f" else case.same(left)


def _is_minus_zero(value: Any) -> bool:
    return value == 0 and math.copysign(1.0, value) < 0


def _never_minus_zero(case: Case, variable: int) -> bool:
    op = case.definition(variable, "add")
    return any(_surely_plus(case, each) for each in (op.operands if op is not None else (variable,)))


def _surely_plus(case: Case, variable: int) -> bool:
    op = case.definition(variable)
    if op is not None:
        return op.name in _NEVER_MINUS_ZERO
    value = case.value(variable)
    return value is not None and not isinstance(value, str) and not _is_minus_zero(value)


def _identity_on_reals(case: Case) -> int | None:
    return None if case.type_of(case.operands[0]).is_complex else case.same(case.operands[0])


def _identity(case: Case) -> int | None:
    return case.same(case.operands[0])


def _same_dtype(case: Case) -> int | None:
    return case.operands[0] if case.type_of(case.operands[0]) == case.type else None


def _constant_choice(case: Case) -> int | None:
    if len(case.operands) != 3:
        return None
    condition, yes, no = case.operands
    value = case.value(condition)
    return None if value is None else case.same(yes if value else no)


def _reciprocal(case: Case) -> int | None:
    """``a * (1 / b)`` to ``a / b``."""
    left, right = case.operands
    for variable, other in ((right, left), (left, right)):
        inner = case.definition(variable, "divide")
        if inner is None or not case.single(variable):
            continue
        if _is(case, inner.operands[0], 1):
            found = case.instead("divide", other, inner.operands[1])
            if found is not None:
                return found
    return None


def _square_of_reciprocal(case: Case) -> int | None:
    """``square(1 / b)`` to ``1 / square(b)``, whose quotient can then take in a factor."""
    inner = case.definition(case.operands[0], "divide")
    if inner is None or not case.single(case.operands[0]):
        return None
    numerator, denominator = inner.operands
    if not _is(case, numerator, 1) or not case.fits("square", (denominator,)):
        return None
    return case.instead("divide", numerator, case.make("square", (denominator,)))


def _coefficients(case: Case) -> int | None:
    """``c1 * (c2 * x)`` to ``(c1 * c2) * x`` where the product of the constants is an ordinary number."""
    left, right = case.operands
    for constant, variable in ((left, right), (right, left)):
        first = case.value(constant)
        inner = case.definition(variable, "multiply")
        if not _is_plain(case, constant, first) or inner is None or not case.single(variable):
            continue
        for second, other in (inner.operands, inner.operands[::-1]):
            value = case.value(second)
            if _is_plain(case, second, value) and 1e-280 < abs(float(first) * float(value)) < 1e280:
                return case.instead("multiply", case.constant(first * value), other)
    return None


def _is_plain(case: Case, variable: int, value: Any) -> bool:
    """Whether a constant is a double precision number, strong or weak."""
    return value is not None and not case.type_of(variable).shape and isinstance(value, float)


EXACT: dict[str, tuple[Rule, ...]] = {
    "multiply": (_multiply_by_one, _multiply_by_minus_one, _square, _sign_out),
    "divide": (_by_one, _sign_out),
    "negative": (_double_negation, _negate_coefficient),
    "add": (_add_negative, _zero_sum),
    "subtract": (_subtract_negative, _zero_difference),
    "power": (_by_one,),
    "positive": (_identity,),
    "copy": (_identity,),
    "real": (_identity_on_reals,),
    "conjugate": (_identity_on_reals, _double_conjugate),
    "conj": (_identity_on_reals, _double_conjugate),
    "astype": (_same_dtype,),
    "where": (_constant_choice,),
}

LOOKED_FOR: dict[str, frozenset[str]] = {
    "add": frozenset({"negative"}),
    "subtract": frozenset({"negative"}),
    "multiply": frozenset({"negative", "divide"}),
    "divide": frozenset({"negative"}),
    "negative": frozenset({"negative", "multiply"}),
    "square": frozenset({"divide"}),
}
"""Of ops on scalars: what an operand must be defined by for a rule to fit, unless one is constant or two are equal.

Nothing else may read that operand, but for a negation.
"""

BESIDE_NUMBERS: dict[str, frozenset[str]] = {
    "add": frozenset({"negative"}),
    "subtract": frozenset({"negative"}),
    "multiply": frozenset({"negative", "divide", "multiply"}),
    "divide": frozenset({"negative"}),
}
"""The same where the other operand is a number but 0, 1 and -1."""

LOOSE: dict[str, tuple[Rule, ...]] = {
    "power": (_constant_power,),
    "float_power": (_constant_power,),
    "square": (_square_of_reciprocal,),
    "multiply": (_reciprocal, _coefficients),
}
