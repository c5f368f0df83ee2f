"""Points of a rule's domain, away from its kinks, and derivatives of functions by differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.emitted import Static, evaluate
from yota.rules.language.model import Domain, Literal, Name, Rule
from yota.rules.language.rule_text import walk
from yota.rules.laws.inspection import Registered

_INTEGERS = 100
"""A range of integers is sampled so far from its lower end: orders and degrees beyond that take long to compute."""
_TRIES = 40
_GOLDEN = (math.sqrt(5) - 1) / 2


def sample(domain: Domain, number: int, stream: int = 0) -> Any:
    """Element ``number`` of a sequence that fills ``domain``; streams differ from each other.

    >>> 0 < sample(Domain("real", 0.0, 1.0), 3) < 1
    True
    """
    fraction = (0.37 + 0.271 * stream + (number + 1) * _GOLDEN * (1 + 0.1 * stream)) % 1.0
    if domain.kind == "boolean":
        return fraction < 0.5
    if domain.kind == "integer":
        low = domain.low if math.isfinite(domain.low) else -6
        high = min(domain.high, low + _INTEGERS) if math.isfinite(domain.high) else low + 12
        return math.ceil(low) + int(fraction * (math.floor(high) - math.ceil(low) + 1))
    if math.isfinite(domain.low) and math.isfinite(domain.high):
        return domain.low + (domain.high - domain.low) * fraction
    if math.isfinite(domain.low):
        return domain.low + math.exp(6 * fraction - 3)
    if math.isfinite(domain.high):
        return domain.high - math.exp(6 * fraction - 3)
    return math.tan(2.6 * (fraction - 0.5))


def defaults(rule: Rule) -> dict[str, Any]:
    """The rule's static keywords at their defaults."""
    return {each.name: each.default.value if isinstance(each.default, Literal) else None for each in rule.keywords}


def statics(rule: Rule) -> dict[str, Any]:
    """The same as names of an expression."""
    return {name: Static(value) for name, value in defaults(rule).items()}


def points(rule: Rule, registry: Registered, count: int) -> Iterator[dict[str, Any]]:
    """Up to ``count`` choices of the operands of an elementwise rule at which it has a derivative."""
    found = 0
    for number in range(_TRIES):
        point = {
            parameter.name: sample(parameter.domain, number, stream)
            for stream, parameter in enumerate(rule.operands)
            if parameter.domain is not None
        }
        if smooth(rule, registry, point):
            yield point
            found += 1
            if found == count:
                return


def smooth(rule: Rule, registry: Registered, point: dict[str, Any]) -> bool:
    """Whether ``point`` meets the rule's conditions, as far as they can be computed."""
    if not rule.kinks:
        return True
    names: dict[str, Any] = {**statics(rule), **{name: _array(value) for name, value in point.items()}}
    with np.errstate(all="ignore"):
        try:
            if any(isinstance(part, Name) and part.id in rule.results for kink in rule.kinks for part in walk(kink)):
                names |= results(rule, registry, names)
            return all(bool(evaluate(kink, names, registry)) for kink in rule.kinks)
        except RuleError:
            return True


def _array(value: Any) -> Any:
    return np.float64(value) if type(value) is float else value


def results(rule: Rule, registry: Registered, names: dict[str, Any]) -> dict[str, Any]:
    """Values of the results at a point."""
    if rule.primal.keys() >= set(rule.results):
        return {result: evaluate(rule.primal[result], names, registry) for result in rule.results}
    if not (rule.target or "").startswith(("numpy.", "scipy.")):
        raise RuleError("a function of the user's is not called while its rule is loaded")
    operands = [names[parameter.name] for parameter in rule.operands]
    keywords = {parameter.name: names[parameter.name].value for parameter in rule.keywords}
    found = registry.primitive(rule.name).function(*operands, **keywords)
    return dict(zip(rule.results, found if len(rule.results) > 1 else (found,), strict=True))


