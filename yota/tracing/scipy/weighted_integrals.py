"""Integrals by `scipy.integrate.quad` with a weight: as integrals without one, or as sums over all periods."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, np
from yota.tracing.scipy import moving_branches
from yota.tracing.scipy.callbacks import around, concrete_function
from yota.tracing.scipy.sampled import Sampled, column, number_of

Quad = Callable[[Callable[[Any], Any], Any, Any], tuple[Any, float]]
"""The integral of a function between two limits, and a bound of its error."""
_STEPS = (0.2, 0.1, 0.05, 0.025, 0.0125)
_SETTLED, _GUARDED = 1e-11, 1e-6


class Unweighted(Exception):
    """SciPy refuses the limits, or no sum is enough."""


def weighted(trace: Trace, quad: Quad, function: Any, a: Any, b: Any, weight: str, given: Any) -> tuple[Any, float]:
    """The integral, and a bound of its error; ``given`` is the parameter ``wvar``."""
    if not np.shape(b - a) and bool(a > b):
        value, error = weighted(trace, quad, function, b, a, weight, given)
        return -value, error
    finite = [bool(np.all(np.isfinite(each))) for each in (a, b)]
    wave = {"cos": np.cos, "sin": np.sin}.get(weight)
    if wave is not None and any(finite):
        return _wave(trace, quad, function, (a, b), finite, wave, given)
    if weight == "cauchy" and all(finite):
        return _principal(quad, function, a, b, given)
    if weight.startswith("alg") and all(finite):
        return _algebraic(quad, function, a, b, weight, given)
    raise Unweighted


def _added(*found: tuple[Any, float]) -> tuple[Any, float]:
    return sum(value for value, _ in found), sum(error for _, error in found)


def _wave(
    trace: Trace, quad: Quad, function: Any, ends: Any, finite: list[bool], wave: Any, rate: Any
) -> tuple[Any, float]:
    a, b = ends
    if all(finite) or bool(np.all(rate == 0)):
        return quad(lambda x: function(x) * wave(rate * x), a, b)
    if not finite[0]:
        # The sine is odd.
        rate, a, original = -rate if wave is np.sin else rate, -b, function
        function = lambda x: original(-x)  # noqa: E731 -- in the place of a function
    from_a = lambda x: function(a + x)  # noqa: E731
    if not np.shape(a) and bool(a == 0):
        return _periods(trace, from_a, rate, wave)
    even, odd = (_periods(trace, from_a, rate, each) for each in (np.cos, np.sin))
    c, s = np.cos(rate * a), np.sin(rate * a)
    value = c * even[0] - s * odd[0] if wave is np.cos else c * odd[0] + s * even[0]
    return value, even[1] + odd[1]


def _periods(trace: Trace, function: Any, rate: Any, wave: Any) -> tuple[Any, float]:
    """The integral from 0 to infinity of a function times a wave.

    T. Ooura, M. Mori, A robust double exponential formula for Fourier-type integrals, J. Comput. Appl. Math. 112
    (1999): the places approach the zeros of the wave double exponentially.
    """

    def total(step: float) -> Any:
        places, weights = (column(each, np.empty(around.get())) for each in _nodes(step, wave is np.cos))
        speed = np.abs(rate)
        with moving_branches.integrand(trace):
            terms = sampled(places / speed) * weights / speed
        return np.sum(terms, axis=0) * (1.0 if wave is np.cos else np.sign(rate)), np.sum(np.abs(terms), axis=0)

    sampled = Sampled(function)
    plain = concrete_function(trace, lambda step: np.stack(total(step)))
    for coarse, step in itertools.pairwise(_STEPS):
        with np.errstate(all="ignore"):
            (before, _), (value, size) = plain(coarse), plain(step)
        if np.all((np.abs(value - before) <= _SETTLED * size) & (size < np.inf)):
            with moving_branches.integral(trace):
                (value, size), (before, _) = total(step), total(coarse)
                if bool(np.all(np.abs(value - before) <= _GUARDED * size)):
                    return value, _SETTLED * float(np.max(number_of(size)))
            break
    raise Unweighted


@functools.cache
def _nodes(step: float, is_even: bool) -> tuple[Any, Any]:
    """Where a wave of rate 1 is taken, and the weights, with the wave in them."""
    scale = math.pi / step
    t = step * (np.arange(-round(6 / step), round(6 / step)) + (0.5 if is_even else 0.0))
    right = 0.25
    left = right / math.sqrt(1 + scale * math.log1p(scale) / (4 * math.pi))
    slope = 2 + left * np.exp(-t) + right * np.exp(t)
    with np.errstate(all="ignore"):
        rest = np.exp(-(2 * t - left * np.expm1(-t) + right * np.expm1(t)))
        place = np.where(t == 0, 1 / (2 + left + right), t / (1 - rest))
        # At 0, from the series of the exponent.
        first = 2 + left + right
        steep = np.where(t == 0, 0.5 - 0.5 * (right - left) / first**2, (1 - rest - t * rest * slope) / (1 - rest) ** 2)
        # Beyond 0, how far a place is from the zero of the wave.
        sign = np.where(np.rint(t / step - (0.5 if is_even else 0.0)) % 2 == 0, 1.0, -1.0) * (-1.0 if is_even else 1.0)
        near = np.cos(scale * place) if is_even else np.sin(scale * place)
        wave = np.where(t > 0, sign * np.sin(scale * place * rest), near)
        weights = math.pi * steep * wave
    kept = np.isfinite(weights) & (np.abs(weights) > 1e-300) & (place > 0)
    return scale * place[kept], weights[kept]


def _principal(quad: Quad, function: Any, a: Any, b: Any, pole: Any) -> tuple[Any, float]:
    """Cauchy's principal value: around the pole, both sides together."""
    if not bool(np.all((a < pole) & (pole < b))):
        return quad(lambda x: function(x) / (x - pole), a, b)
    reach = np.minimum(pole - a, b - pole)
    around = quad(lambda t: (function(pole + t) - function(pole - t)) / t, 0.0, reach)
    sides = [quad(lambda x: function(x) / (x - pole), *ends) for ends in ((a, pole - reach), (pole + reach, b))]
    return _added(around, *sides)


def _algebraic(quad: Quad, function: Any, a: Any, b: Any, weight: str, powers: Any) -> tuple[Any, float]:
    """Both halves, by a power of the distance from the end, in which the weight has no singularity."""
    length, (left, right) = b - a, powers
    logs = {"alg-loga": (True, False), "alg-logb": (False, True), "alg-log": (True, True)}.get(weight, (False, False))

    def half(end: Any, sign: float, own: Any, other: Any, own_log: bool, other_log: bool) -> tuple[Any, float]:
        def integrand(u: Any) -> Any:
            near = u ** (1 / (1 + own))
            value = function(end + sign * near) * (length - near) ** other / (1 + own)
            value = value * np.log(u) / (1 + own) if own_log else value
            return value * np.log(length - near) if other_log else value

        return quad(integrand, 0.0, (length / 2) ** (1 + own))

    return _added(half(a, 1.0, left, right, *logs), half(b, -1.0, right, left, *reversed(logs)))
