"""One rule under inspection: what a law may ask about it, and how it points at a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol
from typing import Literal as OneOf

from yota.errors import RuleError
from yota.ir.primitive import Primitive
from yota.rules.language.model import Expression, Rule
from yota.rules.language.rule_text import Source


class Registered(Protocol):
    """What those ask of a registry that it imports itself, and those that it hands itself to."""

    symbols: dict[str, Any]
    revision: int

    def knows(self, name: str) -> bool:
        """Whether there is a primitive called ``name``."""

    def is_user(self, name: str) -> bool:
        """Whether it came from outside yota."""

    def names(self) -> tuple[str, ...]:
        """Names of all primitives."""

    def rules(self, name: str) -> tuple[Rule, ...]:
        """Its rules."""

    def primitive(self, name: str) -> Primitive:
        """The primitive itself."""

    def rule(self, name: str, ndims: Sequence[int]) -> Rule:
        """The rule that fits operands with these numbers of axes."""

    def partial(self, rule: Rule, parameter: str, result: str | None = None) -> Expression:
        """A partial, as written or as derived."""


class Side(NamedTuple):
    """A right-hand side: the text of its left-hand side, what it is, and the expression."""

    left: str
    role: OneOf["primal", "partial", "adjoint", "kink", "equation"]
    expression: Expression


@dataclass(frozen=True, slots=True)
class Inspection:
    """A rule with its surroundings.

    registry: a registry that holds them already.
    before: the registry without this text, if the text comes from outside yota.
    only: the one right-hand side to look at, or None for all of them.
    """

    source: Source
    rule: Rule
    peers: tuple[Rule, ...]
    registry: Registered
    before: Registered | None
    only: Expression | None = None

    def sides(self) -> Iterator[Side]:
        """All right-hand sides, and the conditions; or the one that is looked at."""
        return (side for side in self._sides() if self.considers(side.expression))

    def considers(self, expression: Expression) -> bool:
        """Whether a right-hand side is looked at."""
        return self.only is None or self.only is expression

    def apart(self) -> tuple[Inspection, ...]:
        """The same rule, one right-hand side at a time."""
        return tuple(replace(self, only=side.expression) for side in self._sides()) or (self,)

    def _sides(self) -> Iterator[Side]:
        rule = self.rule
        for name, expression in rule.primal.items():
            yield Side(name, "primal", expression)
        for name, expression in rule.shared.items():
            if rule.primal.get(name) is not expression:
                yield Side(name, "primal", expression)
        if rule.start is not None:
            yield Side(rule.results[0], "primal", rule.start)
        if rule.equation is not None:
            yield Side("0", "equation", rule.equation)
        for (result, parameter), expression in rule.partials.items():
            yield Side(f"d[{result}, {parameter}]", "partial", expression)
        for name, expression in rule.adjoints.items():
            yield Side(f"d[{name}[{rule.loop}]]" if name in self.variadic else f"d[{name}]", "adjoint", expression)
        for expression in rule.kinks:
            yield Side("assert", "kink", expression)

    @property
    def variadic(self) -> frozenset[str]:
        """Names of variadic parameters."""
        return frozenset(parameter.name for parameter in self.rule.operands if parameter.variadic)

    def fault(self, thing: Any, what: str, *, found: str | None = None, write: str) -> RuleError:
        """The error at ``thing``; see `Source.fault`."""
        return self.source.fault(thing, what, found=found, write=write)


Law = Callable[[Inspection], None]
"""Raises `RuleError` if the rule breaks it."""
