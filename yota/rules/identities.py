"""Whether a partial is, as a formula, what the chain rule makes of the primal; decided in a finite field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from yota.rules.inspection import Registered
from yota.rules.model import Call, Expression, Literal, Name, Rule, refusal
from yota.rules.residues import PRIME, ROOTS, UnclearError, inverse, number, opaque, raised
from yota.rules.sampling import statics

__all__ = ["follows"]

_SALTS = (1, 2)
_MOST = 20_000
"""So many parts are looked at; functions that call each other may have far more."""
_NOT_ANALYTIC = frozenset({"real", "imag", "conjugate", "phase"})
_FLAT = frozenset(
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not".split()
)


class _Dual(NamedTuple):
    """A value, its derivative along one operand, and the root of the value if it has one."""

    value: int
    slope: int = 0
    root: int | None = None


def follows(rule: Rule, result: str, parameter: str, registry: Registered) -> bool:
    r"""Whether the partial equals the derivative of the primal wherever both have a value.

    Both are computed in a finite field, at two places drawn at random, with functions as opaque numbers that
    depend on their arguments, and that differentiate by their own rules. A wrong yes is as likely as a wrong
    sum of digits of eighteen places, twice; a no says nothing, since what the functions have to do with each
    other (``sin(x)**2 + cos(x)**2``) is not known here.

    Examples
    --------
    >>> from yota.rules.registry import registry
    >>> from yota.rules.syntax import parse
    >>> _, (rule,) = parse("@elementwise\ndef f(x: Real) -> y:\n    y = exp(-x * x)\n    d[y, x] = -2 * x * y")
    >>> follows(rule, "y", "x", registry())
    True
    """
    if result not in rule.primal or rule.kind != "elementwise":
        return False
    written = registry.partial(rule, parameter, result)
    try:
        return any(
            all(_agree(rule, result, parameter, written, _Field(registry, salt, squares)) for salt in _SALTS)
            for squares in (True, False)
        )
    except (UnclearError, RecursionError):
        return False


def _agree(rule: Rule, result: str, parameter: str, written: Expression, field: _Field) -> bool:
    names = {each.name: field.drawn(each.name, moved=each.name == parameter) for each in rule.operands}
    for name, static in statics(rule).items():
        if isinstance(static.value, (int, float)):
            names[name] = _Dual(number(static.value))
    found = {each: field.dual(expression, names) for each, expression in rule.primal.items()}
    fixed = {name: each._replace(slope=0) for name, each in {**names, **found}.items()}
    return field.dual(written, fixed).value == found[result].slope


@dataclass(slots=True)
class _Field:
    """Numbers that are drawn with ``salt``.

    Parameters
    ----------
    squares
        Whether 1 / (2 * sqrt(x)) is what roots differentiate to, or else sqrt(x) / (2 * x): the square of a root
        is not known to be x here, and rules are written with either.
    left
        How many parts may still be looked at.
    """

    registry: Registered
    salt: int
    squares: bool
    left: int = field(default=_MOST)

    def drawn(self, *parts: str | int, moved: bool = False, slope: int = 0) -> _Dual:
        """A number for a name or for a function of these arguments."""
        root = opaque(self.salt, *parts)
        value = pow(root, ROOTS, PRIME)
        return _Dual(value, 1 if moved else slope, root)

    def dual(self, expression: Expression, names: Mapping[str, _Dual]) -> _Dual:
        """Value and derivative of ``expression``."""
        self.left -= 1
        if self.left < 0:
            raise UnclearError
        if isinstance(expression, Name):
            if expression.id not in names:
                raise UnclearError
            return names[expression.id]
        if isinstance(expression, Literal):
            return _Dual(number(expression.value))
        if not isinstance(expression, Call) or expression.keywords or expression.function in _NOT_ANALYTIC:
            raise UnclearError
        if expression.function == "branch":
            return self.dual(expression.arguments[0], names)
        if expression.function in ("power", "float_power") and len(expression.arguments) == 2:
            base, exponent = expression.arguments
            return self._power(self.dual(base, names), exponent, names)
        arguments = [self.dual(argument, names) for argument in expression.arguments]
        if expression.function == "sqrt" and len(arguments) == 1:
            return self._power(arguments[0], Literal(0.5), names)
        if expression.function == "where" and len(arguments) == 3:
            return self._chosen(*arguments)
        plain = _arithmetic(expression.function, arguments)
        return self._function(expression.function, arguments) if plain is None else plain

    def _chosen(self, condition: _Dual, a: _Dual, b: _Dual) -> _Dual:
        """A choice is linear in both sides; what holds for any weight holds for 0 and 1."""
        weight = opaque(self.salt, "where", condition.value)
        return _Dual(
            (weight * a.value + (1 - weight) * b.value) % PRIME, (weight * a.slope + (1 - weight) * b.slope) % PRIME
        )

    def _power(self, base: _Dual, exponent: Expression, names: Mapping[str, _Dual]) -> _Dual:
        """A power; a whole number at the end of the exponent is a factor of its own, so that orders can be told."""
        rest, whole = _offset(exponent)
        power = self.dual(rest, names)
        value = raised(None, base.value, whole)
        below = base.value
        if isinstance(rest, Literal) and base.root is not None:
            value *= raised(base.root, base.value, rest.value)
        elif rest != Literal(0):
            root = opaque(self.salt, "power", base.value, power.value)
            value *= root
            if self.squares and rest == Literal(0.5):
                below = root * root
        slope = 0
        if base.slope:
            slope = (power.value * inverse(below) + whole * inverse(base.value)) * base.slope
        if power.slope:
            slope += self.drawn("log", base.value).value * power.slope
        return _Dual(value % PRIME, value * slope % PRIME)

    def _function(self, name: str, arguments: list[_Dual]) -> _Dual:
        drawn = self.drawn(name, *(each.value for each in arguments))
        if name in _FLAT or not any(each.slope for each in arguments):
            return self._inlined(name, arguments) or drawn
        known = self._inlined(name, arguments)
        if known is not None:
            return known
        rule = self._rule(name, len(arguments))
        names = {each.name: value._replace(slope=0) for each, value in zip(rule.operands, arguments, strict=True)}
        names[rule.results[0]] = drawn
        slope = 0
        for operand, argument in zip(rule.operands, arguments, strict=True):
            if not argument.slope:
                continue
            partial = rule.partials.get((rule.results[0], operand.name))
            kind = operand.domain.kind if operand.domain is not None else "integer"
            if partial is None or refusal(partial) is not None or kind in ("integer", "boolean"):
                raise UnclearError
            slope += self.dual(partial, names).value * argument.slope
        return drawn._replace(slope=slope % PRIME)

    def _inlined(self, name: str, arguments: list[_Dual]) -> _Dual | None:
        """A function of the user's that has a primal only is what its primal says."""
        if name in _FLAT or not self.registry.is_user(name):
            return None
        rule = self._rule(name, len(arguments))
        if rule.partials or rule.results[0] not in rule.primal:
            return None
        return self.dual(
            rule.primal[rule.results[0]],
            {each.name: value for each, value in zip(rule.operands, arguments, strict=True)},
        )

    def _rule(self, name: str, count: int) -> Rule:
        """The one rule of an elementwise function; one of the user's has to have a primal, against which it is held."""
        if not self.registry.knows(name):
            raise UnclearError
        rules = self.registry.rules(name)
        rule = rules[0]
        held = rule.results[0] in rule.primal or not self.registry.is_user(name)
        plain = rule.kind == "elementwise" and len(rules) == len(rule.results) == 1 and not rule.keywords
        if not plain or len(rule.operands) != count or not held:
            raise UnclearError
        return rule


