"""Densities and distribution functions of one variable, in standard form, as plain NumPy and scipy.special."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from yota.tracing.special import scipy_special

__all__ = ["CONTINUOUS", "DISCRETE", "Family"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy

_Form = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Family:
    """A distribution with location 0 and scale 1; each function takes the variable, then the shapes.

    Parameters
    ----------
    logpdf
        Logarithm of the density, or of the probability.
    cdf
        Distribution function.
    sf
        Its complement, without cancellation.
    logcdf, logsf
        Logarithms of both; by default taken of them.
    low, high
        Ends of the support; ``high`` may depend on the shapes.
    open
        Whether the lower end is no part of the support.
    """

    logpdf: _Form
    cdf: _Form
    sf: _Form
    logcdf: _Form | None = None
    logsf: _Form | None = None
    low: float = -math.inf
    high: Callable[..., Any] | float = math.inf
    open: bool = False


def _special(name: str) -> Any:
    return getattr(scipy_special(), name)


def _ufunc(name: str) -> _Form:
    def call(*args: Any) -> Any:
        return _special(name)(*args)

    return call


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, by the form that keeps its digits (Maechler 2012)."""
    near = x < math.log(2)
    return np.where(
        near, np.log(-np.expm1(-np.where(near, x, 1.0))), np.log1p(-np.exp(-np.where(near, math.log(2), x)))
    )


_NORMAL = Family(
    logpdf=lambda z: -0.5 * z * z - 0.5 * math.log(2 * math.pi),
    cdf=_ufunc("ndtr"),
    sf=lambda z: _special("ndtr")(-z),
    logcdf=_ufunc("log_ndtr"),
    logsf=lambda z: _special("log_ndtr")(-z),
)

_STUDENT = Family(
    logpdf=lambda z, v: -_special("betaln")(0.5 * v, 0.5) - 0.5 * np.log(v) - (0.5 * v + 0.5) * np.log1p(z * z / v),
    cdf=lambda z, v: _special("stdtr")(v, z),
    sf=lambda z, v: _special("stdtr")(v, -z),
)

_GAMMA = Family(
    logpdf=lambda z, a: _special("xlogy")(a - 1, z) - z - _special("gammaln")(a),
    cdf=lambda z, a: _special("gammainc")(a, z),
    sf=lambda z, a: _special("gammaincc")(a, z),
    low=0.0,
)

_BETA = Family(
    logpdf=lambda z, a, b: _special("xlogy")(a - 1, z) + _special("xlog1py")(b - 1, -z) - _special("betaln")(a, b),
    cdf=lambda z, a, b: _special("betainc")(a, b, z),
    sf=lambda z, a, b: _special("betaincc")(a, b, z),
    low=0.0,
    high=1.0,
)

_CHI2 = Family(
    logpdf=lambda z, v: (
        _special("xlogy")(0.5 * v - 1, z) - 0.5 * z - _special("gammaln")(0.5 * v) - 0.5 * math.log(2) * v
    ),
    cdf=lambda z, v: _special("gammainc")(0.5 * v, 0.5 * z),
    sf=lambda z, v: _special("gammaincc")(0.5 * v, 0.5 * z),
    low=0.0,
)

_EXPONENTIAL = Family(
    logpdf=lambda z: -z,
    cdf=lambda z: -np.expm1(-z),
    sf=lambda z: np.exp(-z),
    logcdf=_log1mexp,
    logsf=lambda z: -z,
    low=0.0,
)

_UNIFORM = Family(
    logpdf=lambda z: 0.0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    low=0.0,
    high=1.0,
)


def _laplace_log(z: Any) -> Any:
    """Logarithm of the distribution function, on each side by the form that keeps its digits."""
    left = np.where(z > 0, 0.0, z)
    return np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), left - math.log(2))


def _laplace(z: Any) -> Any:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0, 1 - tail, tail)


_LAPLACE = Family(
    logpdf=lambda z: -np.abs(z) - math.log(2),
    cdf=_laplace,
    sf=lambda z: _laplace(-z),
    logcdf=_laplace_log,
    logsf=lambda z: _laplace_log(-z),
)

_LOGNORMAL = Family(
    logpdf=lambda z, s: _NORMAL.logpdf(np.log(z) / s) - np.log(s * z),
    cdf=lambda z, s: _special("ndtr")(np.log(z) / s),
    sf=lambda z, s: _special("ndtr")(-np.log(z) / s),
    logcdf=lambda z, s: _special("log_ndtr")(np.log(z) / s),
    logsf=lambda z, s: _special("log_ndtr")(-np.log(z) / s),
    low=0.0,
    open=True,
)

_CAUCHY = Family(
    logpdf=lambda z: -math.log(math.pi) - 2 * np.log(np.hypot(1.0, z)),
    cdf=lambda z: np.arctan2(1.0, -z) / math.pi,
    sf=lambda z: np.arctan2(1.0, z) / math.pi,
)

_LOGISTIC = Family(
    logpdf=lambda z: _special("log_expit")(z) + _special("log_expit")(-z),
    cdf=_ufunc("expit"),
    sf=lambda z: _special("expit")(-z),
    logcdf=_ufunc("log_expit"),
    logsf=lambda z: _special("log_expit")(-z),
)

CONTINUOUS: dict[str, Family] = {
    "norm": _NORMAL,
    "t": _STUDENT,
    "gamma": _GAMMA,
    "beta": _BETA,
    "chi2": _CHI2,
    "expon": _EXPONENTIAL,
    "uniform": _UNIFORM,
    "laplace": _LAPLACE,
    "lognorm": _LOGNORMAL,
    "cauchy": _CAUCHY,
    "logistic": _LOGISTIC,
}
"""By the names of SciPy's distributions."""

DISCRETE: dict[str, Family] = {
    "poisson": Family(
        logpdf=lambda k, mu: _special("xlogy")(k, mu) - mu - _special("gammaln")(k + 1),
        cdf=lambda k, mu: _special("gammaincc")(k + 1, mu),
        sf=lambda k, mu: _special("gammainc")(k + 1, mu),
        low=0.0,
    ),
    "binom": Family(
        logpdf=lambda k, n, p: (
            _special("xlogy")(k, p)
            + _special("xlog1py")(n - k, -p)
            - _special("betaln")(k + 1, n - k + 1)
            - np.log(n + 1)
        ),
        cdf=lambda k, n, p: _special("betaincc")(k + 1, n - k, p),
        sf=lambda k, n, p: _special("betainc")(k + 1, n - k, p),
        low=0.0,
        high=lambda n, p: n,
    ),
}
"""By the names of SciPy's distributions; the variable is whole."""
