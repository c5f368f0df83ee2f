"""Densities and distribution functions of one variable, in standard form, as plain NumPy and scipy.special."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from yota.tracing.functions.special import scipy_special

__all__ = ["CONTINUOUS", "Family", "special"]

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
        Distribution function; None where it is a sum without a closed form.
    sf
        Its complement, without cancellation.
    logcdf, logsf
        Logarithms of both; by default taken of them.
    ppf, isf
        The inverses of ``cdf`` and ``sf``; the first variable is then a probability.
    low, high
        Ends of the support; ``high`` may depend on the shapes.
    open
        Whether the lower end is no part of the support.
    allowed
        Whether the shapes are; None for all that are positive.
    """

    logpdf: _Form
    cdf: _Form | None = None
    sf: _Form | None = None
    logcdf: _Form | None = None
    logsf: _Form | None = None
    ppf: _Form | None = None
    isf: _Form | None = None
    low: float = -math.inf
    high: Callable[..., Any] | float = math.inf
    open: bool = False
    allowed: _Form | None = None


def special(name: str) -> Any:
    """A function of scipy.special."""
    return getattr(scipy_special(), name)


def _ufunc(name: str) -> _Form:
    def call(*args: Any) -> Any:
        return special(name)(*args)

    return call


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, by the form that keeps its digits (Maechler 2012)."""
    near = x < math.log(2)
    return np.where(
        near, np.log(-np.expm1(-np.where(near, x, 1.0))), np.log1p(-np.exp(-np.where(near, math.log(2), x)))
    )


def _odds(p: Any) -> Any:
    return p / (1 - p)


_NORMAL = Family(
    logpdf=lambda z: -0.5 * z * z - 0.5 * math.log(2 * math.pi),
    cdf=_ufunc("ndtr"),
    sf=lambda z: special("ndtr")(-z),
    logcdf=_ufunc("log_ndtr"),
    logsf=lambda z: special("log_ndtr")(-z),
    ppf=_ufunc("ndtri"),
    isf=lambda q: -special("ndtri")(q),
)

_STUDENT = Family(
    logpdf=lambda z, v: -special("betaln")(0.5 * v, 0.5) - 0.5 * np.log(v) - (0.5 * v + 0.5) * np.log1p(z * z / v),
    cdf=lambda z, v: special("stdtr")(v, z),
    sf=lambda z, v: special("stdtr")(v, -z),
    ppf=lambda q, v: special("stdtrit")(v, q),
    isf=lambda q, v: -special("stdtrit")(v, q),
)

_GAMMA = Family(
    logpdf=lambda z, a: special("xlogy")(a - 1, z) - z - special("gammaln")(a),
    cdf=lambda z, a: special("gammainc")(a, z),
    sf=lambda z, a: special("gammaincc")(a, z),
    low=0.0,
    ppf=lambda q, a: special("gammaincinv")(a, q),
    isf=lambda q, a: special("gammainccinv")(a, q),
)

_BETA = Family(
    logpdf=lambda z, a, b: special("xlogy")(a - 1, z) + special("xlog1py")(b - 1, -z) - special("betaln")(a, b),
    cdf=lambda z, a, b: special("betainc")(a, b, z),
    sf=lambda z, a, b: special("betaincc")(a, b, z),
    low=0.0,
    high=1.0,
    ppf=lambda q, a, b: special("betaincinv")(a, b, q),
    isf=lambda q, a, b: special("betainccinv")(a, b, q),
)

_CHI2 = Family(
    logpdf=lambda z, v: (
        special("xlogy")(0.5 * v - 1, z) - 0.5 * z - special("gammaln")(0.5 * v) - 0.5 * math.log(2) * v
    ),
    cdf=lambda z, v: special("gammainc")(0.5 * v, 0.5 * z),
    sf=lambda z, v: special("gammaincc")(0.5 * v, 0.5 * z),
    low=0.0,
    ppf=lambda q, v: 2 * special("gammaincinv")(0.5 * v, q),
    isf=lambda q, v: 2 * special("gammainccinv")(0.5 * v, q),
)

_EXPONENTIAL = Family(
    logpdf=lambda z: -z,
    cdf=lambda z: -np.expm1(-z),
    sf=lambda z: np.exp(-z),
    logcdf=_log1mexp,
    logsf=lambda z: -z,
    low=0.0,
    ppf=lambda q: -np.log1p(-q),
    isf=lambda q: -np.log(q),
)

_UNIFORM = Family(
    logpdf=lambda z: 0.0 * z,
    cdf=lambda z: z,
    sf=lambda z: 1 - z,
    low=0.0,
    high=1.0,
    ppf=lambda q: 1.0 * q,
    isf=lambda q: 1 - q,
)


def _laplace_log(z: Any) -> Any:
    """Logarithm of the distribution function, on each side by the form that keeps its digits."""
    left = np.where(z > 0, 0.0, z)
    return np.where(z > 0, np.log1p(-0.5 * np.exp(-np.abs(z))), left - math.log(2))


def _laplace(z: Any) -> Any:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z > 0, 1 - tail, tail)


def _laplace_quantile(q: Any) -> Any:
    low = q < 0.5
    return np.where(low, np.log(2 * np.where(low, q, 0.5)), -np.log(2 * (1 - np.where(low, 0.5, q))))


_LAPLACE = Family(
    logpdf=lambda z: -np.abs(z) - math.log(2),
    cdf=_laplace,
    sf=lambda z: _laplace(-z),
    logcdf=_laplace_log,
    logsf=lambda z: _laplace_log(-z),
    ppf=_laplace_quantile,
    isf=lambda q: -_laplace_quantile(q),
)

_LOGNORMAL = Family(
    logpdf=lambda z, s: _NORMAL.logpdf(np.log(z) / s) - np.log(s * z),
    cdf=lambda z, s: special("ndtr")(np.log(z) / s),
    sf=lambda z, s: special("ndtr")(-np.log(z) / s),
    logcdf=lambda z, s: special("log_ndtr")(np.log(z) / s),
    logsf=lambda z, s: special("log_ndtr")(-np.log(z) / s),
    low=0.0,
    open=True,
    ppf=lambda q, s: np.exp(s * special("ndtri")(q)),
    isf=lambda q, s: np.exp(-s * special("ndtri")(q)),
)


def _cotangent(q: Any) -> Any:
    """The cotangent of ``pi * q``; near the ends of 0 to 1 the tangent of the distance from there keeps its digits."""
    near = np.where(q > 0.5, q - 1, q)
    return 1 / np.tan(math.pi * near)


_CAUCHY = Family(
    logpdf=lambda z: -math.log(math.pi) - 2 * np.log(np.hypot(1.0, z)),
    cdf=lambda z: np.arctan2(1.0, -z) / math.pi,
    sf=lambda z: np.arctan2(1.0, z) / math.pi,
    ppf=lambda q: -_cotangent(q),
    isf=_cotangent,
)

_LOGISTIC = Family(
    logpdf=lambda z: special("log_expit")(z) + special("log_expit")(-z),
    cdf=_ufunc("expit"),
    sf=lambda z: special("expit")(-z),
    logcdf=_ufunc("log_expit"),
    logsf=lambda z: special("log_expit")(-z),
    ppf=_ufunc("logit"),
    isf=lambda q: -special("logit")(q),
)

_HALF_NORMAL = Family(
    logpdf=lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * z * z,
    cdf=lambda z: special("erf")(z / math.sqrt(2)),
    sf=lambda z: 2 * special("ndtr")(-z),
    ppf=lambda q: special("ndtri")(0.5 + 0.5 * q),
    isf=lambda q: -special("ndtri")(0.5 * q),
    low=0.0,
)

_HALF_CAUCHY = Family(
    logpdf=lambda z: math.log(2 / math.pi) - 2 * np.log(np.hypot(1.0, z)),
    cdf=lambda z: 2 / math.pi * np.arctan(z),
    sf=lambda z: 2 / math.pi * np.arctan2(1.0, z),
    ppf=lambda q: np.tan(0.5 * math.pi * q),
    isf=lambda q: 1 / np.tan(0.5 * math.pi * q),
    low=0.0,
)

_RAYLEIGH = Family(
    logpdf=lambda z: np.log(z) - 0.5 * z * z,
    cdf=lambda z: -np.expm1(-0.5 * z * z),
    sf=lambda z: np.exp(-0.5 * z * z),
    logsf=lambda z: -0.5 * z * z,
    ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
    isf=lambda q: np.sqrt(-2 * np.log(q)),
    low=0.0,
)

_WEIBULL = Family(
    logpdf=lambda z, c: np.log(c) + special("xlogy")(c - 1, z) - z**c,
    cdf=lambda z, c: -np.expm1(-(z**c)),
    sf=lambda z, c: np.exp(-(z**c)),
    logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
    isf=lambda q, c: (-np.log(q)) ** (1.0 / c),
    low=0.0,
)

_PARETO = Family(
    logpdf=lambda z, b: np.log(b) - (b + 1) * np.log(z),
    cdf=lambda z, b: -np.expm1(-b * np.log(z)),
    sf=lambda z, b: z ** (-b),
    logsf=lambda z, b: -b * np.log(z),
    ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
    isf=lambda q, b: q ** (-1.0 / b),
    low=1.0,
)

_GUMBEL = Family(
    logpdf=lambda z: -z - np.exp(-z),
    cdf=lambda z: np.exp(-np.exp(-z)),
    sf=lambda z: -np.expm1(-np.exp(-z)),
    logcdf=lambda z: -np.exp(-z),
    ppf=lambda q: -np.log(-np.log(q)),
    isf=lambda q: -np.log(-np.log1p(-q)),
)

_INVERSE_GAMMA = Family(
    logpdf=lambda z, a: -(a + 1) * np.log(z) - special("gammaln")(a) - 1 / z,
    cdf=lambda z, a: special("gammaincc")(a, 1 / z),
    sf=lambda z, a: special("gammainc")(a, 1 / z),
    ppf=lambda q, a: 1 / special("gammainccinv")(a, q),
    isf=lambda q, a: 1 / special("gammaincinv")(a, q),
    low=0.0,
    open=True,
)

_GUMBEL_LEFT = Family(
    logpdf=lambda z: z - np.exp(z),
    cdf=lambda z: -np.expm1(-np.exp(z)),
    sf=lambda z: np.exp(-np.exp(z)),
    logsf=lambda z: -np.exp(z),
    ppf=lambda q: np.log(-np.log1p(-q)),
    isf=lambda q: np.log(-np.log(q)),
)

_MAXWELL = Family(
    logpdf=lambda z: 0.5 * math.log(2 / math.pi) + 2 * np.log(z) - 0.5 * z * z,
    cdf=lambda z: special("gammainc")(1.5, 0.5 * z * z),
    sf=lambda z: special("gammaincc")(1.5, 0.5 * z * z),
    ppf=lambda q: np.sqrt(2 * special("gammaincinv")(1.5, q)),
    isf=lambda q: np.sqrt(2 * special("gammainccinv")(1.5, q)),
    low=0.0,
)

_CHI = Family(
    logpdf=lambda z, v: (
        math.log(2) * (1 - 0.5 * v) - special("gammaln")(0.5 * v) + special("xlogy")(v - 1, z) - 0.5 * z * z
    ),
    cdf=lambda z, v: special("gammainc")(0.5 * v, 0.5 * z * z),
    sf=lambda z, v: special("gammaincc")(0.5 * v, 0.5 * z * z),
    ppf=lambda q, v: np.sqrt(2 * special("gammaincinv")(0.5 * v, q)),
    isf=lambda q, v: np.sqrt(2 * special("gammainccinv")(0.5 * v, q)),
    low=0.0,
)

_FISHER = Family(
    logpdf=lambda z, n, m: (
        0.5 * m * np.log(m)
        + 0.5 * n * np.log(n)
        + special("xlogy")(0.5 * n - 1, z)
        - 0.5 * (n + m) * np.log(m + n * z)
        - special("betaln")(0.5 * n, 0.5 * m)
    ),
    cdf=lambda z, n, m: special("betainc")(0.5 * n, 0.5 * m, n * z / (m + n * z)),
    sf=lambda z, n, m: special("betainc")(0.5 * m, 0.5 * n, m / (m + n * z)),
    ppf=lambda q, n, m: _odds(special("betaincinv")(0.5 * n, 0.5 * m, q)) * m / n,
    isf=lambda q, n, m: m / n / _odds(special("betaincinv")(0.5 * m, 0.5 * n, q)),
    low=0.0,
)

_POWER = Family(
    logpdf=lambda z, a: np.log(a) + special("xlogy")(a - 1, z),
    cdf=lambda z, a: z**a,
    sf=lambda z, a: -special("powm1")(z, a),
    logcdf=lambda z, a: a * np.log(z),
    ppf=lambda q, a: q ** (1.0 / a),
    isf=lambda q, a: np.exp(np.log1p(-q) / a),
    low=0.0,
    high=1.0,
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
    "halfnorm": _HALF_NORMAL,
    "halfcauchy": _HALF_CAUCHY,
    "rayleigh": _RAYLEIGH,
    "weibull_min": _WEIBULL,
    "pareto": _PARETO,
    "gumbel_r": _GUMBEL,
    "invgamma": _INVERSE_GAMMA,
    "gumbel_l": _GUMBEL_LEFT,
    "maxwell": _MAXWELL,
    "chi": _CHI,
    "erlang": _GAMMA,
    "f": _FISHER,
    "powerlaw": _POWER,
}
"""By the names of SciPy's distributions."""
