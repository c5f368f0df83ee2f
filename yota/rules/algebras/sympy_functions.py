"""The algebra of sympy's own functions, and whether a partial is a derivative in it as a formula."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeAlias

from yota.errors import RuleError
from yota.ir.primitive import COMPARISONS
from yota.rules.algebras.evaluate import Algebra, formulas
from yota.rules.algebras.opaque import flat, number
from yota.rules.language.model import Call, Domain, Expression, Rule
from yota.rules.language.rule_text import walk
from yota.rules.laws.inspection import Registered
from yota.rules.laws.sampling import statics

_MOST_PARTS = 60
_MOST_OPERATIONS = 100
_MOST_CASES = 16
_LARGEST_POWER = 24
"""Larger powers of sums take long to be written out."""
_FLAT = ("floor", "ceil", "trunc", "rint")
_Condition: TypeAlias = tuple[str, Any, Any]


class _UnclearError(RuleError):
    """Sympy has no word for a part."""


def exactly(rule: Rule, result: str, parameter: str, registry: Registered) -> bool:
    """Whether the residual of a partial is 0 as a formula, but perhaps for single points; a no says nothing.

    Sympy sees true functions here, each name positive or negative, and each side of a choice by itself. It expands,
    rewrites by exponentials and puts over one denominator, and no more: what takes longer is left to numbers.

    >>> from yota.rules.registry import registry
    >>> tan = registry().rules("tan")[0]
    >>> exactly(tan, "y", "x", registry())
    True
    """
    if rule.kind != "elementwise":
        return False
    partial = registry.partial(rule, parameter, result)
    if sum(1 for _ in walk(partial)) > _MOST_PARTS:
        return False
    try:
        residuals = list(itertools.islice(_residuals(rule, result, parameter, partial, registry), _MOST_CASES + 1))
        return 0 < len(residuals) <= _MOST_CASES and all(map(_vanishes, residuals))
    except (RuleError, ArithmeticError, AttributeError, NotImplementedError, RecursionError, TypeError, ValueError):
        return False


def _residuals(rule: Rule, result: str, parameter: str, partial: Expression, registry: Registered) -> Iterator[Any]:
    """Derivative of the function minus its partial: for each sign of each name, and each side of each choice."""
    import sympy

    signs = [_signs(each.domain or Domain("real")) for each in rule.operands]
    for chosen in itertools.product(*signs):
        symbols = {each.name: sympy.Symbol(each.name, positive=True) for each in rule.operands}
        names = {name: sign * symbol for (name, symbol), sign in zip(symbols.items(), chosen, strict=True)}
        names |= {name: static.value for name, static in statics(rule).items()}
        conditions: list[_Condition] = []
        for sides in _sides(conditions):
            algebra = _Functions(sides, registry)
            if result in rule.primal:
                value = algebra.of(rule.primal[result], names)
            else:
                value = _function(rule.name)(*(names[each.name] for each in rule.operands))
            sign = names[parameter] / symbols[parameter]
            claimed = algebra.of(partial, {**names, result: value})
            conditions[:] = [each for each in algebra.met if each not in conditions] + conditions
            yield value.diff(symbols[parameter]) * sign - claimed


def _signs(domain: Domain) -> tuple[int, ...]:
    if domain.kind in ("integer", "boolean"):
        raise _UnclearError
    return (1,) if domain.low >= 0 else (-1,) if domain.high <= 0 else (1, -1)


def _sides(conditions: list[_Condition]) -> Iterator[dict[_Condition, bool]]:
    """Every way in which conditions may turn out; which ones there are, the first evaluation finds."""
    yield {}
    first = list(conditions)
    if len(first) > 4:
        raise _UnclearError
    for values in itertools.product((True, False), repeat=len(first)):
        if not all(values):
            yield dict(zip(first, values, strict=True))


class _Functions(Algebra):
    """Sympy's expressions, with conditions as ``sides`` says, or else true."""

    def __init__(self, sides: Mapping[_Condition, bool], registry: Registered) -> None:
        self.sides, self.registry = sides, registry
        self.met: list[_Condition] = []

    def literal(self, value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise _UnclearError
        return number(value)

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        name = call.function
        if call.keywords:
            raise _UnclearError
        if name == "where":
            # Both sides are evaluated, so that the first evaluation meets all conditions.
            a, b = (self.of(side, names) for side in call.arguments[1:])
            return a if self._holds(call.arguments[0], names) else b
        arguments = self.arguments(call, names)
        if name in functions() or not self.registry.knows(name):
            return _function(name)(*arguments)
        # A function that sympy has not is what its primal says.
        rule = self.registry.rules(name)[0]
        if rule.results[0] not in rule.primal or len(rule.operands) != len(arguments) or rule.keywords:
            raise _UnclearError
        inner = {each.name: value for each, value in zip(rule.operands, arguments, strict=True)}
        return self.of(rule.primal[rule.results[0]], inner)

    def _holds(self, condition: Expression, names: Mapping[str, Any]) -> bool:
        if not isinstance(condition, Call) or condition.function not in COMPARISONS:
            raise _UnclearError
        a, b = self.arguments(condition, names)
        if condition.function in ("equal", "not_equal"):
            # Single points are the corners, which are held against numbers.
            return (condition.function == "equal") == _is_zero(a - b)
        key = (condition.function, a, b)
        if key not in self.met:
            self.met.append(key)
        return self.sides.get(key, True)


def _is_zero(difference: Any) -> bool:
    """Whether a difference is 0 everywhere, and not at single points only."""
    import sympy

    if any(difference.has(flat(name)) for name in _FLAT):
        raise _UnclearError
    numbers = {
        name: sympy.Rational(7 * place + 5, 11) for place, name in enumerate(sorted(difference.free_symbols, key=str))
    }
    return not abs(sympy.N(difference.subs(numbers), 30)) > 1e-20


def _vanishes(residual: Any) -> bool:
    import sympy

    if any(
        each.base.is_Add and abs(each.exp) > _LARGEST_POWER for each in residual.atoms(sympy.Pow) if each.exp.is_number
    ):
        return False
    for step in (lambda each: each, sympy.expand, _over_one, lambda each: _over_one(each.rewrite(sympy.exp))):
        if residual.count_ops() > _MOST_OPERATIONS:
            return False
        if step(residual) == 0:
            return True
    return False


def _over_one(expression: Any) -> Any:
    """The numerator over a common denominator, expanded."""
    import sympy

    above, _ = sympy.fraction(sympy.together(expression))
    return sympy.powsimp(sympy.expand(above))


def _function(name: str) -> Callable[..., Any]:
    found = functions().get(name)
    if found is None:
        raise _UnclearError
    return found


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """Sympy's functions by the names of primitives."""
    import sympy

    named = SimpleNamespace(**vars(sympy))
    named.zero, named.one, named.power = sympy.S.Zero, sympy.S.One, sympy.Pow
    named.expm1, named.log1p = lambda x: sympy.exp(x) - 1, lambda x: sympy.log(1 + x)
    named.hypot = lambda a, b: sympy.sqrt(a**2 + b**2)
    found = formulas(named)
    return {
        **found,
        **{name: getattr(sympy, name) for name in ("besselj", "bessely")},
        **{name: flat(name) for name in _FLAT},
        **dict.fromkeys(("power", "float_power"), operator.pow),
        "_logistic": found["expit"],
        "cbrt": lambda x: sympy.sign(x) * abs(x) ** sympy.Rational(1, 3),
        "phase": lambda x, y: x / y,
        "branch": lambda p, q: p,
        "conjugate": lambda x: x,
        "copysign": lambda a, b: abs(a) * sympy.sign(b),
    }
