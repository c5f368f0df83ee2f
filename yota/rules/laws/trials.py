"""Measured errors of rules: partials against 50 digits, in ulps, and adjoints along random directions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from yota.rules.algebras import digits as oracle
from yota.rules.algebras.emitted import Static, evaluate
from yota.rules.language.model import Expression, Literal, Rule
from yota.rules.laws.inspection import Registered
from yota.rules.laws.sampling import statics
from yota.rules.laws.vocabulary import callees

_T = TypeVar("_T")
_STEP = 1e-5
_SMALL = 4
"""So many ulps need no explanation."""
_MOST_DIGITS = 400
_PRECISE = 1e-20
_CUT_OFF = 1e-13
STEEP = 1e10
"""A derivative as large as this says as much as none."""
_LARGE = {52: 1e290, 23: 1e36}
"""What is beyond this, or below its reciprocal, may overflow or lose digits, in double and in single precision."""

_MOST = 20_000
_kept: WeakKeyDictionary[Registered, dict[Any, Any]] = WeakKeyDictionary()


def once(registry: Registered, key: Any, compute: Callable[[], _T]) -> _T:
    """What ``compute`` gives, computed once for each ``key`` while no rule is added to ``registry``."""
    key = (registry.revision, key)
    known = _kept.setdefault(registry, {})
    if key not in known:
        if len(known) > _MOST:
            known.clear()
        known[key] = compute()
    found: _T = known[key]
    return found


def partial(
    rule: Rule, parameter: str, point: Mapping[str, Any], registry: Registered, result: str | None = None
) -> Any:
    """The partial by ``parameter`` in double precision, with the results as the primitive gives them."""
    names: dict[str, Any] = {**statics(rule), **point}
    with np.errstate(all="ignore"):
        operands = [names[each.name] for each in rule.operands]
        keywords = {each.name: names[each.name].value for each in rule.keywords}
        names |= dict(zip(rule.results, results(rule, operands, keywords, registry), strict=True))
        return evaluate(registry.partial(rule, parameter, result), names, registry)


def results(rule: Rule, operands: Sequence[Any], keywords: Mapping[str, Any], registry: Registered) -> tuple[Any, ...]:
    """What the primitive gives."""
    with np.errstate(all="ignore"):
        found = registry.primitive(rule.name).function(*operands, **keywords)
    return tuple(found) if len(rule.results) > 1 else (found,)


def miss(
    rule: Rule,
    parameter: str,
    point: Mapping[str, float],
    found: complex,
    registry: Registered,
    *,
    digits: int = oracle.DIGITS,
    bits: int = 52,
    result: str | None = None,
) -> float:
    """By how much ``found`` misses the partial at 50 digits, in ulps, after what the point's rounding explains.

    A relative change of the arguments by one ulp moves the partial by its condition number of ulps; twice that is
    subtracted. Infinite where ``found`` is NaN though there is a value. ``bits`` is the number of those behind the
    point, ``digits`` how many the oracle begins with; it takes more where a derivative is much smaller than the
    function.
    """
    mp = oracle.context()
    result = result or rule.results[0]
    with oracle.LOCK, mp.workdps(digits):
        exact, names = derivative(rule, result, parameter, point, registry)
        large = _LARGE[bits]
        if digits < _MOST_DIGITS and abs(exact) < abs(names[result]) * mp.mpf(10) ** (25 - digits):
            return miss(rule, parameter, point, found, registry, digits=_MOST_DIGITS, bits=bits, result=result)
        found = found if mp.im(exact) else found.real
        if exact == 0 or abs(exact) < 1 / large or abs(exact) > large:
            return 0.0 if _close(found, exact, large) or (bits < 52 and abs(exact) > large) else math.inf
        if not math.isfinite(abs(found)):
            return math.inf
        off = abs((mp.mpmathify(found) - exact) / exact) / mp.mpf(2) ** -bits
        if off > _SMALL:
            off = max(0, off - 2 * _condition(rule, result, parameter, point, registry))
        return float(off)


def derivative(rule: Rule, result: str, name: str, point: Mapping[str, Any], registry: Registered) -> Any:
    """What `oracle.at` gives, to the digits that are being worked with; computed once, whatever is held against it."""
    # Wrong versions of a rule have its text, and so the same function.
    key = ("at", rule.source or rule, rule.name, result, name, tuple(point.items()), oracle.context().dps)
    return once(registry, key, lambda: oracle.at(rule, result, name, point, registry))


class Residual(NamedTuple):
    """What a partial claims at a point, the derivative there, and their relative difference."""

    claimed: Any
    exact: Any
    error: float


def residual(
    rule: Rule, result: str, name: str, point: Mapping[str, Any], registry: Registered, digits: int = oracle.DIGITS
) -> Residual:
    """A partial against the derivative at one point; the error is 0 where the oracle has no value."""
    mp = oracle.context()
    with oracle.LOCK, mp.workdps(digits):
        exact, names = derivative(rule, result, name, point, registry)
        try:
            claimed = oracle.Digits(registry).of(registry.partial(rule, name, result), names)
        except (ZeroDivisionError, ValueError) as fault:
            # mpmath cannot tell the sum of a series from zero; all else is a pole, where the function has a derivative.
            is_pole = "zeroprec" not in str(fault) and mp.isfinite(exact)
            return Residual(mp.inf, exact, math.inf if is_pole else 0.0)
        # Of a real function only the real part counts, as in the partial of the imaginary part.
        claimed = claimed if mp.im(exact) else mp.re(claimed)
        if mp.isnan(exact):
            return Residual(claimed, exact, 0.0)
        # What the oracle itself loses, where a derivative is smaller than the function by many orders.
        noise = abs(names[result]) * mp.mpf(10) ** (8 - mp.dps) / max(abs(names[name]), mp.mpf(1) / 100)
        off = max(abs(claimed - exact) - noise, 0)
        return Residual(claimed, exact, float(off / max(abs(exact), abs(claimed), mp.mpf(10) ** -20)))


def tolerance(rule: Rule, expression: Expression) -> float:
    """The largest residual of a partial that is right: yota's own functions may be series cut off for doubles."""
    return _CUT_OFF if any(name.startswith("_") for name in (rule.name, *callees(expression))) else _PRECISE


