"""Laws that compute: partials against the primal, conditions that some point meets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras import digits
from yota.rules.algebras.emitted import evaluate
from yota.rules.algebras.opaque import derive
from yota.rules.language.model import Expression, refusal
from yota.rules.language.rule_text import show
from yota.rules.laws import trials
from yota.rules.laws.cancellation import round_trip
from yota.rules.laws.inspection import Inspection, Law
from yota.rules.laws.sampling import points, results, slope, statics

_POINTS = 5
_DOUBLE = 1e-5


def satisfiable(case: Inspection) -> None:
    """Some point of the domain meets all conditions."""
    rule = case.rule
    if rule.kinks and rule.kind == "elementwise" and not list(points(rule, case.registry, 1)):
        raise case.fault(
            rule.kinks[0],
            "no point of the domain meets the conditions, so the rule can never be tested",
            found="; ".join(f"assert {show(kink)}" for kink in rule.kinks),
            write="assert x != 0    # what has to hold for a derivative to exist",
        )


def agreement(case: Inspection) -> None:
    """Each written partial is the derivative of the primal, at points of the domain."""
    rule = case.rule
    for result, parameter in rule.partials:
        if not case.considers(rule.partials[result, parameter]):
            continue
        found = disagreement(case, result, parameter)
        if found is None:
            continue
        expression = rule.partials[result, parameter]
        what = f"d[{result}, {parameter}] is not the derivative of {rule.name}"
        write = f"d[{result}, {parameter}] = {_mend(case, result, parameter)}"
        raise case.fault(expression, what, found=found, write=write)


def agreement_of_forms(case: Inspection) -> None:
    """Each shared form has the function's values, at points of the domain."""
    rule = case.rule
    for result, form in rule.shared.items():
        if rule.primal.get(result) is form or not case.considers(form):
            continue
        for point in points(rule, case.registry, _POINTS):
            names = {**statics(rule), **{key: np.float64(value) for key, value in point.items()}}
            with np.errstate(all="ignore"):
                found = evaluate(form, names, case.registry)
                exact = results(rule, case.registry, names)[result]
            if np.isfinite(exact) and not abs(found - exact) <= _DOUBLE * max(1.0, abs(exact)):
                where = ", ".join(f"{name} = {value:.6g}" for name, value in point.items())
                shown = f"{found:.10g} at {where}, where {rule.name} is {exact:.10g}"
                what = f"the shared form of {result} is not {rule.name}"
                raise case.fault(form, what, found=shown, write=f"a form of {rule.name} in locals, or leave it out")


def _mend(case: Inspection, result: str, parameter: str) -> str:
    rule = case.rule
    if case.before is not None and result not in rule.primal and case.before.knows(rule.name):
        for other in case.before.rules(rule.name):
            if (result, parameter) in other.partials:
                return show(other.partials[result, parameter])
    try:
        return show(derive(rule, result, parameter, case.registry))
    except (RuleError, KeyError):
        return "..."


def disagreement(case: Inspection, result: str, parameter: str) -> str | None:
    """A point at which a partial is wrong, with both values; None if there is none or nothing to compare with."""
    rule = case.rule
    expression = case.registry.partial(rule, parameter, result)
    if refusal(expression) is not None:
        return None
    tolerance = trials.tolerance(rule, expression)
    for point in points(rule, case.registry, _POINTS):
        try:
            claimed, exact, error = trials.residual(rule, result, parameter, point, case.registry)
            if error <= tolerance or claimed in (math.inf, -math.inf):
                continue
            found: str | None = f"{_shown(claimed)} at {{}}, where the derivative is {_shown(exact)}"
        except digits.NotPreciseError:
            found = _in_doubles(case, result, expression, point, parameter)
        except (ArithmeticError, ValueError, TypeError):
            continue
        if found is not None:
            return found.format(", ".join(f"{name} = {value:.6g}" for name, value in point.items()))
    return None


def _shown(number: Any) -> str:
    return str(digits.context().nstr(number, 10))


def _in_doubles(case: Inspection, result: str, expression: Expression, point: dict[str, Any], name: str) -> str | None:
    """The same by differences, for functions that are known in double precision only."""
    rule = case.rule
    if not set(rule.results) <= rule.primal.keys():
        return None
    given = {**statics(rule), **{key: np.float64(value) for key, value in point.items()}}

    def function(*operands: Any, **_: Any) -> Any:
        names = {**given, **dict(zip(point, operands, strict=True))}
        found = tuple(evaluate(rule.primal[each], names, case.registry) for each in rule.results)
        return found if len(found) > 1 else found[0]

    with np.errstate(all="ignore"):
        found = slope(rule, result, name, point, function)
        names = {**given, **results(rule, case.registry, given)}
        claimed = evaluate(expression, names, case.registry)
    if found is None or abs(claimed - found[0]) <= _DOUBLE * max(1.0, abs(found[0]), abs(names[result])):
        return None
    return f"{claimed:.6g} at {{}}, where the derivative is {found[0].real:.6g}"


LAWS: tuple[Law, ...] = (satisfiable, agreement, agreement_of_forms, round_trip)
"""Laws that the rules of users are held against when they are loaded, and the shipped ones in yota's tests."""
