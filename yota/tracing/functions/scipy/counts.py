"""Probabilities and distribution functions of whole numbers, in standard form, as plain NumPy and scipy.special."""

from __future__ import annotations

from typing import Any

from yota.tracing.functions.scipy.family import Family, special
from yota.tracing.untyped import np

__all__ = ["DISCRETE"]


def _is_probability(*shapes: Any) -> Any:
    """Whether the last of the shapes lies between 0 and 1."""
    return (shapes[-1] >= 0) & (shapes[-1] <= 1)


DISCRETE: dict[str, Family] = {
    "poisson": Family(
        logpdf=lambda k, mu: special("xlogy")(k, mu) - mu - special("gammaln")(k + 1),
        cdf=lambda k, mu: special("gammaincc")(k + 1, mu),
        sf=lambda k, mu: special("gammainc")(k + 1, mu),
        low=0.0,
        allowed=lambda mu: mu >= 0,
    ),
    "binom": Family(
        logpdf=lambda k, n, p: (
            special("xlogy")(k, p) + special("xlog1py")(n - k, -p) - special("betaln")(k + 1, n - k + 1) - np.log(n + 1)
        ),
        cdf=lambda k, n, p: special("betaincc")(k + 1, n - k, p),
        sf=lambda k, n, p: special("betainc")(k + 1, n - k, p),
        low=0.0,
        high=lambda n, p: n,
        allowed=_is_probability,
    ),
    "bernoulli": Family(
        logpdf=lambda k, p: special("xlogy")(k, p) + special("xlog1py")(1 - k, -p),
        cdf=lambda k, p: np.where(k < 1, 1 - p, 1.0),
        sf=lambda k, p: np.where(k < 1, p, 0.0),
        logcdf=lambda k, p: np.where(k < 1, np.log1p(-p), 0.0),
        logsf=lambda k, p: np.where(k < 1, np.log(p), -np.inf),
        low=0.0,
        high=1.0,
        allowed=_is_probability,
    ),
    "geom": Family(
        logpdf=lambda k, p: special("xlog1py")(k - 1, -p) + np.log(p),
        cdf=lambda k, p: -np.expm1(k * np.log1p(-p)),
        sf=lambda k, p: np.exp(k * np.log1p(-p)),
        logsf=lambda k, p: k * np.log1p(-p),
        low=1.0,
        allowed=lambda p: (p > 0) & (p <= 1),
    ),
    "nbinom": Family(
        logpdf=lambda k, n, p: n * np.log(p) + special("xlog1py")(k, -p) - special("betaln")(n, k + 1) - np.log(n + k),
        cdf=lambda k, n, p: special("betainc")(n, k + 1, p),
        sf=lambda k, n, p: special("betaincc")(n, k + 1, p),
        low=0.0,
        allowed=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
    ),
    "planck": Family(
        logpdf=lambda k, rate: np.log(-np.expm1(-rate)) - rate * k,
        cdf=lambda k, rate: -np.expm1(-rate * (k + 1)),
        sf=lambda k, rate: np.exp(-rate * (k + 1)),
        logsf=lambda k, rate: -rate * (k + 1),
        low=0.0,
        allowed=lambda rate: rate > 0,
    ),
    "logser": Family(
        logpdf=lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p)),
        low=1.0,
        allowed=lambda p: (p > 0) & (p < 1),
    ),
    "betabinom": Family(
        logpdf=lambda k, n, a, b: (
            special("betaln")(k + a, n - k + b)
            - special("betaln")(a, b)
            - special("betaln")(k + 1, n - k + 1)
            - np.log(n + 1)
        ),
        low=0.0,
        high=lambda n, a, b: n,
        allowed=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
    ),
}
"""By the names of SciPy's distributions; the variable is whole."""