def _condition(rule: Rule, result: str, name: str, point: Mapping[str, Any], registry: Registered) -> Any:
    """How many times its own relative change that of the point changes the derivative by."""
    function, arguments = oracle.primal(rule, registry, result), oracle.numbers(point)

    def slope(*operands: Any) -> Any:
        return oracle.derivative(function, list(operands), list(point).index(name))

    def compute() -> Any:
        exact, _ = derivative(rule, result, name, point, registry)
        moving = [number for number, value in enumerate(arguments) if not isinstance(value, int)]
        return sum(abs(oracle.derivative(slope, arguments, each) * arguments[each] / exact) for each in moving)

    key = ("condition", rule.source or rule, rule.name, result, name, tuple(point.items()), oracle.context().dps)
    return once(registry, key, compute)


def _close(found: complex, exact: Any, large: float) -> bool:
    if math.isnan(abs(found)):
        return False
    return abs(found) < 1e10 / large if abs(exact) < 1 else abs(found) > large / 1e10


def adjoint(
    rule: Rule,
    position: int,
    operands: Sequence[Any],
    keywords: Mapping[str, Any],
    seeds: Sequence[Any],
    registry: Registered,
) -> Any:
    """What the rule gives for the adjoint of the operand at ``position``, if those of the results are ``seeds``."""
    names: dict[str, Any] = {name: Static(value) for name, value in keywords.items()}
    rest = iter(operands)
    for parameter in rule.operands:
        names[parameter.name] = tuple(rest) if parameter.variadic else next(rest)
    if rule.loop is not None:
        names[rule.loop] = Static(position - (len(rule.operands) - 1))
    parameter = rule.operands[min(position, len(rule.operands) - 1)]
    with np.errstate(all="ignore"):
        names |= dict(zip(rule.results, results(rule, operands, keywords, registry), strict=True))
        slopes = dict(zip(rule.results, seeds, strict=True))
        if rule.kind == "elementwise":
            partials = (evaluate(registry.partial(rule, parameter.name, each), names, registry) for each in slopes)
            return sum(slope * np.conjugate(each) for slope, each in zip(slopes.values(), partials, strict=True))
        given = {f"d[{each}]": slope for each, slope in slopes.items()}
        body = rule.adjoints[parameter.name]
        if body == Literal(0):
            return np.zeros_like(operands[position])
        return evaluate(body, {**names, **given}, registry)


