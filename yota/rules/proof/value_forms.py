"""Laws of values: the form that a function has in the locals of its rule, and the equation that it solves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from yota.rules.algebras import digits
from yota.rules.algebras.emitted import Static, evaluate
from yota.rules.language.model import Rule
from yota.rules.laws import trials
from yota.rules.laws.sampling import defaults, statics
from yota.rules.proof.findings import Finding, measured
from yota.rules.proof.partials import allowance, shown
from yota.rules.proof.sample_points import Point, spread
from yota.rules.proof.specimens import Specimen, specimens
from yota.rules.registry import Registry

_SPECIAL = (0.0, -0.0, 1.0, math.inf, -math.inf, math.nan)
_LEFT = 1e-8
"""How far from the root, as a part of its size, arrays are that solvers find."""
_MOVE = 1e-3
_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))


def shared(rule: Rule, registry: Registry, count: int) -> Iterator[Finding]:
    """The shared form of each result against the function: in ulps, and at zeros, infinities and no number."""
    for result in rule.shared:
        label = result if len(rule.results) > 1 else ""
        special = itertools.product(_SPECIAL, repeat=len(rule.operands))
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
