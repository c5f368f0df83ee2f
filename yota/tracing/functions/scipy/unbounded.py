"""Distributions on the whole line, in standard form, as plain NumPy and scipy.special."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.family import Family, special
from yota.tracing.untyped import np

__all__ = ["UNBOUNDED"]


def _ufunc(name: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return special(name)(*args)

    return call


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


def _cotangent(q: Any) -> Any:
    """The cotangent of ``pi * q``; near the ends of 0 to 1 the tangent of the distance from there keeps its digits."""
    near = np.where(q > 0.5, q - 1, q)
    return 1 / np.tan(math.pi * near)


UNBOUNDED: dict[str, Family] = {
    "norm": Family(
        logpdf=lambda z: -0.5 * z * z - 0.5 * math.log(2 * math.pi),
        cdf=_ufunc("ndtr"),
        sf=lambda z: special("ndtr")(-z),
        logcdf=_ufunc("log_ndtr"),
        logsf=lambda z: special("log_ndtr")(-z),
        ppf=_ufunc("ndtri"),
        isf=lambda q: -special("ndtri")(q),
    ),
    "t": Family(
        logpdf=lambda z, v: -special("betaln")(0.5 * v, 0.5) - 0.5 * np.log(v) - (0.5 * v + 0.5) * np.log1p(z * z / v),
        cdf=lambda z, v: special("stdtr")(v, z),
        sf=lambda z, v: special("stdtr")(v, -z),
        ppf=lambda q, v: special("stdtrit")(v, q),
        isf=lambda q, v: -special("stdtrit")(v, q),
    ),
    "laplace": Family(
        logpdf=lambda z: -np.abs(z) - math.log(2),
        cdf=_laplace,
        sf=lambda z: _laplace(-z),
        logcdf=_laplace_log,
        logsf=lambda z: _laplace_log(-z),
        ppf=_laplace_quantile,
        isf=lambda q: -_laplace_quantile(q),
    ),
    "cauchy": Family(
        logpdf=lambda z: -math.log(math.pi) - 2 * np.log(np.hypot(1.0, z)),
        cdf=lambda z: np.arctan2(1.0, -z) / math.pi,
        sf=lambda z: np.arctan2(1.0, z) / math.pi,
        ppf=lambda q: -_cotangent(q),
        isf=_cotangent,
    ),
    "logistic": Family(
        logpdf=lambda z: special("log_expit")(z) + special("log_expit")(-z),
        cdf=_ufunc("expit"),
        sf=lambda z: special("expit")(-z),
        logcdf=_ufunc("log_expit"),
        logsf=lambda z: special("log_expit")(-z),
        ppf=_ufunc("logit"),
        isf=lambda q: -special("logit")(q),
    ),
    "gumbel_r": Family(
        logpdf=lambda z: -z - np.exp(-z),
        cdf=lambda z: np.exp(-np.exp(-z)),
        sf=lambda z: -np.expm1(-np.exp(-z)),
        logcdf=lambda z: -np.exp(-z),
        ppf=lambda q: -np.log(-np.log(q)),
        isf=lambda q: -np.log(-np.log1p(-q)),
    ),
    "gumbel_l": Family(
        logpdf=lambda z: z - np.exp(z),
        cdf=lambda z: -np.expm1(-np.exp(z)),
        sf=lambda z: np.exp(-np.exp(z)),
        logsf=lambda z: -np.exp(z),
        ppf=lambda q: np.log(-np.log1p(-q)),
        isf=lambda q: np.log(-np.log(q)),
    ),
}
"""By the names of SciPy's distributions."""
