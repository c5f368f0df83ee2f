"""Distributions that are recorded by SciPy's own formulas, or by others where those cost more or lose digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from yota.tracing.functions.scipy.special import scipy_special
from yota.tracing.untyped import np

_Formulas = Mapping[str, Callable[..., Any]]


def special(name: str) -> Any:
    """A function of scipy.special."""
    return getattr(scipy_special(), name)


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, by the form that keeps its digits (Maechler 2012)."""
    near = x < math.log(2)
    return np.where(
        near, np.log(-np.expm1(-np.where(near, x, 1.0))), np.log1p(-np.exp(-np.where(near, math.log(2), x)))
    )


def _odds(p: Any) -> Any:
    return p / (1 - p)


def _normal(z: Any) -> Any:
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi)


def _laplace(z: Any) -> Any:
    # The slope of the absolute value is 0 at 0, and the density is not.
    tail = 0.5 * np.exp(np.where(z > 0, -z, z))
    return np.where(z > 0, 1 - tail, tail)


def _laplace_log(z: Any) -> Any:
    """Logarithm of the distribution function, on each side by the form that keeps its digits."""
    left = np.where(z > 0, 0.0, z)
    return np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), left - math.log(2))


CONTINUOUS: dict[str, _Formulas] = {
    **{name: {} for name in "beta chi chi2 erlang gamma gumbel_l gumbel_r halfcauchy".split()},
    **{name: {} for name in "invgamma maxwell rayleigh weibull_min".split()},
    "cauchy": {"logpdf": lambda z: -math.log(math.pi) - 2 * np.log(np.hypot(1.0, z))},
    "expon": {"logcdf": _log1mexp},
    # SciPy's forms by fdtr cost more derivatives, and its isf has few digits of a small probability.
    "f": {
        "cdf": lambda z, n, m: special("betainc")(0.5 * n, 0.5 * m, n * z / (m + n * z)),
        "sf": lambda z, n, m: special("betainc")(0.5 * m, 0.5 * n, m / (m + n * z)),
        "ppf": lambda q, n, m: _odds(special("betaincinv")(0.5 * n, 0.5 * m, q)) * m / n,
        "isf": lambda q, n, m: m / n / _odds(special("betaincinv")(0.5 * m, 0.5 * n, q)),
    },
    "halfnorm": {"logpdf": lambda z: _normal(z) + math.log(2)},
    "laplace": {
        "logpdf": lambda z: -np.abs(z) - math.log(2),
        "cdf": _laplace,
        "sf": lambda z: _laplace(-z),
        "logcdf": _laplace_log,
        "logsf": lambda z: _laplace_log(-z),
    },
    "logistic": {"logpdf": lambda z: special("log_expit")(z) + special("log_expit")(-z)},
    "lognorm": {"logpdf": lambda z, s: _normal(np.log(z) / s) - np.log(s * z)},
    "norm": {"logpdf": _normal},
    "pareto": {
        "logpdf": lambda z, b: np.log(b) - (b + 1) * np.log(z),
        "cdf": lambda z, b: -np.expm1(-b * np.log(z)),
        "logsf": lambda z, b: -b * np.log(z),
        "ppf": lambda q, b: np.exp(-np.log1p(-q) / b),
    },
    "powerlaw": {"isf": lambda q, a: np.exp(np.log1p(-q) / a)},
    "t": {
        "logpdf": lambda z, v: (
            -special("betaln")(0.5 * v, 0.5) - 0.5 * np.log(v) - (0.5 * v + 0.5) * np.log1p(z * z / v)
        )
    },
    "uniform": {"logpdf": lambda z: 0.0 * z},
}
"""By the names of SciPy's distributions and methods, of the standard variable and the shapes.

A method that is left out is SciPy's private one.
"""
OPEN = ("invgamma", "lognorm")
"""Distributions whose support does not include its lower end."""

DISCRETE: dict[str, _Formulas] = {
    **{name: {} for name in "betabinom binom geom nbinom poisson".split()},
    "bernoulli": {
        "cdf": lambda k, p: np.where(k < 1, 1 - p, 1.0),
        "sf": lambda k, p: np.where(k < 1, p, 0.0),
        "logcdf": lambda k, p: np.where(k < 1, np.log1p(-p), 0.0),
        "logsf": lambda k, p: np.where(k < 1, np.log(p), -np.inf),
    },
    "logser": {"logpmf": lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p))},
    "planck": {"logpmf": lambda k, rate: np.log(-np.expm1(-rate)) - rate * k},
}
"""The same of whole numbers."""
