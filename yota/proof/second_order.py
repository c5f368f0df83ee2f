"""The law of the second order: generated code differentiated again, against differences of the first derivative."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.proof.compiled import FAULTS, LONG, Compiled, gradient, random_like, results, second
from yota.proof.findings import Finding, failed, finding, first_line, unmeasured
from yota.proof.places import drawn
from yota.proof.specimens import Specimen, specimens
from yota.rules.algebras.emitted import evaluate
from yota.rules.model import Rule
from yota.rules.registry import Registry
from yota.rules.sampling import statics

__all__ = ["second_order"]

_SECOND = 1e-5


def second_order(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """The gradient of a directional derivative against central differences of the generated gradient."""
    law = "second order"
    worst, place = 0.0, ""
    for (given, keywords, symmetric), result in itertools.product(_calls(rule, registry), range(len(rule.results))):
        try:
            error = _second_error(rule, given, keywords, registry, symmetric, result)
        except DifferentiationError as fault:
            yield unmeasured(rule, "", law, f"refused: {first_line(fault)}")
            return
        except FAULTS as fault:
            yield failed(rule, law, Specimen(tuple(given), keywords), fault)
            return
        if not error <= worst:
            worst, place = error, str(Specimen(tuple(given), keywords))
    yield finding(rule, "", law, worst, _SECOND, place=place)


def _calls(rule: Rule, registry: Registry) -> Iterator[tuple[list[Any], dict[str, Any], bool]]:
    if rule.kind == "tensor":
        plain = (each for each in specimens(rule, registry) if _plain(rule, each, registry))
        for specimen in itertools.islice(plain, 2):
            yield list(specimen.operands), specimen.keywords, specimen.symmetric
        return
    found = drawn(rule, registry, 4)
    if found:
        columns = [np.resize([point[each.name] for point in found], LONG) for each in rule.operands]
        yield columns, {name: value.value for name, value in statics(rule).items()}, False


def _plain(rule: Rule, specimen: Specimen, registry: Registry) -> bool:
    """Whether the rule's conditions hold for all elements."""
    names = dict(zip((each.name for each in rule.operands), specimen.operands, strict=False))
    return all(np.all(evaluate(kink, names, registry)) for kink in rule.kinks)


def _second_error(
    rule: Rule, given: list[Any], keywords: dict[str, Any], registry: Registry, symmetric: bool, number: int
) -> float:
    result = results(rule, given, keywords, registry)[number]
    if result.dtype.kind not in "fc":
        return 0.0
    random = np.random.default_rng(5)
    weights = random_like(random, result)[()]
    first = gradient(rule, given, keywords, weights, registry, result=number)
    found = first(*given, weights)
    active = [position for position, slope in zip(first.wanted, found, strict=True) if slope is not None]
    if not active:
        return 0.0
    along = {position: random_like(random, given[position]) for position in active}
    if symmetric:
        along = {position: each + np.conjugate(np.swapaxes(each, -1, -2)) for position, each in along.items()}
    moves = list(along.values())
    bent = second(first, (*given, weights), moves, rule, registry)
    steep = dict(zip(bent.wanted, bent(*given, weights, *moves), strict=True))
    return max(_bend(first, given, weights, along, steep, position, along[position]) for position in active)


def _bend(
    first: Compiled,
    given: list[Any],
    weights: Any,
    along: dict[int, Any],
    steep: dict[int, Any],
    position: int,
    direction: Any,
) -> float:
    """How far a second derivative is from differences of the first one, by the operand at ``position``."""
    step = 1e-5

    def slope(shift: float) -> float:
        moved = [value + shift * direction if place == position else value for place, value in enumerate(given)]
        slopes = dict(zip(first.wanted, first(*moved, weights), strict=True))
        return sum(_inner(move, slopes[place]) for place, move in along.items())

    expected = (8 * (slope(step) - slope(-step)) - slope(2 * step) + slope(-2 * step)) / (12 * step)
    found = 0.0 if steep.get(position) is None else _inner(direction, steep[position])
    return abs(found - expected) / max(abs(found), abs(expected), abs(slope(0.0)), 1e-2)


def _inner(a: Any, b: Any) -> float:
    return float(np.sum(np.real(np.conjugate(a) * b)))
