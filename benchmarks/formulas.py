"""Well-known formulas of many kinds, by which the time to a first gradient is measured.

Each takes an array namespace, ``numpy`` or ``jax.numpy``, and a point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["FORMULAS", "Formula"]

_T = np.linspace(0.1, 5.0, 40)
_NOISE = np.sin(37.0 * _T)
_Y = 2.5 * np.exp(-0.8 * _T) + 0.05 * _NOISE
_PARTNERS = np.array([(i, j) for i in range(4) for j in range(i)])


@dataclass(frozen=True, slots=True)
class Formula:
    """A function of ``size`` numbers; the point to evaluate it at lies between ``low`` and ``high``."""

    name: str
    function: Callable[[Any, Any], Any]
    size: int
    low: float = 0.4
    high: float = 1.6

    def point(self) -> np.ndarray:
        """Where it is evaluated."""
        return self.low + (self.high - self.low) * (0.5 + 0.5 * np.sin(1.0 + np.arange(self.size)))


def _chain(xp: Any, x: Any) -> Any:
    """Rosenbrock's valley."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _chain_in_a_loop(_: Any, x: Any) -> Any:
    """The same, number by number."""
    return sum(100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2 for k in range(len(x) - 1))


def _ackley(xp: Any, x: Any) -> Any:
    spread, waves = xp.sqrt(xp.mean(x**2)), xp.mean(xp.cos(2 * np.pi * x))
    return 20.0 + np.e - 20.0 * xp.exp(-0.2 * spread) - xp.exp(waves)


def _griewank(xp: Any, x: Any) -> Any:
    return 1.0 + xp.sum(x**2) / 4000.0 - xp.prod(xp.cos(x / xp.sqrt(np.arange(1.0, len(x) + 1))))


def _powell(_: Any, x: Any) -> Any:
    a, b, c, d = x
    return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


def _wood(_: Any, x: Any) -> Any:
    a, b, c, d = x
    valleys = 100 * (b - a**2) ** 2 + (1 - a) ** 2 + 90 * (d - c**2) ** 2 + (1 - c) ** 2
    return valleys + 10.1 * ((b - 1) ** 2 + (d - 1) ** 2) + 19.8 * (b - 1) * (d - 1)


def _beale(_: Any, x: Any) -> Any:
    return sum((c - x[0] * (1 - x[1] ** k)) ** 2 for k, c in enumerate((1.5, 2.25, 2.625), start=1))


def _goldstein_price(_: Any, x: Any) -> Any:
    a, b = x
    one = 1 + (a + b + 1) ** 2 * (19 - 14 * a + 3 * a**2 - 14 * b + 6 * a * b + 3 * b**2)
    return one * (30 + (2 * a - 3 * b) ** 2 * (18 - 32 * a + 12 * a**2 + 48 * b - 36 * a * b + 27 * b**2))


def _helical(xp: Any, x: Any) -> Any:
    turn, radius = xp.arctan2(x[1], x[0]) / (2 * np.pi), xp.hypot(x[0], x[1])
    return 100 * ((x[2] - 10 * turn) ** 2 + (radius - 1) ** 2) + x[2] ** 2


def _logarithms(xp: Any, x: Any) -> Any:
    """A sum of squared logarithms and a product to a small power."""
    return xp.sum(xp.log(x - 0.2) ** 2 + xp.log(10 - x) ** 2) - xp.prod(x) ** 0.2


def _rational_fit(_: Any, x: Any) -> Any:
    """Eleven quotients of quadratics."""
    total = 0.0
    for number in range(1, 12):
        u = 4.0 / number
        found = x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])
        total = total + (0.2 / number - found) ** 2
    return total


def _two_exponentials(xp: Any, x: Any) -> Any:
    return sum((xp.exp(-0.1 * k * x[0]) - x[3] * xp.exp(-0.1 * k * x[1]) - x[2] * 0.05 * k) ** 2 for k in range(1, 11))


def _exponential_fit(xp: Any, x: Any) -> Any:
    return xp.sum((x[0] * xp.exp(-x[1] * _T) + x[2] - _Y) ** 2)


def _growth_fit(xp: Any, x: Any) -> Any:
    return xp.mean((x[0] / (1 + xp.exp(x[1] - x[2] * _T)) ** (1 / x[3]) - _Y) ** 2)


def _rational_curve(xp: Any, x: Any) -> Any:
    top = x[0] + x[1] * _T + x[2] * _T**2 + x[3] * _T**3
    return xp.sum((top / (1 + x[4] * _T + x[5] * _T**2 + x[6] * _T**3) - _Y) ** 2)


