"""Laws of elementwise rules at single points: where they assert that there is no derivative, and at ends of sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from yota.errors import RuleError
from yota.rules.algebras import digits
from yota.rules.language.model import Rule
from yota.rules.laws import trials
from yota.rules.laws.sampling import smooth
from yota.rules.proof import partials
from yota.rules.proof.findings import Finding, measured
from yota.rules.proof.sample_points import Point, corners, doubles, edges
from yota.rules.registry import Registry

_NEAR = (1e-3, -1e-3)


def kinks(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """Where the rule asserts that there is no derivative: the mean of the slopes of both sides, if both are finite."""
    law = "kinks, mean of both sides"
    places = [point for point, plain in corners(rule, registry) if not plain and borders(rule, registry, point)]
    for result, name in partials.moving(rule, registry):
        errors = ((point, partial(kink_error, rule, result, name, point, registry)) for point in places)
        yield from _told(rule, partials.named(rule, result, name), law, 1e-12, errors)


def ends(rule: Rule, registry: Registry) -> Iterator[Finding]:
    """At the ends of the sets, which do not belong to them: a partial that is written is the slope from inside, or NaN.

    Where the function has no slope there, or none that the oracle can compute, any value is a convention.
    """
    for result, name in (each for each in partials.moving(rule, registry) if each in rule.partials):
        errors = (
            (point, partial(end_error, rule, result, name, point, inwards.get(name, 0), registry))
            for point, inwards in edges(rule, registry)
        )
        yield from _told(rule, partials.named(rule, result, name), "ends, slope from inside", 1e-9, errors)


def _told(
    rule: Rule, label: str, law: str, tolerance: float, errors: Iterable[tuple[Point, Callable[[], float | None]]]
) -> Iterator[Finding]:
    """The finding on the largest error; none where none could be told."""
    cases = ((partials.shown(point), error) for point, error in errors)
    skipped = (digits.NotPreciseError, RuleError, *digits.FAULTS)
    found = measured(rule, label, law, tolerance, cases, skipped=skipped, otherwise="no point tells anything")
    if found.error:
        yield found


def end_error(rule: Rule, result: str, name: str, point: Point, inwards: int, registry: Registry) -> float | None:
    """How far a partial at an end is from the slope; None where there is no slope, or the partial is not a number."""
    found = complex(trials.partial(rule, name, doubles(point), registry, result))
    if np.isnan(found):
        return None
    mp = digits.context()
    with digits.LOCK, mp.workdps(digits.DIGITS):
        function, arguments = digits.primal(rule, registry, result), digits.numbers(point)
        position = list(point).index(name)

        def slope(step: Any) -> Any:
            near = [value + inwards * step if index == position else value for index, value in enumerate(arguments)]
            return digits.derivative(function, near, position)

        # From nearer and nearer: a slope that has no limit is none.
        exact, earlier = (slope(mp.mpf(10) ** power) for power in (-18, -15))
        if not abs(exact) < trials.STEEP or abs(exact - earlier) > 1e-10 * max(abs(exact), 1e-3):
            return None
        if np.isinf(found):
            return math.inf
        return float(abs(mp.mpmathify(found) - exact) / max(abs(exact), 1e-3))


def borders(rule: Rule, registry: Registry, point: Point) -> bool:
    """Whether the rule has a derivative next to ``point``: conditions of whole numbers leave out the neighbours too."""
    moving = [name for name, value in point.items() if isinstance(value, float)]
    return any(smooth(rule, registry, {**point, name: point[name] + step}) for name in moving for step in _NEAR)


def kink_error(rule: Rule, result: str, name: str, point: Point, registry: Registry) -> float | None:
    """How far a partial is from the mean of the slopes of both sides; None where that says nothing."""
    mp = digits.context()
    with digits.LOCK, mp.workdps(digits.DIGITS):
        function, arguments = digits.primal(rule, registry, result), digits.numbers(point)
        position = list(point).index(name)
        sides = []
        for step in (mp.mpf(10) ** -20, -(mp.mpf(10) ** -20)):
            moved = [value + step if index == position else value for index, value in enumerate(arguments)]
            sides.append((function(*moved) - function(*arguments)) / step)
        if any(mp.im(each) or not abs(each) < trials.STEEP for each in sides):
            return None
        exact = float(sum(sides) / 2)
    found = complex(trials.partial(rule, name, doubles(point), registry, result))
    if math.isnan(abs(found)):
        # A rule may say so: what is not a number misleads nobody.
        return None if "not numbers" in rule.doc or "not a number" in rule.doc else math.inf
    return abs(found - exact) / max(abs(exact), 1.0)
