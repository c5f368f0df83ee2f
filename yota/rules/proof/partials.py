"""Laws of elementwise rules: partials against 50 digits, as formulas and as generated code."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from yota.errors import RuleError, YotaError
from yota.rules.algebras import digits
from yota.rules.language.model import Rule, refusal
from yota.rules.laws import trials
from yota.rules.laws.differences import slope
from yota.rules.laws.sampling import defaults, smooth
from yota.rules.proof.compiled_rule import LONG, differentiable, gradient, results
from yota.rules.proof.findings import Finding, finding, measured, unmeasured
from yota.rules.proof.sample_points import DIGITS, Point, doubles, formula_points, spread
from yota.rules.registry import Registry

FORMULA = "formula, 50 digits"
"""The law of a partial as it is written."""
_ELEMENTARY = 8.0
_SPECIAL = 1e-12 * 2.0**52
_WITHIN = re.compile(r"\bWithin (\d+(?:\.\d+)?e-\d+): (.*?\.)(?:\s|$)", re.DOTALL)
_SAY = 'or say in the docstring how many it keeps and why: "Within 1e-9: the terms cancel near 1."'
_UNREACHED = "no point that the oracle reaches"
_DIFFERENCES = 1e-6


def allowance(rule: Rule) -> tuple[float, str]:
    """How many ulps the partials of ``rule`` may be off, and the reason if it says so itself.

    A docstring may say "Within 1e-10: the reason."; without that it is 8 ulps for NumPy's functions, and 1e-12 for
    all others.
    """
    stated = _WITHIN.search(rule.doc)
    if stated is not None:
        return float(stated.group(1)) * 2.0**52, " ".join(stated.group(2).split())
    elementary = (rule.target or "").startswith("numpy.") or rule.name in ("_logistic", "_sech", "_root")
    return (_ELEMENTARY if elementary else _SPECIAL), ""


def moving(rule: Rule, registry: Registry) -> Iterator[tuple[str, str]]:
    """Results and operands with a partial that is not refused."""
    for parameter, result in itertools.product(rule.operands, rule.results):
        if parameter.moves and refusal(registry.partial(rule, parameter.name, result)) is None:
            yield result, parameter.name


def named(rule: Rule, result: str, name: str) -> str:
    """How a partial is named in findings."""
    return name if len(rule.results) == 1 else f"{result} by {name}"


def formulas(rule: Rule, registry: Registry, count: int) -> Iterator[Finding]:
    """Each partial as it is written, computed at 50 digits, against the derivative of the function at 50 digits."""
    points = formula_points(rule, registry, count)
    for result, name in moving(rule, registry):
        yield _formula(rule, result, name, points, registry)


def _formula(rule: Rule, result: str, name: str, points: list[Point], registry: Registry) -> Finding:
    label, tolerance = named(rule, result, name), trials.tolerance(rule, registry.partial(rule, name, result))

    def error(point: Point) -> float:
        found = trials.residual(rule, result, name, point, registry, digits=DIGITS.get(rule.name, digits.DIGITS))
        return 0.0 if abs(found.exact) >= trials.STEEP * max(1, abs(found.claimed)) else found.error

    cases = ((shown(point), partial(error, point)) for point in points)
    try:
        return measured(
            rule, label, FORMULA, tolerance, cases, skipped=digits.FAULTS, otherwise=_UNREACHED, enough=tolerance
        )
    except digits.NotPreciseError:
        return _by_differences(rule, result, name, points, registry, label)


def _by_differences(rule: Rule, result: str, name: str, points: list[Point], registry: Registry, label: str) -> Finding:
    """A partial against differences, for functions that mpmath lacks."""
    law, tolerance = "partial, differences", max(_DIFFERENCES, allowance(rule)[0] * 2.0**-52)

    def error(point: Point) -> float | None:
        known = slope(rule, result, name, point, registry.primitive(rule.name).function)
        if known is None:
            return None
        expected, scale = known
        found = complex(trials.partial(rule, name, doubles(point), registry, result))
        found = found if expected.imag else found.real
        # Not that of a complex number, which fails where it overflows.
        return float(np.abs(found - expected)) / max(scale, 1e-280)

    cases = ((shown(point), partial(error, point)) for point in points)
    untold = "no point at which differences tell anything"
    return measured(rule, label, law, tolerance, cases, skipped=(RuleError, *digits.FAULTS), otherwise=untold)


def generated(rule: Rule, registry: Registry, count: int, dtype: Any = np.float64) -> Iterator[Finding]:
    """The generated code of each partial, for arrays and for numbers, against 50 digits in ulps, over the domain."""
    dtype = np.dtype(dtype)
    law, bits = f"{dtype.name} code, 50 digits", 23 if dtype.itemsize == 4 else 52
    points = [_rounded(point) for point in spread(rule, registry, count)]
    points = [point for point in points if smooth(rule, registry, point) and _inside(rule, point)]
    tolerance, note = allowance(rule)
    if bits == 23 and "single precision" not in note:
        # What a rule says of itself is said of doubles.
        tolerance = min(tolerance, _SPECIAL)
    columns = [np.array([point[each.name] for point in points]) for each in rule.operands]
    columns = [column.astype(dtype) if column.dtype.kind == "f" else column for column in columns]
    columns, points = _with_values(rule, columns, points, registry) if points else (columns, points)
    if not points:
        yield unmeasured(rule, "", law, "no point of the domain was found")
        return
    slopes: list[tuple[str, str, list[complex]]] = []
    try:
        for number, result in enumerate(rule.results):
            if differentiable(rule, columns, number):
                slopes += [(result, name, each) for name, each in _slopes(rule, columns, registry, number)]
    except (YotaError, *digits.FAULTS) as fault:
        yield finding(rule, "", law, math.inf, 0.0, note=str(fault).splitlines()[0])
        return
    for result, name, values in slopes:
        label, mend = named(rule, result, name), f"write d[{result}, {name}] in a form that keeps its digits, {_SAY}"
        miss = partial(trials.miss, digits=DIGITS.get(rule.name, 70), bits=bits, result=result)
        cases = (
            (shown(point), partial(miss, rule, name, point, value, registry))
            for point, value in zip(points * 2, values, strict=True)
        )
        try:
            found = measured(
                rule, label, law, tolerance, cases, skipped=digits.FAULTS, otherwise=_UNREACHED, unit="ulp"
            )
        except digits.NotPreciseError as fault:
            found = unmeasured(rule, label, law, str(fault))
        yield found if found.note else replace(found, note=note if found.held else mend)


def _with_values(
    rule: Rule, columns: list[Any], points: list[Point], registry: Registry
) -> tuple[list[Any], list[Point]]:
    """The points at which the function itself has a value in this precision."""
    finite = [np.isfinite(each) for each in results(rule, columns, defaults(rule), registry) if each.dtype.kind in "fc"]
    kept = np.flatnonzero(np.all(finite, axis=0)) if finite else np.arange(len(points))
    return [column[kept] for column in columns], [points[number] for number in kept]


def _slopes(rule: Rule, columns: list[Any], registry: Registry, number: int) -> Iterator[tuple[str, list[complex]]]:
    """By each operand, the partials that generated code gives: at all points as arrays, then at one after the other."""
    count = len(columns[0])
    long = [np.resize(column, max(LONG, count)) for column in columns]
    result = results(rule, long, defaults(rule), registry)[number]
    weights = np.ones(len(long[0]), result.dtype)
    # The real part of the result alone is a loss; so is the imaginary part.
    phases = (1, 1j) if result.dtype.kind == "c" else (1,)
    of_arrays = gradient(rule, long, defaults(rule), weights, registry, number)
    of_numbers = gradient(rule, [column[0] for column in columns], defaults(rule), weights[0], registry, number)
    arrays = [of_arrays(*long, phase * weights) for phase in phases]
    numbers = [[of_numbers(*each, phase * weights[0]) for each in zip(*columns, strict=True)] for phase in phases]
    for place, position in enumerate(of_arrays.wanted):
        parts = [
            np.concatenate([_filled(part[place], len(long[0]))[:count], *(_filled(each[place], 1) for each in single)])
            for part, single in zip(arrays, numbers, strict=True)
        ]
        whole = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
        yield rule.operands[position].name, [complex(value) for value in whole]


def _filled(slope: Any, count: int) -> Any:
    """The real part of a partial, which is None where it is 0 everywhere."""
    return np.broadcast_to(0.0 if slope is None else np.real(slope), (count,))


def _rounded(point: Point) -> Point:
    """The point in single precision, so that one value at 50 digits serves both precisions."""
    return {name: float(np.float32(value)) if isinstance(value, float) else value for name, value in point.items()}


def _inside(rule: Rule, point: Point) -> bool:
    sets = {each.name: each.domain for each in rule.operands if each.domain is not None and each.domain.kind == "real"}
    return all(domain.low < point[name] < domain.high for name, domain in sets.items())


def shown(point: Point) -> str:
    """A point as text."""
    return ", ".join(f"{name} = {value:.6g}" for name, value in point.items())
