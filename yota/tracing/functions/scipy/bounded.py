"""Distributions on a half line or an interval, in standard form, as plain NumPy and scipy.special."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.functions.scipy.family import Family, special
from yota.tracing.functions.scipy.unbounded import UNBOUNDED
from yota.tracing.untyped import np

__all__ = ["BOUNDED"]


def _log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, by the form that keeps its digits (Maechler 2012)."""
    near = x < math.log(2)
    return np.where(
        near, np.log(-np.expm1(-np.where(near, x, 1.0))), np.log1p(-np.exp(-np.where(near, math.log(2), x)))
    )


def _odds(p: Any) -> Any:
    return p / (1 - p)


BOUNDED: dict[str, Family] = {
    "gamma": Family(
        logpdf=lambda z, a: special("xlogy")(a - 1, z) - z - special("gammaln")(a),
        cdf=lambda z, a: special("gammainc")(a, z),
        sf=lambda z, a: special("gammaincc")(a, z),
        low=0.0,
        ppf=lambda q, a: special("gammaincinv")(a, q),
        isf=lambda q, a: special("gammainccinv")(a, q),
    ),
    "beta": Family(
        logpdf=lambda z, a, b: special("xlogy")(a - 1, z) + special("xlog1py")(b - 1, -z) - special("betaln")(a, b),
        cdf=lambda z, a, b: special("betainc")(a, b, z),
        sf=lambda z, a, b: special("betaincc")(a, b, z),
        low=0.0,
        high=1.0,
        ppf=lambda q, a, b: special("betaincinv")(a, b, q),
        isf=lambda q, a, b: special("betainccinv")(a, b, q),
    ),
    "chi2": Family(
        logpdf=lambda z, v: (
            special("xlogy")(0.5 * v - 1, z) - 0.5 * z - special("gammaln")(0.5 * v) - 0.5 * math.log(2) * v
        ),
        cdf=lambda z, v: special("gammainc")(0.5 * v, 0.5 * z),
        sf=lambda z, v: special("gammaincc")(0.5 * v, 0.5 * z),
        low=0.0,
        ppf=lambda q, v: 2 * special("gammaincinv")(0.5 * v, q),
        isf=lambda q, v: 2 * special("gammainccinv")(0.5 * v, q),
    ),
    "expon": Family(
        logpdf=lambda z: -z,
        cdf=lambda z: -np.expm1(-z),
        sf=lambda z: np.exp(-z),
        logcdf=_log1mexp,
        logsf=lambda z: -z,
        low=0.0,
        ppf=lambda q: -np.log1p(-q),
        isf=lambda q: -np.log(q),
    ),
    "uniform": Family(
        logpdf=lambda z: 0.0 * z,
        cdf=lambda z: z,
        sf=lambda z: 1 - z,
        low=0.0,
        high=1.0,
        ppf=lambda q: 1.0 * q,
        isf=lambda q: 1 - q,
    ),
    "lognorm": Family(
        logpdf=lambda z, s: UNBOUNDED["norm"].logpdf(np.log(z) / s) - np.log(s * z),
        cdf=lambda z, s: special("ndtr")(np.log(z) / s),
        sf=lambda z, s: special("ndtr")(-np.log(z) / s),
        logcdf=lambda z, s: special("log_ndtr")(np.log(z) / s),
        logsf=lambda z, s: special("log_ndtr")(-np.log(z) / s),
        low=0.0,
        open=True,
        ppf=lambda q, s: np.exp(s * special("ndtri")(q)),
        isf=lambda q, s: np.exp(-s * special("ndtri")(q)),
    ),
    "halfnorm": Family(
        logpdf=lambda z: 0.5 * math.log(2 / math.pi) - 0.5 * z * z,
        cdf=lambda z: special("erf")(z / math.sqrt(2)),
        sf=lambda z: 2 * special("ndtr")(-z),
        ppf=lambda q: special("ndtri")(0.5 + 0.5 * q),
        isf=lambda q: -special("ndtri")(0.5 * q),
        low=0.0,
    ),
    "halfcauchy": Family(
        logpdf=lambda z: math.log(2 / math.pi) - 2 * np.log(np.hypot(1.0, z)),
        cdf=lambda z: 2 / math.pi * np.arctan(z),
        sf=lambda z: 2 / math.pi * np.arctan2(1.0, z),
        ppf=lambda q: np.tan(0.5 * math.pi * q),
        isf=lambda q: 1 / np.tan(0.5 * math.pi * q),
        low=0.0,
    ),
    "rayleigh": Family(
        logpdf=lambda z: np.log(z) - 0.5 * z * z,
        cdf=lambda z: -np.expm1(-0.5 * z * z),
        sf=lambda z: np.exp(-0.5 * z * z),
        logsf=lambda z: -0.5 * z * z,
        ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
        isf=lambda q: np.sqrt(-2 * np.log(q)),
        low=0.0,
    ),
    "weibull_min": Family(
        logpdf=lambda z, c: np.log(c) + special("xlogy")(c - 1, z) - z**c,
        cdf=lambda z, c: -np.expm1(-(z**c)),
        sf=lambda z, c: np.exp(-(z**c)),
        logsf=lambda z, c: -(z**c),
        ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
        isf=lambda q, c: (-np.log(q)) ** (1.0 / c),
        low=0.0,
    ),
    "pareto": Family(
        logpdf=lambda z, b: np.log(b) - (b + 1) * np.log(z),
        cdf=lambda z, b: -np.expm1(-b * np.log(z)),
        sf=lambda z, b: z ** (-b),
        logsf=lambda z, b: -b * np.log(z),
        ppf=lambda q, b: np.exp(-np.log1p(-q) / b),
        isf=lambda q, b: q ** (-1.0 / b),
        low=1.0,
    ),
    "invgamma": Family(
        logpdf=lambda z, a: -(a + 1) * np.log(z) - special("gammaln")(a) - 1 / z,
        cdf=lambda z, a: special("gammaincc")(a, 1 / z),
        sf=lambda z, a: special("gammainc")(a, 1 / z),
        ppf=lambda q, a: 1 / special("gammainccinv")(a, q),
        isf=lambda q, a: 1 / special("gammaincinv")(a, q),
        low=0.0,
        open=True,
    ),
    "maxwell": Family(
        logpdf=lambda z: 0.5 * math.log(2 / math.pi) + 2 * np.log(z) - 0.5 * z * z,
        cdf=lambda z: special("gammainc")(1.5, 0.5 * z * z),
        sf=lambda z: special("gammaincc")(1.5, 0.5 * z * z),
        ppf=lambda q: np.sqrt(2 * special("gammaincinv")(1.5, q)),
        isf=lambda q: np.sqrt(2 * special("gammainccinv")(1.5, q)),
        low=0.0,
    ),
    "chi": Family(
        logpdf=lambda z, v: (
            math.log(2) * (1 - 0.5 * v) - special("gammaln")(0.5 * v) + special("xlogy")(v - 1, z) - 0.5 * z * z
        ),
        cdf=lambda z, v: special("gammainc")(0.5 * v, 0.5 * z * z),
        sf=lambda z, v: special("gammaincc")(0.5 * v, 0.5 * z * z),
        ppf=lambda q, v: np.sqrt(2 * special("gammaincinv")(0.5 * v, q)),
        isf=lambda q, v: np.sqrt(2 * special("gammainccinv")(0.5 * v, q)),
        low=0.0,
    ),
    "f": Family(
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
    ),
    "powerlaw": Family(
        logpdf=lambda z, a: np.log(a) + special("xlogy")(a - 1, z),
        cdf=lambda z, a: z**a,
        sf=lambda z, a: -special("powm1")(z, a),
        logcdf=lambda z, a: a * np.log(z),
        ppf=lambda q, a: q ** (1.0 / a),
        isf=lambda q, a: np.exp(np.log1p(-q) / a),
        low=0.0,
        high=1.0,
    ),
}
"""By the names of SciPy's distributions."""
BOUNDED["erlang"] = BOUNDED["gamma"]
