"""The algebra of sympy's expressions with opaque functions, and the partials derived in it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.emitted import evaluate
from yota.rules.algebras.evaluate import ARITHMETIC, CONDITIONS, Algebra
from yota.rules.algebras.readback import from_sympy
from yota.rules.language.model import Call, Domain, Expression, Name, Rule, as_written
from yota.rules.language.rule_text import show, walk
from yota.rules.laws.inspection import Registered

_CHOICES = ("where", "maximum", "minimum", "fmax", "fmin")
_FLAT = CONDITIONS.union("isnan isfinite isinf signbit floor ceil trunc rint round sign floor_divide".split())


def to_sympy(expression: Expression, registry: Registered, symbols: Mapping[str, Any] | None = None) -> Any:
    """``expression`` in sympy: sums, products and powers as sympy's own, all other functions opaque.

    An opaque function differentiates by the rule of its primitive, so what is derived keeps the stable form that
    the rule has; sympy never sees inside it, so it cannot cancel anything there.

    registry: knows the rules of the functions in it.
    symbols: what names stand for; by default a symbol of the same name each.
    """
    return _Symbolic(registry).of(expression, symbols or {})


@dataclass(frozen=True, slots=True)
class _Symbolic(Algebra):
    registry: Registered

    def literal(self, value: Any) -> Any:
        return number(value)

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        import sympy

        if not isinstance(expression, Name):
            raise _not_elementwise(f"`{show(expression)}`")
        known = names.get(expression.id)
        return sympy.Symbol(expression.id, real=True) if known is None else known

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        if call.keywords:
            raise _not_elementwise(f"`{show(call)}`")
        operator = ARITHMETIC.get(call.function)
        if operator is None and _is_fixed(call):
            return self._constant(call)
        arguments = self.arguments(call, names)
        if operator is not None:
            return operator(*arguments)
        if call.function == "power" and _is_fixed(call.arguments[1]):
            return arguments[0] ** arguments[1]
        return _head(call.function, self.registry)(*arguments)

    def _constant(self, call: Call) -> Any:
        """A function of numbers: a symbol, which is read back as it was written, since sympy may not round it."""
        with np.errstate(all="ignore"):
            value = evaluate(call, {}, self.registry)
        if call.function in _FLAT or isinstance(value, (bool, int)) or not value or not np.isfinite(value):
            return number(value)
        signs = {"complex": True} if isinstance(value, complex) else {"positive": value > 0, "real": True}
        found = _constants()(show(call), **signs)
        found.expression = call
        return found


def _is_fixed(expression: Expression) -> bool:
    return not any(isinstance(part, Name) for part in walk(expression))


def _not_elementwise(what: str) -> RuleError:
    return RuleError(f"{what} is not elementwise, so sympy cannot differentiate it; write the partial")


@cache
def _constants() -> Any:
    import sympy

    class Constant(sympy.Symbol):  # type: ignore[misc]
        """A number, with the expression that says which."""

        __slots__ = ("expression",)

    return Constant


def number(value: Any) -> Any:
    """The number that a literal stands for."""
    import sympy

    if isinstance(value, int):
        return sympy.Integer(int(value))
    if isinstance(value, float):
        if abs(value) == math.pi:
            return sympy.pi if value > 0 else -sympy.pi
        # Only as a fraction does sympy keep it as it is.
        return sympy.Rational(as_written(value)) if math.isfinite(value) else sympy.Float(value)
    if isinstance(value, complex):
        return number(value.real) + sympy.I * number(value.imag)
    raise RuleError(f"{value!r} is not a number, so sympy cannot differentiate it; write the partial")


def _head(name: str, registry: Registered) -> Any:
    """The opaque sympy function that stands for the primitive ``name`` of ``registry``."""
    known = registry.symbols.get(name)
    if known is None:
        made = _choice(name) if name in _CHOICES else flat(name) if name in _FLAT else _opaque(name, registry)
        known = registry.symbols[name] = made
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

    rule = registry.rules(name)[0] if registry.knows(name) else None
    if rule is not None and len(rule.results) > 1:
        raise RuleError(f"{name} gives several results, so sympy cannot differentiate it; write the partial")

    class Opaque(sympy.Function):  # type: ignore[misc]
        """A primitive, which differentiates by its rule."""

        is_real = True

        def fdiff(self, argindex: int = 1) -> Any:
            if rule is None or rule.kind != "elementwise":
                raise _not_elementwise(name)
            parameter = rule.operands[argindex - 1]
            if not parameter.moves:
                return sympy.Integer(0)
            symbols = dict(zip((each.name for each in rule.operands), self.args, strict=True))
            symbols[rule.results[0]] = self
            return to_sympy(registry.partial(rule, parameter.name), registry, symbols)

    Opaque.__name__ = name
    return Opaque


def slope_of(equation: Expression, name: str, registry: Registered) -> Expression:
    """The derivative of an elementwise expression by a real name in it."""
    import sympy

    return from_sympy(to_sympy(equation, registry).diff(sympy.Symbol(name, real=True)))


def derive(rule: Rule, result: str, parameter: str, registry: Registered) -> Expression:
    """The partial of ``result`` by ``parameter``, from the primal, or from the equation that the result solves."""
    import sympy

    # A symbol is real where its domain is.
    domains = {each.name: each.domain or Domain("real") for each in rule.parameters}
    symbols = {
        name: sympy.Symbol(name, real=None if each.kind == "complex" else True) for name, each in domains.items()
    }
    try:
        if rule.equation is not None:
            residual = to_sympy(rule.equation, registry)
            by, own = (residual.diff(sympy.Symbol(name, real=True)) for name in (parameter, result))
            return from_sympy(-by / own)
        return from_sympy(to_sympy(rule.primal[result], registry, symbols).diff(symbols[parameter]))
    except RuleError as fault:
        raise RuleError(
            f"{rule.file}:{rule.line}: the partial of {rule.name} by {parameter} cannot be derived: {fault}\n"
            f"    d[{result}, {parameter}] = ..."
        ) from None
