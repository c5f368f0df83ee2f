"""Sympy's expressions as expressions of the rule language."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from yota.errors import RuleError
from yota.rules.model import Call, Expression, Literal, Name, as_written

__all__ = ["from_sympy"]

_WHOLE = 2**53
"""Larger numbers are not all doubles."""


def from_sympy(expression: Any) -> Expression:
    """What `to_sympy` gave, perhaps differentiated, as an expression of the rule language.

    Raises
    ------
    RuleError
        If it holds something that the rule language has no word for.
    """
    if expression.is_Symbol:
        return getattr(expression, "expression", None) or Name(expression.name)
    if expression.is_Number or expression.is_NumberSymbol or (expression.is_number and not expression.is_real):
        return _literal(expression)
    if expression.is_Add:
        return _sum(expression)
    if expression.is_Mul:
        return _product(expression)
    if expression.is_Pow:
        return _power(expression)
    if expression.is_Function:
        return Call(type(expression).__name__, tuple(from_sympy(each) for each in expression.args))
    raise RuleError(f"sympy's {expression} has no form in the rule language; write the partial")


def _literal(number: Any) -> Expression:
    if not number.is_finite:
        raise RuleError(f"sympy finds {number}, which is no number of the rule language; write the partial")
    if number.is_Integer:
        return Literal(int(number))
    if number.is_Rational:
        return _fraction(int(number.p), int(number.q))
    if number.is_real:
        return Literal(float(number))
    return Literal(complex(number))


def _fraction(above: int, below: int) -> Expression:
    """As a decimal if that is exact, or else as a quotient."""
    rounded = above / below
    if as_written(rounded) == Fraction(above, below) or max(abs(above), below) > _WHOLE:
        return Literal(rounded)
    return Call("divide", (Literal(above), Literal(below)))


def _sum(expression: Any) -> Expression:
    terms = expression.as_ordered_terms()
    # A sum does not begin with a minus if it can begin without.
    terms.sort(key=lambda term: term.could_extract_minus_sign())
    found = from_sympy(terms[0])
    for term in terms[1:]:
        if term.could_extract_minus_sign():
            found = Call("subtract", (found, from_sympy(-term)))
        else:
            found = Call("add", (found, from_sympy(term)))
    return found


def _product(expression: Any) -> Expression:
    coefficient, rest = expression.as_coeff_Mul()
    if coefficient.is_Number and coefficient.is_negative:
        return _negated(from_sympy(-coefficient * rest))
    over: list[Expression] = []
    under: list[Expression] = []
    if coefficient != 1:
        number = _literal(coefficient)
        parts = number.arguments if isinstance(number, Call) else (number,)
        over += [part for part in parts[:1] if len(parts) == 1 or part != Literal(1)]
        under += parts[1:]
    for factor in _merged(rest.as_ordered_factors()):
        base, exponent = factor.as_base_exp()
        if factor.is_Pow and exponent.is_number and exponent.is_negative:
            under.append(from_sympy(base**-exponent))
        else:
            over.append(from_sympy(factor))
    above = _chain(over) if over else Literal(1)
    return Call("divide", (above, _chain(under))) if under else above


def _merged(factors: list[Any]) -> list[Any]:
    """Powers of one base as one power: ``x**c / x``, which sympy leaves so, is not a number at 0."""
    exponents: dict[Any, Any] = {}
    for factor in factors:
        base, exponent = factor.as_base_exp()
        exponents[base] = exponents.get(base, 0) + exponent
    if len(exponents) == len(factors):
        return factors
    return [base**exponent for base, exponent in exponents.items()]


def _negated(expression: Expression) -> Expression:
    """Minus ``expression``, with the sign at its first number if it begins with one."""
    if isinstance(expression, Literal):
        return Literal(-expression.value)
    if isinstance(expression, Call) and expression.function in ("multiply", "divide"):
        first, *rest = expression.arguments
        inner = _negated(first)
        if not (isinstance(inner, Call) and inner.function == "negative"):
            return Call(expression.function, (inner, *rest))
    return Call("negative", (expression,))


def _chain(factors: list[Expression]) -> Expression:
    found = factors[0]
    for factor in factors[1:]:
        found = Call("multiply", (found, factor))
    return found


def _power(expression: Any) -> Expression:
    base, exponent = expression.as_base_exp()
    if exponent.is_number and exponent.is_negative:
        return Call("divide", (Literal(1), from_sympy(base**-exponent)))
    inner = from_sympy(base)
    if exponent == 2:
        return Call("square", (inner,))
    if exponent.is_Rational and exponent.p == 1 and exponent.q == 2:
        return Call("sqrt", (inner,))
    return Call("power", (inner, from_sympy(exponent)))