def direction_error(
    rule: Rule,
    position: int,
    operands: Sequence[Any],
    keywords: Mapping[str, Any],
    registry: Registered,
    seed: int = 0,
    *,
    symmetric: bool = False,
    adjoint: Callable[..., Any] = adjoint,
) -> float:
    """Relative difference between the adjoint of one operand and a central difference, along a random direction.

    It is 0 where the function itself is no number here, or next to here.

    symmetric: whether the operand stays Hermitian, for functions of such matrices.
    adjoint: what gives the adjoint, with the parameters of `adjoint`.
    Raises AssertionError if the adjoint has another shape than its operand.
    """
    random, operand = np.random.default_rng(seed), operands[position]
    direction = random_like(random, operand)
    if symmetric:
        direction = direction + np.conjugate(np.swapaxes(direction, -1, -2))
    moved = (operand + step * direction for step in (_STEP, -_STEP))
    ahead, back = (
        results(rule, [*operands[:position], each, *operands[position + 1 :]], keywords, registry) for each in moved
    )
    seeds = tuple(random_like(random, each) for each in ahead)
    found = adjoint(rule, position, operands, keywords, seeds, registry)
    if np.shape(found) != np.shape(operand):
        shapes = f"{np.shape(found)} for an operand of shape {np.shape(operand)}"
        assert rule.kind == "elementwise", f"{rule.name}: the adjoint has shape {shapes}"
    slopes = ((np.asarray(one) - other) / (2 * _STEP) for one, other in zip(ahead, back, strict=True))
    expected = sum(inner(each, slope) for each, slope in zip(seeds, slopes, strict=True))
    if math.isnan(expected):
        return 0.0
    measured = inner(found, np.broadcast_to(direction, np.shape(found)))
    error = abs(expected - measured) / max(abs(expected), abs(measured), 1e-2)
    return error if not math.isnan(error) else math.inf


def linear_error(rule: Rule, operands: Sequence[Any], keywords: Mapping[str, Any], registry: Registered) -> float:
    """By how much, relative to its values, the function of a ``@linear`` rule is not linear in its first operand."""
    random = np.random.default_rng(0)
    function = registry.primitive(rule.name).function
    first, rest = operands[0], operands[1:]
    one, other = random_like(random, first), random_like(random, first)
    scales = 0.75, -1.5
    with np.errstate(all="ignore"):
        whole = np.asarray(function(scales[0] * one + scales[1] * other, *rest, **keywords))
        parts = [
            scale * np.asarray(function(each, *rest, **keywords))
            for scale, each in zip(scales, (one, other), strict=True)
        ]
    largest = max(float(np.max(np.abs(each), initial=0.0)) for each in (whole, *parts))
    error = float(np.max(np.abs(whole - parts[0] - parts[1]), initial=0.0)) / max(largest, 1e-300)
    return error if not math.isnan(error) else math.inf


def random_like(random: np.random.Generator, like: Any) -> Any:
    """Random numbers in the shape and dtype of ``like``."""
    value = random.standard_normal(np.shape(like))
    if np.iscomplexobj(like):
        value = value + 1j * random.standard_normal(np.shape(like))
    return np.asarray(value).astype(np.result_type(like))


def inner(a: Any, b: Any) -> float:
    """The real part of the inner product of all elements."""
    return float(np.sum(np.real(np.conjugate(a) * b)))
