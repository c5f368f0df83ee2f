"""Sympy's expressions as expressions of the rule language."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from yota.errors import RuleError
from yota.rules.language.model import Call, Expression, Literal, Name, as_written

_WHOLE = 2**53
"""Larger numbers are not all doubles."""


def from_sympy(expression: Any) -> Expression:
    """What `to_sympy` gave, perhaps differentiated, as an expression of the rule language."""
    return Reader().read(expression)


class Reader:
    """Reads sympy's expressions: sums in sympy's printed order, products with their divisors last."""

    def read(self, expression: Any) -> Expression:
        """``expression`` in the rule language."""
        if expression.is_Symbol:
            return self.symbol(expression)
        if expression.is_Number or expression.is_NumberSymbol or self.is_constant(expression):
            return self._literal(expression)
        if expression.is_Add:
            return self._sum(expression)
        if expression.is_Mul:
            return self._product(expression)
        if expression.is_Pow:
            return self._power(expression)
        return self.other(expression)

    def symbol(self, symbol: Any) -> Expression:
        """A symbol."""
        return getattr(symbol, "expression", None) or Name(symbol.name)

    def is_constant(self, expression: Any) -> bool:
        """Whether an expression is read as the number that it is."""
        return bool(expression.is_number and not expression.is_real)

    def call(self, function: str, *arguments: Expression) -> Expression:
        """A call of a primitive."""
        return Call(function, arguments)

    def other(self, expression: Any) -> Expression:
        """What is neither a number nor a symbol, nor a sum, product or power."""
        if expression.is_Function:
            return self.call(type(expression).__name__, *map(self.read, expression.args))
        raise RuleError(f"sympy's {expression} has no form in the rule language; write the partial")

    def _literal(self, number: Any) -> Expression:
        if not number.is_finite:
            raise RuleError(f"sympy finds {number}, which is no number of the rule language; write the partial")
        if number.is_Integer:
            return Literal(int(number))
        if number.is_Rational:
            above, below = _fraction(int(number.p), int(number.q))
            return Literal(above) if below == 1 else self.call("divide", Literal(above), Literal(below))
        return Literal(float(number) if number.is_real else complex(number))

    def _sum(self, expression: Any) -> Expression:
        terms = expression.as_ordered_terms()
        # A sum does not begin with a minus if it can begin without.
        terms.sort(key=lambda term: term.could_extract_minus_sign())
        found = self.read(terms[0])
        for term in terms[1:]:
            negative = term.could_extract_minus_sign()
            found = self.call("subtract" if negative else "add", found, self.read(-term if negative else term))
        return found

    def _product(self, expression: Any) -> Expression:
        """A product, with its sign at its first number if it begins with one."""
        coefficient, rest = expression.as_coeff_Mul()
        negative = coefficient.is_Number and coefficient.is_negative
        over: list[Expression] = []
        under: list[Expression] = []
        if coefficient not in (1, -1):
            number = abs(coefficient) if negative else coefficient
            above, below = _fraction(int(number.p), int(number.q)) if number.is_Rational else (number, 1)
            if above != 1 or below == 1:
                over.append(self._literal(number) if below == 1 else Literal(above))
            if below != 1:
                under.append(Literal(below))
        for factor in _merged(rest.as_ordered_factors()):
            base, exponent = factor.as_base_exp()
            if factor.is_Pow and exponent.is_number and exponent.is_negative:
                under.append(self.read(base**-exponent))
            else:
                over.append(self.read(factor))
        over = over or [Literal(1)]
        if negative and isinstance(over[0], Literal):
            over[0], negative = Literal(-over[0].value), False
        found = self._chain(over)
        found = self.call("divide", found, self._chain(under)) if under else found
        return self.call("negative", found) if negative else found

    def _chain(self, factors: list[Expression]) -> Expression:
        found = factors[0]
        for factor in factors[1:]:
            found = self.call("multiply", found, factor)
        return found

    def _power(self, expression: Any) -> Expression:
        base, exponent = expression.as_base_exp()
        if exponent.is_number and exponent.is_negative:
            return self.call("divide", Literal(1), self.read(base**-exponent))
        inner = self.read(base)
        if exponent == 2:
            return self.call("square", inner)
        if exponent.is_Rational and exponent.p == 1 and exponent.q == 2:
            return self.call("sqrt", inner)
        return self.call("power", inner, self.read(exponent))


def _fraction(above: int, below: int) -> tuple[Any, int]:
    """As a decimal if that is exact, or else as a quotient."""
    rounded = above / below
    exact = below == 1 or as_written(rounded) == Fraction(above, below) or max(abs(above), below) > _WHOLE
    return (above if below == 1 else rounded, 1) if exact else (above, below)


def _merged(factors: list[Any]) -> list[Any]:
    """Powers of one base as one power: ``x**c / x``, which sympy leaves so, is not a number at 0."""
    exponents: dict[Any, Any] = {}
    for factor in factors:
        base, exponent = factor.as_base_exp()
        exponents[base] = exponents.get(base, 0) + exponent
    if len(exponents) == len(factors):
        return factors
    return [base**exponent for base, exponent in exponents.items()]
