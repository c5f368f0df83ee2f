"""Law: a rule contains nothing that sympy would cancel, such as ``(x + 1) - 1``: code computes what is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.emitted import evaluate
from yota.rules.algebras.evaluate import Algebra
from yota.rules.algebras.opaque import to_sympy
from yota.rules.algebras.readback import from_sympy
from yota.rules.algebras.residues import PRIME, ROOTS, UnclearError, inverse, number, opaque, raised
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.rule_text import show, walk
from yota.rules.laws.inspection import Inspection, Registered

_ORDERS: dict[str, list[float]] = {
    **{name: [1] for name in ("negative", "positive")},
    "square": [2],
    "reciprocal": [-1],
    "multiply": [1, 1],
    "divide": [1, -1],
}
"""Exponents of the arguments of what is a product or a quotient."""


def round_trip(case: Inspection) -> None:
    """Nothing is written that sympy would cancel; it is asked where residues do not show that nothing does."""
    if case.rule.kind != "elementwise":
        return
    for side in case.sides():
        if side.role == "kink":
            continue
        for part in suspects(side.expression, case.registry):
            shorter = _cancelled(case.registry, part)
            if shorter is not None:
                raise case.fault(part, "a part of this cancels", found=show(part)[:80], write=shorter)


def _cancelled(registry: Registered, expression: Call) -> str | None:
    import sympy

    try:
        whole = to_sympy(expression, registry)
        parts = [to_sympy(argument, registry) for argument in expression.arguments]
        if expression.function in ("add", "subtract"):
            written = sum(len(sympy.Add.make_args(part)) for part in parts)
            lost = len(sympy.Add.make_args(whole)) < written
        else:
            lost = set().union(*(part.free_symbols for part in parts)) != whole.free_symbols
        return show(from_sympy(whole)) if lost else None
    except (RuleError, TypeError):
        return None


def suspects(expression: Expression, registry: Registered) -> Iterator[Call]:
    """Parts, outermost first, in which something may cancel: all in which it does, and few others.

    Terms that are the same but for a number have the same ratio at two places of a finite field; what cancels
    from a product, the product does not depend on. What has no residue is a suspect.
    """
    ids = sorted({part.id for part in walk(expression) if isinstance(part, Name)})
    marked: set[int] = set()
    _Forms(1 + len(ids), registry, marked).of(expression, {name: _name(name, ids) for name in ids})
    yield from (part for part in walk(expression) if id(part) in marked and isinstance(part, Call) and _is_read(part))


def _is_read(call: Call) -> bool:
    """Whether sympy would read it, and find names in it; a zero is written in the place of an argument left out."""
    parts = list(walk(call))
    return (
        any(isinstance(each, Name) for each in parts)
        and not any(isinstance(each, Call) and each.keywords for each in parts)
        and not any(argument == Literal(0) for argument in call.arguments)
    )


@dataclass(frozen=True, slots=True)
class _Form:
    """What sympy would make of an expression.

    values: at a place, at another, and at places that differ from the first in one name.
    terms: ratios of the terms of the sum that it is; one if it is none.
    factors: exponents of the factors of the product that it is, by their ratios.
    roots: roots of the values if it is a name or an opaque function.
    fixed: whether there are no names in it.
    """

    values: tuple[int, ...]
    terms: tuple[int, ...]
    factors: dict[int, float] = field(default_factory=dict)
    roots: tuple[int, ...] | None = None
    fixed: bool = False


def _name(name: str, ids: list[str]) -> _Form:
    moved = [opaque(name, 0), opaque(name, 1)]
    return _drawn([*moved, *(moved[each == name] for each in ids)])


def _drawn(roots: list[int]) -> _Form:
    values = tuple(pow(root, ROOTS, PRIME) for root in roots)
    ratio = _ratio(values)
    return _Form(values, (ratio,), {ratio: 1}, tuple(roots))


def _ratio(values: tuple[int, ...]) -> int:
    """The same for all multiples of an expression."""
    return values[0] * inverse(values[1]) % PRIME


@dataclass(frozen=True, slots=True)
class _Forms(Algebra):
    """Forms with ``places`` values after the first; what is unclear is None, and marked with all that it is part of."""

    places: int
    registry: Registered
    marked: set[int]

    def of(self, expression: Expression, names: Mapping[str, Any]) -> _Form | None:
        try:
            return Algebra.of(self, expression, names)  # type: ignore[no-any-return]
        except (UnclearError, RuleError, ArithmeticError, TypeError, ValueError):
            self.marked.add(id(expression))
            return None

    def literal(self, value: Any) -> _Form:
        return _Form((number(value),) * (1 + self.places), (1,), fixed=True)

    def call(self, call: Call, names: Mapping[str, Any]) -> _Form:
        given = self.arguments(call, names)
        if call.keywords:
            # Sympy reads none, nor anything around them.
            raise UnclearError
        if all(each is not None and each.fixed for each in given):
            return self.literal(self._number(call))
        orders = self._orders(call, given)
        given = given[: len(orders)] if orders else given
        if None in given:
            raise UnclearError
        if orders:
            return _product(given, orders, -1 if call.function == "negative" else 1)
        if call.function in ("add", "subtract") and len(given) == 2:
            return _sum(given[0], given[1], 1 if call.function == "add" else -1)
        return _drawn([opaque(call.function, *values) for values in zip(*(each.values for each in given), strict=True)])

    def _number(self, expression: Expression) -> Any:
        if isinstance(expression, Literal):
            return expression.value
        with np.errstate(all="ignore"):
            return evaluate(expression, {}, self.registry)

    def _orders(self, call: Call, given: list[_Form | None]) -> list[float]:
        """Exponents of the arguments of a product, quotient or power; none if ``call`` is something else."""
        if call.function == "power" and len(given) == 2 and given[1] is not None and given[1].fixed:
            return [self._number(call.arguments[1])]
        return _ORDERS.get(call.function, [])


def _product(parts: list[_Form], orders: list[float], sign: int) -> _Form:
    values = [sign] * len(parts[0].values)
    factors: dict[int, float] = {}
    met = False
    for part, order in zip(parts, orders, strict=True):
        values = [value * power % PRIME for value, power in zip(values, _raised(part, order), strict=True)]
        for ratio, exponent in part.factors.items():
            met = met or ratio in factors
            factors[ratio] = factors.get(ratio, 0) + exponent * order
    is_sum = any(len(part.terms) > 1 for part in parts)
    if 0 in factors.values() or (met and (is_sum or list(factors.values()) == [1])):
        # A sum of which one is left over falls apart into terms again.
        raise UnclearError
    for place, value in enumerate(values):
        if place > 1 and value == values[0] and any(each.values[place] != each.values[0] for each in parts):
            raise UnclearError
    rest = [part for part in parts if part.factors]
    whole = len(rest) == 1 and orders[parts.index(rest[0])] == 1
    return _Form(tuple(values), rest[0].terms if whole else (_ratio(tuple(values)),), factors)


def _sum(a: _Form, b: _Form, sign: int) -> _Form:
    values = tuple((one + sign * other) % PRIME for one, other in zip(a.values, b.values, strict=True))
    terms = a.terms + b.terms
    if len(set(terms)) < len(terms) or _ratio(a.values) == _ratio(b.values):
        raise UnclearError
    return _Form(values, terms, {_ratio(values): 1})


def _raised(form: _Form, order: float) -> tuple[int, ...]:
    if order == 1:
        return form.values
    if order == -1:
        return tuple(inverse(value) for value in form.values)
    roots = form.roots or (None,) * len(form.values)
    return tuple(raised(root, value, order) for root, value in zip(roots, form.values, strict=True))