def _peaks(xp: Any, x: Any) -> Any:
    widths = [x[3 * k] * xp.exp(-(((_T - x[3 * k + 1]) / x[3 * k + 2]) ** 2)) for k in range(3)]
    return xp.sum((widths[0] + widths[1] + widths[2] - _Y) ** 2)


def _wells(xp: Any, x: Any) -> Any:
    """Sharp wells at five places."""
    return -sum(1 / (xp.sum((x - 0.3 * k) ** 2) + 0.1 * k) for k in range(1, 6))


def _bumps(xp: Any, x: Any) -> Any:
    places = np.outer(np.arange(1, 5), np.ones(len(x))) * 0.25
    return -xp.sum(np.array([1.0, 1.2, 3.0, 3.2]) * xp.exp(-xp.sum(8 * (x - places) ** 2, axis=1)))


def _lennard_jones(xp: Any, x: Any) -> Any:
    points = 3.0 * xp.reshape(x, (4, 3)) + np.eye(4, 3)
    squares = xp.sum((points[_PARTNERS[:, 0]] - points[_PARTNERS[:, 1]]) ** 2, axis=1)
    return 4 * xp.sum(squares**-6 - squares**-3)


def _coulomb_loop(xp: Any, x: Any) -> Any:
    total = 0.0
    for i in range(4):
        for j in range(i):
            apart = sum((x[3 * i + k] - x[3 * j + k] + (i - j)) ** 2 for k in range(3))
            total = total + 1.0 / xp.sqrt(apart)
    return total


def _van_der_waals(xp: Any, x: Any) -> Any:
    t, v, a, b = x
    return 8.314 * t * xp.log((v - 0.1 * b) / t**1.5) + a / v


def _peng_robinson(xp: Any, x: Any) -> Any:
    t, v, w = x
    kappa = 0.37464 + 1.54226 * w - 0.26992 * w**2
    alpha = (1 + kappa * (1 - xp.sqrt(t / 5))) ** 2
    return t / (v - 0.07) - 0.457 * alpha / (v**2 + 0.15 * v - 0.006)


def _debye_hueckel(xp: Any, x: Any) -> Any:
    strength = 0.5 * xp.sum(x * np.arange(1, len(x) + 1) ** 2)
    return -0.509 * xp.sqrt(strength) / (1 + 1.5 * xp.sqrt(strength)) + 0.1 * strength


def _black_scholes(xp: Any, x: Any) -> Any:
    """A call's price, its normal distribution by a logistic one."""
    spot, strike, rate, volatility, years = x
    one = (xp.log(spot / strike) + (rate + volatility**2 / 2) * years) / (volatility * xp.sqrt(years))
    two = one - volatility * xp.sqrt(years)
    normal = lambda z: 1 / (1 + xp.exp(-0.07056 * z**3 - 1.5976 * z))  # noqa: E731
    return spot * normal(one) - strike * xp.exp(-rate * years) * normal(two)


def _nelson_siegel(xp: Any, x: Any) -> Any:
    decay = (1 - xp.exp(-_T / x[3])) / (_T / x[3])
    return xp.sum((x[0] + x[1] * decay + x[2] * (decay - xp.exp(-_T / x[3])) - _Y) ** 2)


def _arm(xp: Any, x: Any) -> Any:
    """How far the hand of a planar arm is from a place."""
    total, height, width = 0.0, 0.0, 0.0
    for angle in x:
        total = total + angle
        width, height = width + xp.cos(total), height + xp.sin(total)
    return (width - 2.0) ** 2 + (height - 1.0) ** 2


def _pendulum(xp: Any, x: Any) -> Any:
    """Energy of a double pendulum."""
    a, b, u, v = x
    return u**2 + 0.5 * v**2 + u * v * xp.cos(a - b) - 9.81 * (2 * xp.cos(a) + xp.cos(b))


def _henon_heiles(xp: Any, x: Any) -> Any:
    return 0.5 * xp.sum(x**2) + x[0] ** 2 * x[1] - x[1] ** 3 / 3


def _michaelis_menten(_: Any, x: Any) -> Any:
    """A fit by steps of Runge and Kutta."""
    amount, loss = x[2], 0.0
    rate = lambda s: -x[0] * s / (x[1] + s)  # noqa: E731
    for step in range(5):
        one = rate(amount)
        two = rate(amount + 0.1 * one)
        three = rate(amount + 0.1 * two)
        amount = amount + 0.2 / 6 * (one + 2 * two + 2 * three + rate(amount + 0.2 * three))
        loss = loss + (amount - _Y[step]) ** 2
    return loss


