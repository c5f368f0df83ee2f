"""Laws that compute: partials against the primal, conditions that some point meets."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras import digits
from yota.rules.algebras.emitted import evaluate
from yota.rules.algebras.opaque import derive
from yota.rules.algebras.residues import follows
from yota.rules.language.display import show
from yota.rules.language.model import Expression, Rule, refusal
from yota.rules.laws.cancellation import round_trip
from yota.rules.laws.inspection import Inspection, Law
from yota.rules.laws.sampling import points, results, statics
from yota.rules.laws.vocabulary import callees

_POINTS = 5
_PRECISE = 1e-20
_CUT_OFF = 1e-13
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
    if refusal(expression) is not None or follows(rule, result, parameter, case.registry):
        return None
    for point in points(rule, case.registry, _POINTS):
        try:
            found = _at_50_digits(case, result, expression, point, parameter)
        except digits.NotPreciseError:
            found = _in_doubles(case, result, expression, point, parameter)
        except (ArithmeticError, ValueError, TypeError):
            continue
        if found is not None:
            where = ", ".join(f"{name} = {value:.6g}" for name, value in point.items())
            return f"{found[0]} at {where}, where the derivative is {found[1]}"
    return None


def _at_50_digits(
    case: Inspection, result: str, expression: Expression, point: dict[str, Any], name: str
) -> tuple[str, str] | None:
    rule = case.rule
    with digits.LOCK:
        mp = digits.context()
        exact, names = digits.at(rule, result, name, point, case.registry)
        claimed = digits.value(expression, names, case.registry)
        # Of a real function only the real part counts, as in the partial of the imaginary part.
        claimed = claimed if mp.im(exact) else mp.re(claimed)
        if abs(claimed - exact) <= _tolerance(rule, expression) * max(abs(exact), abs(claimed), mp.mpf(10) ** -20):
            return None
        return mp.nstr(claimed, 10), mp.nstr(exact, 10)


def _tolerance(rule: Rule, expression: Expression) -> float:
    """Yota's own functions, with `_` in front, may be series that are cut off where doubles need no more."""
    own = rule.name.startswith("_") or any(name.startswith("_") for name in callees(expression))
    return _CUT_OFF if own else _PRECISE


def _in_doubles(
    case: Inspection, result: str, expression: Expression, point: dict[str, Any], name: str
) -> tuple[str, str] | None:
    """The same by a central difference, for functions that are known in double precision only."""
    rule = case.rule
    if not set(rule.results) <= rule.primal.keys():
        return None
    step = 1e-5 * max(1.0, abs(point[name]))

    def along(shift: float) -> Any:
        names = {**statics(rule), **{key: np.float64(value) for key, value in point.items()}}
        names[name] = np.float64(point[name] + shift)
        return evaluate(rule.primal[result], names, case.registry)

    with np.errstate(all="ignore"):
        names = {**statics(rule), **{key: np.float64(value) for key, value in point.items()}}
        names |= {each: evaluate(rule.primal[each], names, case.registry) for each in rule.results}
        claimed = evaluate(expression, names, case.registry)
        exact = (along(step) - along(-step)) / (2 * step)
        off = abs(claimed - exact) > _DOUBLE * max(1.0, abs(exact), abs(names[result]))
    return (f"{claimed:.6g}", f"{exact:.6g}") if off and np.isfinite(exact) else None


LAWS: tuple[Law, ...] = (satisfiable, agreement, agreement_of_forms, round_trip)
"""Laws that the rules of users are held against when they are loaded, and the shipped ones in yota's tests."""
