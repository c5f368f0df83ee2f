"""Whether a partial is a derivative as a formula: shown in a finite field, or by sympy in bounded steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from yota.rules.display import walk
from yota.rules.identities import follows
from yota.rules.inspection import Registered
from yota.rules.model import Call, Domain, Expression, Literal, Name, Rule, as_written
from yota.rules.sampling import statics
from yota.rules.symbols import flat

__all__ = ["exactly", "functions"]

_MOST_PARTS = 60
_MOST_OPERATIONS = 400
_MOST_CASES = 16
_LARGEST_POWER = 24
"""Larger powers of sums take long to be written out."""
_FLAT = ("floor", "ceil", "trunc", "rint")


_CONDITIONS = frozenset("equal not_equal less less_equal greater greater_equal".split())
_Condition: TypeAlias = tuple[str, Any, Any]


class _UnclearError(Exception):
    """Sympy has no word for a part."""


def exactly(rule: Rule, result: str, parameter: str, registry: Registered) -> bool:
    """Whether the residual of a partial is 0 as a formula, but perhaps for single points; a no says nothing.

    Sympy sees true functions here, each name positive or negative, and each side of a choice by itself. It expands,
    rewrites by exponentials and puts over one denominator, and no more: what takes longer is left to numbers.

    Examples
    --------
    >>> from yota.rules.registry import registry
    >>> tan = registry().rules("tan")[0]
    >>> exactly(tan, "y", "x", registry())
    True
    """
    if rule.kind != "elementwise":
        return False
    if follows(rule, result, parameter, registry):
        return True
    partial = registry.partial(rule, parameter, result)
    if sum(1 for _ in walk(partial)) > _MOST_PARTS:
        return False
    try:
        residuals = list(itertools.islice(_residuals(rule, result, parameter, partial, registry), _MOST_CASES + 1))
        return 0 < len(residuals) <= _MOST_CASES and all(map(_vanishes, residuals))
    except (_UnclearError, ArithmeticError, AttributeError, NotImplementedError, RecursionError, TypeError, ValueError):
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
            reading = _Reading(sides, registry)
            if result in rule.primal:
                value = reading.read(rule.primal[result], names)
            else:
                value = _function(rule.name)(*(names[each.name] for each in rule.operands))
            sign = names[parameter] / symbols[parameter]
            claimed = reading.read(partial, {**names, result: value})
            conditions[:] = [each for each in reading.met if each not in conditions] + conditions
            yield value.diff(symbols[parameter]) * sign - claimed


def _signs(domain: Domain) -> tuple[int, ...]:
    if domain.kind in ("integer", "boolean"):
        raise _UnclearError
    return (1,) if domain.low >= 0 else (-1,) if domain.high <= 0 else (1, -1)


def _sides(conditions: list[_Condition]) -> Iterator[dict[_Condition, bool]]:
    """Every way in which conditions may turn out; which ones there are, the first reading finds."""
    yield {}
    first = list(conditions)
    if len(first) > 4:
        raise _UnclearError
    for values in itertools.product((True, False), repeat=len(first)):
        if not all(values):
            yield dict(zip(first, values, strict=True))


class _Reading:
    """Expressions in sympy, with conditions as ``sides`` says, or else true."""

    def __init__(self, sides: Mapping[_Condition, bool], registry: Registered) -> None:
        self.sides = sides
        self.registry = registry
        self.met: list[_Condition] = []

    def read(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        import sympy

        if isinstance(expression, Literal):
            return _number(sympy, expression.value)
        if isinstance(expression, Name):
            return names[expression.id]
        if not isinstance(expression, Call) or expression.keywords:
            raise _UnclearError
        if expression.function == "where":
            condition, *sides = expression.arguments
            # Both are read, so that the first reading meets all conditions.
            a, b = (self.read(side, names) for side in sides)
            return a if self._holds(condition, names) else b
        arguments = [self.read(argument, names) for argument in expression.arguments]
        return self._called(expression.function, arguments)

    def _called(self, name: str, arguments: list[Any]) -> Any:
        """The value of a function; of one that sympy has not, what its primal says."""
        if name in functions() or not self.registry.knows(name):
            return _function(name)(*arguments)
        rule = self.registry.rules(name)[0]
        if rule.results[0] not in rule.primal or len(rule.operands) != len(arguments) or rule.keywords:
            raise _UnclearError
        names = {each.name: value for each, value in zip(rule.operands, arguments, strict=True)}
        return self.read(rule.primal[rule.results[0]], names)

    def _holds(self, condition: Expression, names: Mapping[str, Any]) -> bool:
        if not isinstance(condition, Call) or len(condition.arguments) != 2 or condition.function not in _CONDITIONS:
            raise _UnclearError
        a, b = (self.read(argument, names) for argument in condition.arguments)
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


def _number(sympy: Any, value: object) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _UnclearError
    if abs(value) == math.pi:
        return sympy.pi if value > 0 else -sympy.pi
    return sympy.Rational(as_written(value)) if isinstance(value, float) else sympy.Integer(value)


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

    half, pi = sympy.Rational(1, 2), sympy.pi
    same = "exp log sin cos tan sinh cosh tanh sqrt sign gamma loggamma erf erfc erfi erfinv besselj bessely"
    found: dict[str, Callable[..., Any]] = {each: getattr(sympy, each) for each in same.split()}
    short = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh"}
    found |= {name: getattr(sympy, other) for name, other in {**short, "arctanh": "atanh", "arctan2": "atan2"}.items()}
    found |= {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
        "power": lambda a, b: a**b,
        "float_power": lambda a, b: a**b,
        "negative": lambda x: -x,
        "positive": lambda x: x,
        "reciprocal": lambda x: 1 / x,
        "square": lambda x: x**2,
        "hypot": lambda a, b: sympy.sqrt(a**2 + b**2),
        "cbrt": lambda x: sympy.sign(x) * abs(x) ** sympy.Rational(1, 3),
        "absolute": abs,
        "fabs": abs,
        "phase": lambda x, y: x / y,
        "branch": lambda p, q: p,
        "conjugate": lambda x: x,
        "copysign": lambda a, b: abs(a) * sympy.sign(b),
        "exp2": lambda x: 2**x,
        "exp10": lambda x: 10**x,
        "expm1": lambda x: sympy.exp(x) - 1,
        "exprel": lambda x: (sympy.exp(x) - 1) / x,
        "log1p": lambda x: sympy.log(1 + x),
        "log2": lambda x: sympy.log(x) / sympy.log(2),
        "log10": lambda x: sympy.log(x) / sympy.log(10),
        "logaddexp": lambda a, b: sympy.log(sympy.exp(a) + sympy.exp(b)),
        "logaddexp2": lambda a, b: sympy.log(sympy.exp(a * sympy.log(2)) + sympy.exp(b * sympy.log(2))) / sympy.log(2),
        "_logistic": lambda x: 1 / (1 + sympy.exp(-x)),
        "expit": lambda x: 1 / (1 + sympy.exp(-x)),
        "log_expit": lambda x: -sympy.log(1 + sympy.exp(-x)),
        "logit": lambda x: sympy.log(x / (1 - x)),
        "sinc": lambda x: sympy.sin(pi * x) / (pi * x),
        "cosm1": lambda x: sympy.cos(x) - 1,
        "psi": sympy.digamma,
        "gammaln": lambda x: sympy.log(abs(sympy.gamma(x))),
        "rgamma": lambda x: 1 / sympy.gamma(x),
        "erfcx": lambda x: sympy.exp(x**2) * sympy.erfc(x),
        "dawsn": lambda x: sympy.sqrt(pi) / 2 * sympy.exp(-(x**2)) * sympy.erfi(x),
        "ndtr": lambda x: sympy.erfc(-x / sympy.sqrt(2)) * half,
        "xlogy": lambda x, z: x * sympy.log(z),
        "xlog1py": lambda x, z: x * sympy.log(1 + z),
        "entr": lambda x: -x * sympy.log(x),
        "rel_entr": lambda x, z: x * sympy.log(x / z),
        "kl_div": lambda x, z: x * sympy.log(x / z) - x + z,
        "pseudo_huber": lambda d, r: d**2 * (sympy.sqrt(1 + (r / d) ** 2) - 1),
    }
    found |= {name: flat(name) for name in _FLAT}
    found |= {name: lambda x: x * pi / 180 for name in ("deg2rad", "radians")}
    found |= {name: lambda x: x * 180 / pi for name in ("rad2deg", "degrees")}
    for name, plain in (("sindg", sympy.sin), ("cosdg", sympy.cos), ("tandg", sympy.tan), ("cotdg", sympy.cot)):
        found[name] = lambda x, plain=plain: plain(x * pi / 180)
    return found
