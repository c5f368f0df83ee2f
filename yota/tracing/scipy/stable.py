"""Stable distributions of SciPy: Nolan's integrals by the trapezoidal rule in a double exponential.

J. P. Nolan, Numerical calculation of stable densities and distribution functions, Communications in Statistics.
Stochastic Models 13 (1997).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.scipy.distribution_formulas import special
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_CLOSE = 0.02
"""How near to 1 the first shape may be: the integrand is a step there, and SciPy takes 1 in its place nearby."""


@functools.cache
def _nodes(fine: int) -> tuple[Any, Any, Any]:
    """Logarithms of the variable from 0 to 1, of what it lacks to 1, and of the weights."""
    step = 2.0**-fine
    place = np.arange(-5.0, 5.0, step)
    turned = math.pi * np.sinh(place)
    below, above = -np.logaddexp(0, -turned), -np.logaddexp(0, turned)
    return below, above, below + above + np.log(math.pi * np.cosh(place) * step)


def _prepared(trace: Trace, self: Any, *given: Any) -> tuple[Any, ...]:
    """The side of a variable, how far out it is, both shapes on that side, the angle, and where SciPy takes 0."""
    x, a, b = np.broadcast_arrays(*map(trace.traced, given))
    if bool(np.any(np.abs(a - 1) < _CLOSE)):
        raise trace.refuse(
            "scipy.stats.levy_stable with a first shape of nearly 1 is not recorded.", "Use scipy.stats.cauchy for 1."
        )
    lean = np.tan(0.5 * math.pi * a)
    if self._parameterization() == "S0":
        x = x + b * lean
    side = np.where(x < 0, -1.0, 1.0)
    middle = np.abs(x) < self.piecewise_x_tol_near_zeta * a ** (1 / a)
    angle = side * np.arctan(b * lean) / a
    width = 0.5 * math.pi + angle
    if bool(np.any((width < 1e-9) | (math.pi - a * width < 1e-9))):
        # A part of the slope by the second shape is at one end of the integral.
        raise trace.refuse(
            "the light tail of scipy.stats.levy_stable with 1 or -1 as the second shape is not recorded.",
            "Leave its values out, or take a shape that is less by 1e-6.",
        )
    return side, np.where(middle, 1.0, np.abs(x)), a, angle, middle


def _exponents(x: Any, a: Any, angle: Any) -> tuple[Any, Any]:
    """Logarithms of what the exponential is of at the nodes, and of their weights."""
    # The steeper the integrand is, the more nodes there are.
    fine = max(5, int(np.max(np.ceil(np.log2(24 * a / np.abs(a - 1))))))
    low, high, weights = _nodes(fine)
    below, above = np.exp(low), np.exp(high)
    x, a, angle = (each[..., None] for each in (x, a, angle))
    width = 0.5 * math.pi + angle
    turn = a * width * below
    # Of nearly half a turn, and of a quarter, the rest keeps its digits.
    end = math.pi - a * width
    rest = end + a * width * above
    early = turn < 0.5 * math.pi
    sine = np.where(
        early,
        np.log(a * width * np.sinc(np.where(early, turn, 0.0) / math.pi)) + low,
        np.log(np.sin(np.where(early, 1.0, rest))),
    )
    cosine = np.log(width * np.sinc(width * above / math.pi)) + high
    other = np.log(np.maximum(np.sin(end + (a - 1) * width * above), 1e-300))
    power = (a * (np.log(x) + cosine - sine) + np.log(np.cos(a * angle))) / (a - 1) + other - cosine
    return np.minimum(power, 700.0), np.log(width) + weights


@records("scipy.stats._levy_stable", "levy_stable_gen._pdf")
def _density(trace: Trace, self: Any, x: Any, alpha: Any, beta: Any) -> Any:
    _, x, a, angle, middle = _prepared(trace, self, x, alpha, beta)
    power, weights = _exponents(x, a, angle)
    found = a / (math.pi * np.abs(a - 1) * x) * np.sum(np.exp(power - np.exp(power) + weights), axis=-1)
    inner = special("gamma")(1 + 1 / a) * np.cos(angle) * np.cos(a * angle) ** (1 / a) / math.pi
    return np.where(middle, inner, found)


@records("scipy.stats._levy_stable", "levy_stable_gen._cdf")
def _below(trace: Trace, self: Any, x: Any, alpha: Any, beta: Any) -> Any:
    side, x, a, angle, middle = _prepared(trace, self, x, alpha, beta)
    power, weights = _exponents(x, a, angle)
    part = np.sum(np.exp(weights - np.exp(power)), axis=-1) / math.pi
    found = np.where(a < 1, 0.5 - angle / math.pi + part, 1 - part)
    found = np.where(middle, 0.5 - angle / math.pi, found)
    return np.where(side < 0, 1 - found, found)
