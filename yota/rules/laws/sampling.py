"""Points of a rule's domain, the same ones every time, away from its kinks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras.emitted import Static, evaluate
from yota.rules.language.display import walk
from yota.rules.language.model import Domain, Literal, Name, Rule
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
    return _between(domain.low, domain.high, fraction)


def _between(low: float, high: float, fraction: float) -> float:
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) * fraction
    if math.isfinite(low):
        return low + math.exp(6 * fraction - 3)
    if math.isfinite(high):
        return high - math.exp(6 * fraction - 3)
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
    """Values of the results at a point.

    Raises RuleError if a function of the user's would have to be called.
    """
    if rule.primal.keys() >= set(rule.results):
        return {result: evaluate(rule.primal[result], names, registry) for result in rule.results}
    if not (rule.target or "").startswith(("numpy.", "scipy.")):
        raise RuleError("a function of the user's is not called while its rule is loaded")
    operands = [names[parameter.name] for parameter in rule.operands]
    keywords = {parameter.name: names[parameter.name].value for parameter in rule.keywords}
    found = registry.primitive(rule.name).function(*operands, **keywords)
    return dict(zip(rule.results, found if len(rule.results) > 1 else (found,), strict=True))
