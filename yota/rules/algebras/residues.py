"""Algebras of a finite field: where two numbers of it differ, so do the formulas.

In the algebra of dual numbers it is decided whether a partial is what the chain rule makes of the primal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from yota.rules.algebras.evaluate import ARITHMETIC, CONDITIONS, Algebra
from yota.rules.language.model import Call, Expression, Literal, Name, Rule, as_written, refusal
from yota.rules.laws.inspection import Registered
from yota.rules.laws.sampling import statics

PRIME = 2**61 - 1
"""Two polynomials of degree d that differ agree at a random place with a chance of d in so many.

J. T. Schwartz, Fast probabilistic algorithms for verification of polynomial identities, J. ACM 27 (1980).
"""
ROOTS = 720
"""Names and opaque functions stand for powers of this order, so that their usual roots are numbers too."""
_SALTS = (1, 2)
_MOST = 20_000
"""So many parts are looked at; functions that call each other may have far more."""
_NOT_ANALYTIC = frozenset({"real", "imag", "conjugate", "phase"})


class UnclearError(Exception):
    """A formula has no number in the field."""


def opaque(*parts: str | int) -> int:
    """A number that depends on ``parts`` and on nothing else, as if drawn at random; never zero."""
    digest = blake2b(repr(parts).encode(), digest_size=16).digest()
    return int.from_bytes(digest, "little") % (PRIME - 1) + 1


def inverse(value: int) -> int:
    """The reciprocal; raises UnclearError of zero."""
    if value == 0:
        raise UnclearError
    return pow(value, -1, PRIME)


def number(value: object) -> int:
    """The residue of a literal; that of pi is one of its own, since pi is no fraction.

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
    """``value`` to a power, by its ``root`` of order `ROOTS` if need be; raises UnclearError if that is unknown."""
    if not isinstance(exponent, (int, float)) or not math.isfinite(exponent):
        raise UnclearError
    order = as_written(exponent) if isinstance(exponent, float) else Fraction(exponent)
    if order.denominator == 1:
        return pow(value or inverse(0) if order < 0 else value, int(order), PRIME)
    if root is None or ROOTS % order.denominator:
        raise UnclearError
    return pow(root, int(order * ROOTS), PRIME)


@dataclass(frozen=True, slots=True)
class _Dual:
    """A value, its derivative along one operand, and the root of the value if it has one."""

    value: int
    slope: int = 0
    root: int | None = None

    def __neg__(self) -> _Dual:
        return _Dual(-self.value % PRIME, -self.slope % PRIME)

    def __add__(self, other: _Dual) -> _Dual:
        return _Dual((self.value + other.value) % PRIME, (self.slope + other.slope) % PRIME)

    def __sub__(self, other: _Dual) -> _Dual:
        return self + -other

    def __mul__(self, other: _Dual) -> _Dual:
        slope = self.slope * other.value + self.value * other.slope
        return _Dual(self.value * other.value % PRIME, slope % PRIME)

    def __truediv__(self, other: _Dual) -> _Dual:
        below = inverse(other.value)
        value = self.value * below % PRIME
        return _Dual(value, (self.slope - value * other.slope) * below % PRIME)

    def __rtruediv__(self, other: int) -> _Dual:
        return _Dual(other) / self


def follows(rule: Rule, result: str, parameter: str, registry: Registered) -> bool:
    r"""Whether the partial equals the derivative of the primal wherever both have a value.

    Both are computed in a finite field, at two places drawn at random, with functions as opaque numbers that
    depend on their arguments, and that differentiate by their own rules. A wrong yes is as likely as a wrong
    sum of digits of eighteen places, twice; a no says nothing, since what the functions have to do with each
    other (``sin(x)**2 + cos(x)**2``) is not known here.

    >>> from yota.rules.registry import registry
    >>> from yota.rules.language.syntax import parse
    >>> _, (rule,) = parse("@elementwise\ndef f(x: Real) -> y:\n    y = exp(-x * x)\n    d[y, x] = -2 * x * y")
    >>> follows(rule, "y", "x", registry())
    True
    """
    if result not in rule.primal or rule.kind != "elementwise":
        return False
    written = registry.partial(rule, parameter, result)
    try:
        return any(
            all(_agree(rule, result, parameter, written, _Duals(registry, salt, squares)) for salt in _SALTS)
            for squares in (True, False)
        )
    except (UnclearError, RecursionError):
        return False