def _offset(exponent: Expression) -> tuple[Expression, int]:
    """An exponent without the whole number that it is more than something, and that number."""
    if isinstance(exponent, Literal) and isinstance(exponent.value, (int, float)) and math.isfinite(exponent.value):
        whole = math.floor(exponent.value)
        return Literal(exponent.value - whole), whole
    if isinstance(exponent, Call) and exponent.function in ("add", "subtract") and len(exponent.arguments) == 2:
        rest, last = exponent.arguments
        if isinstance(last, Literal) and isinstance(last.value, int):
            return rest, last.value if exponent.function == "add" else -last.value
    return exponent, 0


def _arithmetic(name: str, given: list[_Dual]) -> _Dual | None:
    """Sums, products and whole powers; None of any other function."""
    a, *rest = given
    if not rest:
        if name == "negative":
            return _Dual(-a.value % PRIME, -a.slope % PRIME)
        if name == "positive":
            return a
        if name == "square":
            return _Dual(a.value * a.value % PRIME, 2 * a.value * a.slope % PRIME)
        if name == "reciprocal":
            below = inverse(a.value)
            return _Dual(below, -a.slope * below * below % PRIME)
        return None
    b = rest[0]
    if len(rest) > 1:
        return None
    if name in ("add", "subtract"):
        sign = 1 if name == "add" else -1
        return _Dual((a.value + sign * b.value) % PRIME, (a.slope + sign * b.slope) % PRIME)
    if name == "multiply":
        return _Dual(a.value * b.value % PRIME, (a.slope * b.value + a.value * b.slope) % PRIME)
    if name == "divide":
        below = inverse(b.value)
        value = a.value * below % PRIME
        return _Dual(value, (a.slope - value * b.slope) * below % PRIME)
    return None
