"""Rules of `simplify` for powers with a constant exponent."""

from __future__ import annotations

from yota.passes.case import Case

__all__ = ["constant_power", "first_power"]

_LARGEST_EXPONENT = 64


def first_power(case: Case) -> int | None:
    """``x ** 1`` to ``x``."""
    value = case.value(case.operands[1])
    return case.same(case.operands[0]) if value is not None and value == 1 else None


def constant_power(case: Case) -> int | None:
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
