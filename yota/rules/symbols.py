"""Expressions of the rule language in sympy, and the partials that follow from a primal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.body import evaluate
from yota.rules.display import show, walk
from yota.rules.inspection import Registered
from yota.rules.model import Call, Domain, Expression, Literal, Name, Rule, as_written
from yota.rules.readback import from_sympy

__all__ = ["derive", "flat", "head", "to_sympy"]

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "square": lambda x: x**2,
    "reciprocal": lambda x: 1 / x,
}
_CHOICES = ("where", "maximum", "minimum", "fmax", "fmin")
_FLAT = frozenset(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not "
    "isnan isfinite isinf signbit floor ceil trunc rint round sign floor_divide".split()
)


def to_sympy(expression: Expression, registry: Registered, symbols: dict[str, Any] | None = None) -> Any:
    """``expression`` in sympy: sums, products and powers as sympy's own, all other functions opaque.

    An opaque function differentiates by the rule of its primitive, so what is derived keeps the stable form that
    the rule has; sympy never sees inside it, so it cannot cancel anything there.

    Parameters
    ----------
    expression
        An elementwise expression.
    registry
        Knows the rules of the functions in it.
    symbols
        What names stand for; by default a symbol of the same name each.
    """
    import sympy

    if isinstance(expression, Literal):
        return _number(sympy, expression.value)
    if isinstance(expression, Name):
        known = (symbols or {}).get(expression.id)
        return sympy.Symbol(expression.id, real=True) if known is None else known
    if not isinstance(expression, Call) or expression.keywords:
        raise RuleError(f"`{show(expression)}` is not elementwise, so sympy cannot differentiate it; write the partial")
    operator = _OPERATORS.get(expression.function)
    if operator is None and _is_fixed(expression):
        return _constant(sympy, expression, registry)
    arguments = [to_sympy(argument, registry, symbols) for argument in expression.arguments]
    if operator is not None:
        return operator(*arguments)
    if expression.function == "power" and _is_fixed(expression.arguments[1]):
        return arguments[0] ** arguments[1]
    return head(expression.function, registry)(*arguments)


def _is_fixed(expression: Expression) -> bool:
    return not any(isinstance(part, Name) for part in walk(expression))


def _constant(sympy: Any, expression: Call, registry: Registered) -> Any:
    """A function of numbers: a symbol, which is read back as it was written, since sympy may not round it."""
    with np.errstate(all="ignore"):
        value = evaluate(expression, {}, registry)
    if expression.function in _FLAT or isinstance(value, (bool, int)) or not value or not np.isfinite(value):
        return _number(sympy, value)
    signs = {"complex": True} if isinstance(value, complex) else {"positive": value > 0, "real": True}
    found = _constants()(show(expression), **signs)
    found.expression = expression
    return found


@cache
def _constants() -> Any:
    import sympy

    class Constant(sympy.Symbol):  # type: ignore[misc]
        """A number, with the expression that says which."""

        __slots__ = ("expression",)

    return Constant


def _number(sympy: Any, value: Any) -> Any:
    if isinstance(value, bool):
        return sympy.Integer(int(value))
    if isinstance(value, int):
        return sympy.Integer(value)
    if isinstance(value, float):
        if value in (math.pi, -math.pi):
            return sympy.pi if value > 0 else -sympy.pi
        # Only as a fraction does sympy keep it as it is.
        return sympy.Rational(as_written(value)) if math.isfinite(value) else sympy.Float(value)
    if isinstance(value, complex):
        return _number(sympy, value.real) + sympy.I * _number(sympy, value.imag)
    raise RuleError(f"{value!r} is not a number, so sympy cannot differentiate it; write the partial")


def head(name: str, registry: Registered) -> Any:
    """The opaque sympy function that stands for the primitive ``name`` of ``registry``."""
    known = registry.symbols.get(name)
    if known is None:
        known = registry.symbols[name] = _choice(name) if name in _CHOICES else _opaque(name, registry)
    return known


@cache
def _choice(name: str) -> Any:
    import sympy

    class Choice(sympy.Function):  # type: ignore[misc]
        """A choice among arguments, which differentiates each on its own."""

        def _eval_derivative(self, symbol: Any) -> Any:
            if name == "where":
                condition, a, b = self.args
                return self.func(condition, a.diff(symbol), b.diff(symbol))
            a, b = self.args
            da, db = a.diff(symbol), b.diff(symbol)
            above = flat("greater" if name in ("maximum", "fmax") else "less")
            tie = _choice("where")(flat("equal")(a, b), (da + db) / 2, db)
            return _choice("where")(above(a, b), da, tie)

    Choice.__name__ = name
    return Choice


@cache
def flat(name: str) -> Any:
    """The opaque sympy function that stands for a function without slope."""
    import sympy

    class Flat(sympy.Function):  # type: ignore[misc]
        """A function that is constant piece by piece."""

        def _eval_derivative(self, symbol: Any) -> Any:
            return sympy.Integer(0)

    Flat.__name__ = name
    return Flat


def _opaque(name: str, registry: Registered) -> Any:
    import sympy

    if name in _FLAT:
        return flat(name)
    rule = registry.rules(name)[0] if registry.knows(name) else None
    if rule is not None and len(rule.results) > 1:
        raise RuleError(f"{name} gives several results, so sympy cannot differentiate it; write the partial")

    class Opaque(sympy.Function):  # type: ignore[misc]
        """A primitive, which differentiates by its rule."""

        is_real = True

        def fdiff(self, argindex: int = 1) -> Any:
            if rule is None or rule.kind != "elementwise":
                raise RuleError(f"{name} is not elementwise, so sympy cannot differentiate it; write the partial")
            parameter = rule.operands[argindex - 1]
            if parameter.domain is not None and parameter.domain.kind in ("integer", "boolean"):
                return sympy.Integer(0)
            symbols = dict(zip((each.name for each in rule.operands), self.args, strict=True))
            symbols[rule.results[0]] = self
            return to_sympy(registry.partial(rule, parameter.name), registry, symbols)

    Opaque.__name__ = name
    return Opaque


def symbols_of(rule: Rule) -> dict[str, Any]:
    """A symbol for each parameter; real where its domain is."""
    import sympy

    return {
        parameter.name: sympy.Symbol(
            parameter.name, **({} if (parameter.domain or Domain("real")).kind == "complex" else {"real": True})
        )
        for parameter in rule.parameters
    }


def derive(rule: Rule, result: str, parameter: str, registry: Registered) -> Expression:
    """The partial of ``result`` by ``parameter``, from the primal.

    Raises
    ------
    RuleError
        If sympy cannot differentiate it.
    """
    symbols = symbols_of(rule)
    try:
        return from_sympy(to_sympy(rule.primal[result], registry, symbols).diff(symbols[parameter]))
    except RuleError as fault:
        raise RuleError(
            f"{rule.file}:{rule.line}: the partial of {rule.name} by {parameter} cannot be derived: {fault}\n"
            f"    d[{result}, {parameter}] = ..."
        ) from None
