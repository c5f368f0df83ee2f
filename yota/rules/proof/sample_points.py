"""Points at which partials are measured: over the whole domain, log-spaced to its ends, and where branches meet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from yota.rules.language.model import Call, Domain, Literal, Name, Parameter, Rule
from yota.rules.language.rule_text import walk
from yota.rules.laws.inspection import Registered
from yota.rules.laws.sampling import points, sample, smooth
from yota.rules.laws.trials import once

Point = dict[str, Any]
"""A number for each operand."""

# How far the oracles reach: where 50 digits of a special function can be computed, and in a short time.
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "sin": {"x": (-10000.0, 10000.0)},
    "cos": {"x": (-10000.0, 10000.0)},
    "tan": {"x": (-50, 50)},
    "stdtrit": {"v": (0.05, 1000.0)},
    "_gamma_slope": {"x": (0.001, 30)},
    "sinc": {"x": (-50, 50)},
    "hyp2f1": {"c": (0.5, 30), "a": (0.1, 10), "b": (0.1, 10), "x": (-90, 0.9)},
    "hyperu": {"a": (0.1, 10), "b": (0.1, 10), "x": (0.1, 30)},
    "eval_jacobi": {"a": (0.1, 10), "b": (0.1, 10)},
    "erf": {"x": (-9, 9)},
    "erfc": {"x": (-9, 9)},
    "ndtr": {"x": (-12, 12)},
    "log_ndtr": {"x": (-300, 12)},
    "ndtri_exp": {"x": (-30, 0)},
    "binom": {"n": (20, 30), "k": (1, 19)},
    "zeta": {"s": (1.1, 9), "x": (0.001, 1000.0)},
    "y1": {"x": (0.001, 9)},
    "yn": {"x": (0.001, 9)},
    "gammaincc": {"a": (1e-06, 90), "x": (1e-06, 90)},
    "betaincc": {"a": (1e-06, 90), "b": (1e-06, 90)},
    "gammaincinv": {"a": (0.1, 30)},
    "gammainccinv": {"a": (0.1, 30)},
    "betaincinv": {"a": (0.1, 30), "b": (0.1, 30)},
    "_erfcx_slope": {"x": (-5, 300)},
    "ncfdtri": {"a": (2, 9), "b": (4, 9)},
    "chndtrinc": {"x": (9, 12), "v": (1, 3), "p": (0.1, 0.5)},
    "nrdtrisd": {"p": (0.6, 1)},
    "besselpoly": {"a": (0, 3)},
}
"""Ranges of operands that are smaller than the rule's own."""

DIGITS = {"powm1": 300, "boxcox": 300, "boxcox1p": 300, "gammainc": 250, "gammaincc": 250, "betaincc": 250}
"""Where the derivative is smaller than the function by many orders, more digits are computed with."""

TIED = {
    f"{kind}_{shape}_cv": ("cv", f"{kind}_cv", ("m", "n", "c")) for kind in ("pro", "obl") for shape in ("ang1", "rad1")
}
"""Operands that have to be what a function gives for others, by the rule's name."""

FEWER = {
    **dict.fromkeys(("gammainccinv", "betaincinv"), 2),
    **dict.fromkeys(("gammaincinv", "hyperu", "yn"), 3),
    **dict.fromkeys(("gammaincc", "betaincc", "y0", "y1", "zeta", "kn"), 4),
    **dict.fromkeys(("kve", "k1e"), 5),
}
"""How many points are tried where one takes long."""

_CORNERS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0)
_MOST_CORNERS = 81
_MOST_EDGES = 3
_COMPARISONS = frozenset("less less_equal greater greater_equal maximum minimum".split())
_SIDES = (0.97, 1.03, 1.5, -0.97, -1.03)