def _lotka_volterra(_: Any, x: Any) -> Any:
    prey, hunters = 1.0, 0.5
    for _ in range(8):
        prey, hunters = prey + 0.1 * prey * (x[0] - x[1] * hunters), hunters + 0.1 * hunters * (x[2] * prey - x[3])
    return (prey - 1) ** 2 + (hunters - 1) ** 2


def _normal(xp: Any, x: Any) -> Any:
    """Logarithm of a likelihood with a location and a scale."""
    return xp.sum(0.5 * ((_Y - x[0]) / x[1]) ** 2) + len(_Y) * xp.log(x[1])


def _student(xp: Any, x: Any) -> Any:
    return xp.sum(0.5 * (x[2] + 1) * xp.log1p(((_Y - x[0]) / x[1]) ** 2 / x[2])) + len(_Y) * xp.log(x[1])


def _logistic_regression(xp: Any, x: Any) -> Any:
    table = np.sin(np.outer(_T, np.arange(1, len(x) + 1)))
    scores = table @ x
    return xp.sum(xp.logaddexp(0.0, scores) - (_NOISE > 0) * scores) + 0.5 * xp.sum(x**2)


def _poisson_regression(xp: Any, x: Any) -> Any:
    scores = np.vander(_T / 5, len(x)) @ x
    return xp.sum(xp.exp(scores) - np.floor(_T) * scores)


def _mixture(xp: Any, x: Any) -> Any:
    one = xp.exp(-0.5 * ((_Y - x[0]) / x[1]) ** 2) / x[1]
    two = xp.exp(-0.5 * ((_Y - x[2]) / x[3]) ** 2) / x[3]
    return -xp.sum(xp.log(0.3 * one + 0.7 * two))


def _network(xp: Any, x: Any) -> Any:
    hidden = xp.tanh(xp.reshape(x[:12], (4, 3)) @ np.array([0.5, -0.2, 0.1]) + x[12:16])
    return (xp.sum(hidden * x[16:20]) - 0.7) ** 2


def _xor(xp: Any, x: Any) -> Any:
    total = 0.0
    sigmoid = lambda z: 1 / (1 + xp.exp(-z))  # noqa: E731
    for a, b, target in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        one, two = sigmoid(x[0] * a + x[1] * b + x[2]), sigmoid(x[3] * a + x[4] * b + x[5])
        total = total + (sigmoid(x[6] * one + x[7] * two + x[8]) - target) ** 2
    return total


def _softmax(xp: Any, x: Any) -> Any:
    weights = xp.exp(x - xp.max(x))
    return -xp.log(weights[0] / xp.sum(weights))


def _quadratic_form(xp: Any, x: Any) -> Any:
    matrix = 1.0 / (1.0 + np.add.outer(np.arange(len(x)), np.arange(len(x))))
    return 0.5 * x @ (matrix @ x) - xp.sum(x)


def _determinant(_: Any, x: Any) -> Any:
    a, b, c, d, e, f, g, h, i = x
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def _heart(_: Any, x: Any) -> Any:
    return (x[0] ** 2 + x[1] ** 2 + x[2] ** 2 - 1) ** 3 - (x[0] ** 2 + 0.1 * x[1] ** 2) * x[2] ** 3


def _trigonometric(xp: Any, x: Any) -> Any:
    total = xp.sum(xp.cos(x))
    return xp.sum((len(x) - total + np.arange(1, len(x) + 1) * (1 - xp.cos(x)) - xp.sin(x)) ** 2)


def _broyden(xp: Any, x: Any) -> Any:
    inner = (3 - 2 * x[1:-1]) * x[1:-1] - x[:-2] - 2 * x[2:] + 1
    return xp.sum(inner**2) + ((3 - 2 * x[0]) * x[0] - 2 * x[1] + 1) ** 2


def _penalty(xp: Any, x: Any) -> Any:
    y = 1 + (x + 1) / 4
    steps = (y[:-1] - 1) ** 2 * (1 + 10 * xp.sin(np.pi * y[1:]) ** 2)
    return np.pi / len(x) * (10 * xp.sin(np.pi * y[0]) ** 2 + xp.sum(steps) + (y[-1] - 1) ** 2)


