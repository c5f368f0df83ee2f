"""Laws of what a rule computes: an adjoint is linear in d[y], and the numbers in a rule can be computed at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.ir.catalog import primitive as built_in
from yota.rules.algebras.emitted import depends, mentions_adjoint
from yota.rules.algebras.evaluate import Algebra
from yota.rules.language.model import Call, Expression, Literal, Rule, Spread, is_zero, refusal
from yota.rules.language.rule_text import show
from yota.rules.language.statics import STATIC_FUNCTIONS, arithmetic, bind
from yota.rules.laws.inspection import Inspection, Registered
from yota.rules.macros import MACROS

_EXPONENT = 1024

_MULTILINEAR = frozenset({"einsum"})
_ADDITIVE = frozenset({"concatenate", "stack", "scatter"})


def linearity(case: Inspection) -> None:
    """Each adjoint is linear in d[y], or in those of all results together, or exactly zero."""
    adjoints = [f"d[{result}]" for result in case.rule.results]
    for side in case.sides():
        if side.role != "adjoint" or is_zero(side.expression) or refusal(side.expression) is not None:
            continue
        wrong = _first_nonlinear(case.registry, side.expression)
        if wrong is not None:
            what = f"{side.left} is not linear in {' and '.join(adjoints)} because of this"
            raise case.fault(wrong, what, write=_cure(case.registry, side.left, adjoints[0], wrong))
        if not mentions_adjoint(side.expression):
            what = f"{side.left} does not depend on {' or '.join(adjoints)}"
            write = f"{side.left} = {adjoints[0]} * ({show(side.expression)[:40]})"
            raise case.fault(side.expression, what, write=write)


def _cure(registry: Registered, left: str, adjoint: str, wrong: Expression) -> str:
    """What to write in the place of a part that is not linear."""
    usual = f"{left} = {adjoint} * ..., sums of such, or 0"
    rules = registry.rules(wrong.function) if isinstance(wrong, Call) and registry.knows(wrong.function) else ()
    if not rules or rules[0].target is None or not registry.is_user(rules[0].name):
        return usual
    return f'{usual}; if {rules[0].name} is linear in its first operand:\n@linear("{rules[0].target}")'


def _first_nonlinear(registry: Registered, expression: Expression) -> Expression | None:
    """The innermost part that depends on d[y] and is not linear in it."""
    if not isinstance(expression, Call) or expression.function in STATIC_FUNCTIONS:
        return None
    for argument in expression.inside:
        wrong = _first_nonlinear(registry, argument)
        if wrong is not None:
            return wrong
    if not mentions_adjoint(expression) or _is_linear_call(registry, expression):
        return None
    return expression


def _is_linear_call(registry: Registered, call: Call) -> bool:
    if call.function == "tuple":
        return False
    if call.function in MACROS:
        macro = MACROS[call.function]
        names = [name for name in macro.function.__annotations__ if name != "return"]
        given: list[tuple[str, Expression]] = list(zip(names, call.arguments, strict=False))
        extra = [("*", argument) for argument in call.arguments[len(names) :]]
        return all(
            name in macro.linear for name, argument in [*given, *extra, *call.keywords] if mentions_adjoint(argument)
        )
    dependent = [argument for argument in call.arguments if mentions_adjoint(argument)]
    if any(mentions_adjoint(argument) for _, argument in call.keywords):
        return False
    if call.function in _MULTILINEAR:
        return len(dependent) == 1
    if call.function in _ADDITIVE:
        return all(mentions_adjoint(each) or is_zero(each) or isinstance(each, Spread) for each in call.arguments)
    return any(_rule_is_linear(rule, call) for rule in registry.rules(call.function))


def _rule_is_linear(rule: Rule, call: Call) -> bool:
    """Whether the function is linear in those operands that depend on d[y], jointly.

    It is if its derivative by each of them mentions none of them and not the result, and if every other operand
    is a factor (its derivative mentions one of them) or an added zero.
    """
    try:
        operands, _ = bind(rule, list(call.arguments), dict(call.keywords), Literal)
    except RuleError:
        return False
    given: dict[str, Any] = {}
    names = [parameter.name for parameter in rule.operands]
    for number, operand in enumerate(operands):
        given.setdefault(names[min(number, len(names) - 1)], []).append(operand)
    dependent = {name for name, values in given.items() if any(map(mentions_adjoint, values))}
    if dependent == {rule.linear}:
        return True
    moving = dependent | set(rule.results)
    for parameter in rule.operands:
        derivative = rule.partials.get((rule.results[0], parameter.name)) or rule.adjoints.get(parameter.name)
        if parameter.name in dependent:
            if derivative is None or is_zero(derivative) or refusal(derivative) or _mentions(derivative, moving):
                return False
        elif derivative is not None and not _mentions(derivative, moving):
            added = given.get(parameter.name, [])
            if not all(map(is_zero, added)):
                return False
    return True


def _mentions(expression: Expression, names: set[str]) -> bool:
    """Whether a value in ``expression`` depends on one of ``names``."""
    return depends(expression, lambda leaf: getattr(leaf, "id", None) in names or getattr(leaf, "name", None) in names)


def bounds(case: Inspection) -> None:
    """Numbers can be computed: no overflow, no division by zero, no exponent beyond 1024."""
    for side in case.sides():
        _Numbers(case).of(side.expression, {})


class _Numbers(Algebra):
    """The algebra of numbers that are known; all other values are None."""

    def __init__(self, case: Inspection) -> None:
        self.case = case

    def literal(self, value: Any) -> Any:
        return value

    def leaf(self, expression: Expression, names: Mapping[str, Any]) -> None:
        return None

    def call(self, call: Call, names: Mapping[str, Any]) -> Any:
        values = self.arguments(call, names)
        for _, argument in call.keywords:
            self.of(argument, names)
        if call.function == "power" and len(values) == 2:
            exponent = values[1]
            if isinstance(exponent, (int, float)) and abs(exponent) > _EXPONENT:
                what = f"the exponent is larger than {_EXPONENT}"
                raise self.case.fault(call, what, write="exp(p * log(x)), if that is meant")
        if call.keywords or not values or not all(isinstance(value, (int, float, complex)) for value in values):
            return None
        try:
            with np.errstate(all="ignore"):
                found = arithmetic(call.function, tuple(values))
                if found is NotImplemented:
                    found = built_in(call.function).function(*values).item()
            finite = all(math.isfinite(abs(value)) for value in values)
            if isinstance(found, (int, float, complex)) and not math.isfinite(abs(found)) and finite:
                raise OverflowError("the result is not finite")
        except (ArithmeticError, ValueError) as fault:
            raise self.case.fault(call, f"this number cannot be computed: {fault}", write="oo, or a number") from None
        except (KeyError, TypeError, AttributeError):
            return None
        return found