def spread(rule: Rule, registry: Registered, count: int, *, seed: int = 7) -> list[Point]:
    """Up to ``count`` points of the domain at which the rule has a derivative and the function a finite value.

    Each operand runs log-spaced to the ends of its set, in an order of its own.
    """
    count = min(count, FEWER.get(rule.name, count))
    columns = [_axis(rule, operand, count, seed + stream) for stream, operand in enumerate(rule.operands)]
    names = [operand.name for operand in rule.operands]
    found = [_tied(rule, registry, dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]
    return [point for point in found if smooth(rule, registry, point) and _finite(rule, registry, point)]


def corners(rule: Rule, registry: Registered) -> Iterator[tuple[Point, bool]]:
    """Points made of small whole and half numbers, where branches of a rule meet; and whether it is smooth there."""
    sets = [_corners(operand) for operand in rule.operands]
    names = [operand.name for operand in rule.operands]
    for values in itertools.islice(itertools.product(*sets), _MOST_CORNERS):
        point = _tied(rule, registry, dict(zip(names, values, strict=True)))
        if _finite(rule, registry, point):
            yield point, smooth(rule, registry, point)


def formula_points(rule: Rule, registry: Registered, count: int) -> list[Point]:
    """Points at which formulas are held against derivatives: over the domain, beside thresholds, and corners."""

    def compute() -> list[Point]:
        plain = [point for point, is_plain in corners(rule, registry) if is_plain]
        return [*spread(rule, registry, count), *thresholds(rule, registry), *plain]

    # Wrong versions compare with other numbers; the points of the right one serve them as well.
    return once(registry, ("places", rule.source, rule.name, count), compute)


def edges(rule: Rule, registry: Registered) -> Iterator[tuple[Point, dict[str, int]]]:
    """Points with one operand at an end of its set, where the function has a value; and which way is inwards."""
    for operand in rule.operands:
        domain = operand.domain or Domain("real")
        if domain.kind != "real":
            continue
        others = [_corners(each) if each is not operand else (0.0,) for each in rule.operands]
        names = [each.name for each in rule.operands]
        small = (dict(zip(names, values, strict=True)) for values in itertools.product(*others))
        beside = [*drawn(rule, registry, _MOST_EDGES), *itertools.islice(small, _MOST_CORNERS // 5)]
        for end, inwards in ((domain.low, 1), (domain.high, -1)):
            for place in beside if math.isfinite(end) else ():
                point = {**place, operand.name: float(end)}
                if _finite(rule, registry, point):
                    yield point, {operand.name: inwards}


def drawn(rule: Rule, registry: Registered, count: int) -> list[Point]:
    """Up to ``count`` points in the middle of the domain."""
    found = list(points(rule, registry, 3 * count))
    reached = [point for point in found if all(_reached(rule, name, value) for name, value in point.items())]
    return [_tied(rule, registry, point) for point in (reached or found)[:count]]


def _reached(rule: Rule, name: str, value: Any) -> bool:
    low, high = RANGES.get(rule.name, {}).get(name, (-math.inf, math.inf))
    return bool(low <= value <= high)


def _tied(rule: Rule, registry: Registered, point: Point) -> Point:
    """The point with those operands that follow from others; SciPy's functions are none for others."""
    if rule.name not in TIED or rule.target is None:
        return point
    name, function, given = TIED[rule.name]
    with np.errstate(all="ignore"):
        return {**point, name: float(registry.primitive(function).function(*(point[each] for each in given)))}


def doubles(point: Point) -> Point:
    """The point in double precision, for NumPy."""
    return {name: np.float64(value) if isinstance(value, float) else value for name, value in point.items()}


def thresholds(rule: Rule, registry: Registered) -> Iterator[Point]:
    """Points on both sides of the numbers with which the rule compares, where it goes from one formula to another."""
    numbers = {
        abs(literal.value)
        for expression in (*rule.partials.values(), *rule.primal.values())
        for part in walk(expression)
        if isinstance(part, Call) and part.function in _COMPARISONS and _reads(part, rule)
        for literal in part.arguments
        if isinstance(literal, Literal) and isinstance(literal.value, (int, float)) and literal.value
    }
    base = next(iter(drawn(rule, registry, 1)), None)
    if base is None:
        return
    reals = [each for each in rule.operands if each.domain is not None and each.domain.kind in ("real", "complex")]
    for number, factor, operand in itertools.product(sorted(numbers), _SIDES, reals):
        value = float(number * factor)
        domain = operand.domain or Domain("real")
        point = _tied(rule, registry, {**base, operand.name: value})
        if domain.low < value < domain.high and smooth(rule, registry, point) and _finite(rule, registry, point):
            yield point


def _reads(comparison: Call, rule: Rule) -> bool:
    """Whether operands are compared, and not results alone."""
    names = {part.id for part in walk(comparison) if isinstance(part, Name)}
    return bool(names & {each.name for each in rule.operands})


def _corners(operand: Parameter) -> tuple[Any, ...]:
    domain = operand.domain or Domain("real")
    if domain.kind == "boolean":
        return (False, True)
    if domain.kind == "integer":
        low = math.ceil(domain.low) if math.isfinite(domain.low) else -1
        return tuple(value for value in range(low, low + 4) if value <= domain.high)
    return tuple(value for value in _CORNERS if domain.low < value < domain.high)


def _axis(rule: Rule, operand: Parameter, count: int, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    fractions = (np.arange(count) + random.random(count)) / count
    random.shuffle(fractions)
    domain = operand.domain or Domain("real")
    low, high = RANGES.get(rule.name, {}).get(operand.name, (domain.low, domain.high))
    if domain.kind == "boolean":
        return [number % 2 == 0 for number in range(count)]
    if domain.kind == "integer":
        return [sample(domain, number, seed) for number in range(count)]
    if math.isfinite(low) and math.isfinite(high):
        parts = 0.5 * (high - low) * 10 ** (-7 * (1 - fractions))
        return [float(low + part) if number % 2 else float(high - part) for number, part in enumerate(parts)]
    special = not (rule.target or "numpy.").startswith("numpy.")
    sizes = 10 ** _exponents(fractions, math.isfinite(low) or math.isfinite(high), special)
    if math.isfinite(low):
        return [float(low + value) for value in sizes]
    if math.isfinite(high):
        return [float(high - value) for value in sizes]
    return [float(value) * (-1) ** (number // 2) for number, value in enumerate(sizes)]


def _exponents(fractions: Any, bounded: bool, special: bool) -> Any:
    """Of ten: every other one over the whole range, those between where functions are neither flat nor steep."""
    low, high = (-6.0, 3.0) if bounded else (-5.0, 1.5) if special else (-9.0, 8.0)
    number = np.arange(len(fractions))
    return np.where(number % 2 == 0, low + (high - low) * fractions, -1.5 + 3 * fractions)


def _finite(rule: Rule, registry: Registered, point: Point) -> bool:
    with np.errstate(all="ignore"):
        try:
            return bool(np.all(np.isfinite(registry.primitive(rule.name).function(*point.values()))))
        except (TypeError, ValueError, ArithmeticError):
            return False