FORMULAS: tuple[Formula, ...] = (
    Formula("sphere", lambda xp, x: xp.sum(x**2), 10),
    Formula("ellipsoid", lambda xp, x: xp.sum(10.0 ** np.arange(6) * x**2), 6),
    Formula("Rosenbrock, 2", _chain, 2),
    Formula("Rosenbrock, 20", _chain, 20),
    Formula("Rosenbrock in a loop, 10", _chain_in_a_loop, 10),
    Formula("Rastrigin", lambda xp, x: 10 * len(x) + xp.sum(x**2 - 10 * xp.cos(2 * np.pi * x)), 8),
    Formula("Ackley", _ackley, 5),
    Formula("Griewank", _griewank, 6),
    Formula("Schwefel", lambda xp, x: -xp.sum(x * xp.sin(xp.sqrt(xp.abs(x)))), 4),
    Formula("Styblinski and Tang", lambda xp, x: 0.5 * xp.sum(x**4 - 16 * x**2 + 5 * x), 6),
    Formula("Alpine", lambda xp, x: xp.sum(xp.abs(x * xp.sin(x) + 0.1 * x)), 5),
    Formula("Zakharov", lambda xp, x: xp.sum(x**2) + (w := xp.sum(np.arange(1, 7) * x) / 2) ** 2 + w**4, 6),
    Formula("Dixon and Price", lambda xp, x: (x[0] - 1) ** 2 + xp.sum((2 * x[1:] ** 2 - x[:-1]) ** 2), 10),
    Formula("Trid", lambda xp, x: xp.sum((x - 1) ** 2) - xp.sum(x[1:] * x[:-1]), 6),
    Formula("Powell", _powell, 4),
    Formula("Wood", _wood, 4),
    Formula("Beale", _beale, 2),
    Formula("Booth", lambda _, x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, 2),
    Formula("Himmelblau", lambda _, x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2, 2),
    Formula("Six-hump camel", lambda _, x: (4 - 2.1 * x[0] ** 2 + x[0] ** 4 / 3) * x[0] ** 2 + x[0] * x[1], 2),
    Formula("Easom", lambda xp, x: -xp.cos(x[0]) * xp.cos(x[1]) * xp.exp(-xp.sum((x - np.pi) ** 2)), 2),
    Formula("McCormick", lambda xp, x: xp.sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1, 2),
    Formula("Matyas", lambda _, x: 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1], 2),
    Formula("Goldstein and Price", _goldstein_price, 2),
    Formula("helical valley", _helical, 3),
    Formula("Levy's penalty", _penalty, 6),
    Formula("Broyden, tridiagonal", _broyden, 10),
    Formula("sum of trigonometric squares", _trigonometric, 5),
    Formula("ten logarithms and a product", _logarithms, 10),
    Formula("rational fit, 11 terms", _rational_fit, 4),
    Formula("two exponentials, 10 terms", _two_exponentials, 4),
    Formula("exponential fit", _exponential_fit, 3),
    Formula("Richards' growth curve", _growth_fit, 4),
    Formula("rational curve", _rational_curve, 7),
    Formula("three peaks", _peaks, 9),
    Formula("five wells", _wells, 4),
    Formula("Hartmann's bumps", _bumps, 3),
    Formula("Lennard-Jones, 4 atoms", _lennard_jones, 12),
    Formula("Coulomb in a loop, 4 charges", _coulomb_loop, 12),
    Formula("van der Waals gas", _van_der_waals, 4),
    Formula("Peng and Robinson", _peng_robinson, 3),
    Formula("Debye and Hueckel", _debye_hueckel, 4),
    Formula("Black and Scholes", _black_scholes, 5),
    Formula("Nelson and Siegel", _nelson_siegel, 4),
    Formula("planar arm", _arm, 6),
    Formula("double pendulum", _pendulum, 4),
    Formula("Henon and Heiles", _henon_heiles, 4),
    Formula("Michaelis and Menten, 5 steps", _michaelis_menten, 3),
    Formula("Lotka and Volterra, 8 steps", _lotka_volterra, 4),
    Formula("normal likelihood", _normal, 2),
    Formula("Student's likelihood", _student, 3),
    Formula("mixture of two normals", _mixture, 4),
    Formula("logistic regression", _logistic_regression, 8),
    Formula("Poisson regression", _poisson_regression, 4),
    Formula("small network", _network, 20),
    Formula("exclusive or", _xor, 9),
    Formula("softmax", _softmax, 10),
    Formula("Hilbert's quadratic form", _quadratic_form, 12),
    Formula("determinant, 3 by 3", _determinant, 9),
    Formula("heart", _heart, 3),
)