_STEPS = (4e-3, 2e-3, 1e-3)
"""Parts of the distance to the end of the domain, or to 0."""
_AGREEMENT = 1e-7
_ROUNDING = 2e-13
"""What the rounding of the function does to a difference with the shortest step."""
_WEIGHTS = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


_FIRST = 1 / 16
_MOST = 30
_TINY = tuple(2.0**-power for power in range(24, 30))


def noise(function: Callable[[float], float]) -> float:
    """How far apart rounding puts values of ``function`` near 0; a jump at 0 counts too.

    Over steps that are so short, a function is a straight line: half of a difference less the difference of half the
    step is what rounding made.
    """
    apart = [function(step) - function(-step) for step in _TINY]
    found = [abs(wide - 2 * narrow) for wide, narrow in itertools.pairwise(apart)]
    return max(float(np.median(found)), np.finfo(float).eps * abs(function(0.0)))


def slope_along(function: Callable[[float], float], rounding: float, rtol: float, atol: float) -> tuple[float, float]:
    """The derivative of ``function`` at 0, and an estimate of its error; the error is infinite where nothing is known.

    Central differences with ever shorter steps are extrapolated to the step 0. What the error of an extrapolation is,
    its distance from the two that it was made of tells; but none is better than the rounding of its values. It ends
    where the error is a tenth of what ``rtol`` and ``atol`` allow, or shorter steps only add rounding.

    C. J. F. Ridders, Accurate computation of F'(x) and F'(x)F''(x), Advances in Engineering Software 4(2), 1982;
    W. H. Press et al., Numerical Recipes, 3rd ed., section 5.7.
    """
    best, error = math.nan, math.inf
    row: list[float] = []
    for number in range(_MOST):
        step = _FIRST / 2**number
        above, row = row, [(function(step) - function(-step)) / (2 * step)]
        for order, coarser in enumerate(above, 1):
            finer = row[-1]
            row.append(finer + (finer - coarser) / (4.0**order - 1))
            estimate = max(abs(row[-1] - finer), abs(row[-1] - coarser)) + rounding / step
            # With long steps, differences may agree about a function that they do not resolve.
            if estimate <= error or abs(row[-1] - best) > 2 * (error + estimate):
                best, error = row[-1], estimate
        if error <= max(rounding / step, (atol + rtol * abs(best)) / 10):
            break
    return best, error


def slope(
    rule: Rule, result: str, name: str, point: Mapping[str, Any], function: Callable[..., Any]
) -> tuple[complex, float] | None:
    """Derivative of a result of ``function`` by an operand and its size, by differences of the fourth order.

    The size is at least a millionth of what the function would need to change by its own value. None if
    differences with other steps do not agree.

    B. Fornberg, Generation of finite difference formulas on arbitrarily spaced grids, Math. Comp. 51 (1988).
    """
    (domain,) = (each.domain or Domain("real") for each in rule.operands if each.name == name)
    middle = float(point[name])
    size = min(abs(middle) or 1.0, middle - domain.low, domain.high - middle)
    number = rule.results.index(result)

    def value(shift: float) -> complex:
        moved = {**point, name: middle + shift}
        given = [np.float64(each) if isinstance(each, float) else each for each in moved.values()]
        found = function(*given, **defaults(rule))
        return complex(found[number] if len(rule.results) > 1 else found)

    with np.errstate(all="ignore"):
        found = [
            sum(weight * value(step * size * place) for place, weight in _WEIGHTS) / (step * size) for step in _STEPS
        ]
        largest = max(abs(value(step * size)) for step in (0.0, *_STEPS))
    last = found[-1]
    if not math.isfinite(abs(last)):
        return None
    scale = max(abs(last), 1e-6 * largest / size)
    apart = _AGREEMENT * scale + _ROUNDING * largest / size
    return (last, scale) if all(abs(each - last) <= apart for each in found[:-1]) else None
