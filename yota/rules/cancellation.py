"""Law: nothing is written that sympy would cancel, such as ``(x + 1) - 1``: what is written is what is computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.body import evaluate
from yota.rules.display import show, walk
from yota.rules.inspection import Inspection, Registered
from yota.rules.model import Call, Expression, Literal, Name
from yota.rules.readback import from_sympy
from yota.rules.residues import PRIME, ROOTS, UnclearError, inverse, number, opaque, raised
from yota.rules.symbols import to_sympy

__all__ = ["round_trip", "suspects"]


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
    names = sorted({part.id for part in walk(expression) if isinstance(part, Name)})
    marked: set[int] = set()
    _Reading(names, registry, marked).read(expression)
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

    Parameters
    ----------
    values
        At a place, at another, and at places that differ from the first in one name.
    terms
        Ratios of the terms of the sum that it is; one if it is none.
    factors
        Exponents of the factors of the product that it is, by their ratios.
    roots
        Roots of the values if it is a name or an opaque function.
    fixed
        Whether there are no names in it.
    """

    values: tuple[int, ...]
    terms: tuple[int, ...]
    factors: dict[int, float] = field(default_factory=dict)
    roots: tuple[int, ...] | None = None
    fixed: bool = False

    @property
    def is_sum(self) -> bool:
        return len(self.terms) > 1


@dataclass(frozen=True, slots=True)
class _Reading:
    names: list[str]
    registry: Registered
    marked: set[int]

    def read(self, expression: Expression) -> _Form | None:
        """The form of ``expression``; None if it is unclear, and then it is marked, with all that it is part of."""
        try:
            if isinstance(expression, Name):
                moved = [opaque(expression.id, 0), opaque(expression.id, 1)]
                return _drawn([*moved, *(moved[each == expression.id] for each in self.names)])
            if isinstance(expression, Literal):
                return self._constant(number(expression.value))
            if not isinstance(expression, Call):
                return None
            return self._called(expression)
        except (UnclearError, RuleError, ArithmeticError, TypeError, ValueError):
            self.marked.add(id(expression))
            return None

    def _constant(self, value: int) -> _Form:
        return _Form((value,) * (2 + len(self.names)), (1,), fixed=True)

    def _called(self, call: Call) -> _Form:
        given = [self.read(argument) for argument in call.arguments]
        if call.keywords:
            # Sympy reads none, nor anything around them.
            raise UnclearError
        if all(each is not None and each.fixed for each in given):
            return self._constant(number(self._number(call)))
        if call.function in ("add", "subtract") and len(given) == 2:
            return self._sum(call, *map(_clear, given))
        product = self._product(call, given)
        if product is not None:
            return product
        clear = list(map(_clear, given))
        return _drawn(
            [opaque(call.function, *(each.values[place] for each in clear)) for place in range(2 + len(self.names))]
        )

    def _number(self, expression: Expression) -> Any:
        with np.errstate(all="ignore"):
            return evaluate(expression, {}, self.registry)

    def _sum(self, call: Call, a: _Form, b: _Form) -> _Form:
        sign = 1 if call.function == "add" else -1
        values = tuple((one + sign * other) % PRIME for one, other in zip(a.values, b.values, strict=True))
        terms = a.terms + b.terms
        if len(set(terms)) < len(terms) or _ratio(a.values) == _ratio(b.values):
            raise UnclearError
        return _Form(values, terms, {_ratio(values): 1})

    def _product(self, call: Call, given: list[_Form | None]) -> _Form | None:
        """A product, quotient or power; None if ``call`` is something else."""
        name, count = call.function, len(given)
        if name in ("negative", "positive") and count == 1:
            orders: list[float] = [1]
        elif name in ("square", "reciprocal") and count == 1:
            orders = [2 if name == "square" else -1]
        elif name in ("multiply", "divide") and count == 2:
            orders = [1, 1 if name == "multiply" else -1]
        elif name == "power" and count == 2 and given[1] is not None and given[1].fixed:
            exponent = call.arguments[1]
            orders = [exponent.value if isinstance(exponent, Literal) else self._number(exponent)]
            given = given[:1]
        else:
            return None
        form = _multiplied(list(map(_clear, given)), orders, -1 if name == "negative" else 1)
        for place, _ in enumerate(self.names, 2):
            if form.values[place] == form.values[0] and any(
                each is not None and each.values[place] != each.values[0] for each in given
            ):
                raise UnclearError
        return form


def _clear(form: _Form | None) -> _Form:
    if form is None:
        raise UnclearError
    return form


def _ratio(values: tuple[int, ...]) -> int:
    """The same for all multiples of an expression."""
    return values[0] * inverse(values[1]) % PRIME


def _drawn(roots: list[int]) -> _Form:
    values = tuple(pow(root, ROOTS, PRIME) for root in roots)
    ratio = _ratio(values)
    return _Form(values, (ratio,), {ratio: 1}, tuple(roots))


def _raised(form: _Form, order: float) -> list[int]:
    if order == -1:
        return [inverse(value) for value in form.values]
    roots = form.roots or (None,) * len(form.values)
    return [raised(root, value, order) for root, value in zip(roots, form.values, strict=True)]


def _multiplied(parts: list[_Form], orders: list[float], sign: int) -> _Form:
    values = [sign] * len(parts[0].values)
    factors: dict[int, float] = {}
    met = False
    for part, order in zip(parts, orders, strict=True):
        powers = part.values if order == 1 else _raised(part, order)
        values = [value * power % PRIME for value, power in zip(values, powers, strict=True)]
        for ratio, exponent in part.factors.items():
            met = met or ratio in factors
            factors[ratio] = factors.get(ratio, 0) + exponent * order
    if 0 in factors.values() or (met and (any(part.is_sum for part in parts) or list(factors.values()) == [1])):
        # A sum of which one is left over falls apart into terms again.
        raise UnclearError
    rest = [part for part in parts if part.factors]
    whole = len(rest) == 1 and orders[parts.index(rest[0])] == 1
    terms = rest[0].terms if whole else (_ratio(tuple(values)),)
    return _Form(tuple(values), terms, factors)
