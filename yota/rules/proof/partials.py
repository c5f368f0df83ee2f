"""Laws of elementwise rules: partials and values against 50 digits, as formulas and as generated code."""

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
from yota.rules.algebras.emitted import Static, evaluate
from yota.rules.language.model import Rule, refusal
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults, slope, smooth, statics
from yota.rules.proof.compiled_rule import LONG, Specimen, differentiable, gradient, results, specimens
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
_LEFT = 1e-8
"""How far from the root, as a part of its size, arrays are that solvers find."""
_MOVE = 1e-3
_ENDS = (0.0, -0.0, 1.0, math.inf, -math.inf, math.nan)
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


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
        yield replace(finding(rule, "", law, math.inf, 0.0), note=str(fault).splitlines()[0])
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


def shared(rule: Rule, registry: Registry, count: int) -> Iterator[Finding]:
    """The shared form of each result against the function: in ulps, and at zeros, infinities and no number."""
    for result in rule.shared:
        label = result if len(rule.results) > 1 else ""
        special = itertools.product(_ENDS, repeat=len(rule.operands))
        places = [dict(zip((each.name for each in rule.operands), values, strict=True)) for values in special]
        errors = ((shown(place), partial(_differs, rule, result, place, registry)) for place in places)
        yield measured(rule, label, "shared form, zeros and infinities", 0.5, errors)
        # Each number is one of single precision, so that it is the same in both.
        rounded = [
            {name: float(np.float32(value)) for name, value in each.items()} for each in _real(rule, registry, count)
        ]
        for dtype in _DTYPES:
            errors = ((shown(each), partial(_off, rule, result, each, registry, dtype)) for each in rounded)
            yield measured(rule, label, f"shared form, {dtype.name}, ulp", allowance(rule)[0], errors)


def equal(one: Rule, other: Rule, result: str, registry: Registry) -> bool:
    """Whether the forms of a result in two versions of a rule have the same values."""
    points = _real(one, registry, 24)
    return all(_form(one, result, each, registry) == _form(other, result, each, registry) for each in points)


def _real(rule: Rule, registry: Registry, count: int) -> list[Point]:
    return [each for each in spread(rule, registry, count) if not any(isinstance(v, complex) for v in each.values())]


def _form(rule: Rule, result: str, point: Point, registry: Registry, dtype: Any = np.float64) -> Any:
    with np.errstate(all="ignore"):
        return evaluate(rule.shared[result], {**statics(rule), **_numbers(point, dtype)}, registry)


def _function(rule: Rule, result: str, point: Point, registry: Registry, dtype: Any = np.float64) -> Any:
    operands = list(_numbers(point, dtype).values())
    return trials.results(rule, operands, defaults(rule), registry)[rule.results.index(result)]


def _numbers(point: Point, dtype: Any) -> Point:
    return {name: np.dtype(dtype).type(value) for name, value in point.items()}


def _differs(rule: Rule, result: str, point: Point, registry: Registry) -> float:
    """1 where the form is another number than the function, to some digits, or another zero."""
    found, expected = _form(rule, result, point, registry), _function(rule, result, point, registry)
    same = np.isclose(found, expected, rtol=1e-14, atol=0.0, equal_nan=True)
    return float(not same or (expected == 0 and np.signbit(found) != np.signbit(expected)))


def _off(rule: Rule, result: str, point: Point, registry: Registry, dtype: Any) -> float:
    """By how many ulps the form misses the function."""
    return _missed(rule, result, point, registry, float(_form(rule, result, point, registry, dtype)), dtype)


def _missed(rule: Rule, result: str, point: Point, registry: Registry, found: float, dtype: Any) -> float:
    """By how many ulps a number misses the function, after what a rounding of the operands explains."""
    mp, small = digits.context(), np.finfo(dtype)
    with digits.LOCK:
        try:
            function, arguments = digits.primal(rule, registry, result), digits.numbers(point)
            exact = mp.re(function(*arguments))
            slopes = [digits.derivative(function, arguments, place) for place in range(len(arguments))]
            moves = sum(abs(slope * value) for slope, value in zip(slopes, arguments, strict=True))
        except (digits.NotPreciseError, OverflowError):
            exact, moves = mp.mpf(float(_function(rule, result, point, registry, dtype))), mp.zero
        if not small.tiny < abs(exact) < small.max:
            return 0.0
        off = abs(found - exact) / (abs(exact) * float(small.eps))
        return float(max(0, off - 2 * moves / abs(exact)) if off > 1 else off)


def solved(rule: Rule, registry: Registry, count: int) -> Iterator[Finding]:
    """The function of an ``@implicit`` rule against the root of its equation, in ulps; for arrays by what is left."""
    if rule.equation is None:
        return
    if rule.kind == "tensor":
        known = specimens(rule, registry)
        left = ((each, partial(_left, rule, each, registry)) for each in known)
        what = "" if known else "no operands could be made up from the pattern"
        yield measured(rule, "", "root of the equation", _LEFT, left, otherwise=what)
        return
    result, points = rule.results[0], _real(rule, registry, count)
    errors = ((shown(each), partial(_residual, rule, result, each, registry)) for each in points)
    yield measured(rule, "", "root of the equation, ulp", allowance(rule)[0], errors)


def _left(rule: Rule, specimen: Specimen, registry: Registry) -> float:
    """What the equation leaves at the function's value, beside what a relative change of the value makes of it."""
    names = {key: Static(value) for key, value in specimen.keywords.items()}
    names |= dict(zip((each.name for each in rule.operands), specimen.operands, strict=True))
    (root,) = trials.results(rule, specimen.operands, specimen.keywords, registry)
    moved = root + _MOVE * np.max(np.abs(root), initial=0.0) * trials.random_like(np.random.default_rng(6), root)
    assert rule.equation is not None
    rest, other = (evaluate(rule.equation, {**names, rule.results[0]: each}, registry) for each in (root, moved))
    change = np.max(np.abs(other - rest), initial=0.0) / _MOVE
    return float(np.max(np.abs(rest), initial=0.0) / change) if change else math.inf


def _residual(rule: Rule, result: str, point: Point, registry: Registry) -> float:
    """By how many ulps the function misses the root; what a rounding of the operands explains is subtracted."""
    found = float(_function(rule, result, point, registry))
    return _missed(rule, result, point, registry, found, np.dtype(np.float64)) if math.isfinite(found) else math.inf