def _agree(rule: Rule, result: str, parameter: str, written: Expression, algebra: _Duals) -> bool:
    names = {each.name: algebra.drawn(each.name, slope=int(each.name == parameter)) for each in rule.operands}
    for name, static in statics(rule).items():
        if isinstance(static.value, (int, float)):
            names[name] = algebra.literal(static.value)
    found = {each: algebra.of(expression, names) for each, expression in rule.primal.items()}
    fixed = {name: replace(each, slope=0) for name, each in {**names, **found}.items()}
    return bool(algebra.of(written, fixed).value == found[result].slope)


@dataclass(slots=True)
class _Duals(Algebra):
    """Dual numbers that are drawn with ``salt``.

    squares: whether 1 / (2 * sqrt(x)) is what roots differentiate to, or else sqrt(x) / (2 * x): the square of a root
        is not known to be x here, and rules are written with either.
    left: how many parts may still be looked at.
    """

    registry: Registered
    salt: int
    squares: bool
    left: int = field(default=_MOST)

    def drawn(self, *parts: str | int, slope: int = 0) -> _Dual:
        """A number for a name or for a function of these arguments."""
        root = opaque(self.salt, *parts)
        return _Dual(pow(root, ROOTS, PRIME), slope, root)

    def of(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        self.left -= 1
        if self.left < 0:
            raise UnclearError
        return Algebra.of(self, expression, names)

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> Any:
        if not isinstance(expression, Name) or expression.id not in names:
            raise UnclearError
        return names[expression.id]

    def literal(self, value: Any) -> _Dual:
        return _Dual(number(value))

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        """A function, by its rule where it is not known here."""
        name, count = call.function, len(call.arguments)
        if call.keywords or name in _NOT_ANALYTIC:
            raise UnclearError
        if name == "branch":
            return self.of(call.arguments[0], names)
        if name in ("power", "float_power") and count == 2:
            return self._power(self.of(call.arguments[0], names), call.arguments[1], names)
        arguments = self.arguments(call, names)
        if name == "sqrt" and count == 1:
            return self._power(arguments[0], Literal(0.5), names)
        if name == "where" and count == 3:
            # A choice is linear in both sides; what holds for any weight holds for 0 and 1.
            weight = opaque(self.salt, "where", arguments[0].value)
            return _Dual(weight) * arguments[1] + _Dual((1 - weight) % PRIME) * arguments[2]
        operator = ARITHMETIC.get(name)
        return self._function(name, arguments) if operator is None else operator(*arguments)

    def _power(self, base: _Dual, exponent: Expression, names: Mapping[str, Any]) -> _Dual:
        """A power; a whole number at the end of the exponent is a factor of its own, so that orders can be told."""
        rest, whole = _offset(exponent)
        power = self.of(rest, names)
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
        known = self._inlined(name, arguments)
        if known is not None:
            return known
        drawn = self.drawn(name, *(each.value for each in arguments))
        if name in CONDITIONS or not any(each.slope for each in arguments):
            return drawn
        rule = self._rule(name, len(arguments))
        names = {each.name: replace(value, slope=0) for each, value in zip(rule.operands, arguments, strict=True)}
        names[rule.results[0]] = drawn
        slope = 0
        for operand, argument in zip(rule.operands, arguments, strict=True):
            if not argument.slope:
                continue
            partial = rule.partials.get((rule.results[0], operand.name))
            if partial is None or refusal(partial) is not None or not operand.moves:
                raise UnclearError
            slope += self.of(partial, names).value * argument.slope
        return replace(drawn, slope=slope % PRIME)

    def _inlined(self, name: str, arguments: list[_Dual]) -> _Dual | None:
        """A function of the user's that has a primal only is what its primal says."""
        if name in CONDITIONS or not self.registry.is_user(name):
            return None
        rule = self._rule(name, len(arguments))
        if rule.partials or rule.results[0] not in rule.primal:
            return None
        names = {each.name: value for each, value in zip(rule.operands, arguments, strict=True)}
        return self.of(rule.primal[rule.results[0]], names)  # type: ignore[no-any-return]

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
