"""Distributions with shapes at which SciPy's formula gives way to its limit: by formulas that hold on both sides.

A branch of SciPy's that is taken at one value of a shape does not depend on the shape, so its derivative would be 0.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, np, original, records
from yota.tracing.scipy.distribution_formulas import log_normal, special
from yota.tracing.scipy.mixtures import NONCENTRAL

_CONTINUOUS = "scipy.stats._continuous_distns"
_NEARLY_NORMAL = 0.000016
"""The skewness up to which SciPy takes Pearson's third distribution for the normal one."""


def _log1p_over(trace: Trace, x: Any, shape: Any) -> Any:
    """``-log1p(-shape * x) / shape``, which is x where the shape is 0."""
    return x * trace.ruled("_log_ratio", 1 - shape * x)


@records(_CONTINUOUS, "kappa4_gen._logcdf")
def _kappa_below(trace: Trace, self: Any, x: Any, h: Any, k: Any) -> Any:
    return -_log1p_over(trace, np.exp(-_log1p_over(trace, *map(trace.traced, (x, k)))), h)


@records(_CONTINUOUS, "kappa4_gen._logpdf")
def _kappa_density(trace: Trace, self: Any, x: Any, h: Any, k: Any) -> Any:
    return (1 - h) * _kappa_below(trace, self, x, h, k) - (1 - k) * _log1p_over(trace, *map(trace.traced, (x, k)))


@records(_CONTINUOUS, "kappa4_gen._ppf")
def _kappa_quantile(trace: Trace, self: Any, q: Any, h: Any, k: Any) -> Any:
    boxcox = special("boxcox")
    return -boxcox(-boxcox(q, h), k)


@records(_CONTINUOUS, "genpareto_gen._logsf")
def _pareto_above(trace: Trace, self: Any, x: Any, c: Any) -> Any:
    return -_log1p_over(trace, trace.traced(x), -trace.traced(c))


@records(_CONTINUOUS, "genpareto_gen._logpdf")
def _pareto_density(trace: Trace, self: Any, x: Any, c: Any) -> Any:
    x, c = map(trace.traced, (x, c))
    is_end = (c == -1) & (x == 1)
    return np.where(is_end, 0.0, -(c + 1) * _log1p_over(trace, np.where(is_end, 0.0, x), -c))


@records(_CONTINUOUS, "genextreme_gen._loglogcdf")
def _extreme_below(trace: Trace, self: Any, x: Any, c: Any) -> Any:
    return -_log1p_over(trace, *map(trace.traced, (x, c)))


@records(_CONTINUOUS, "genextreme_gen._logpdf")
def _extreme_density(trace: Trace, self: Any, x: Any, c: Any) -> Any:
    x, c = map(trace.traced, (x, c))
    is_end = (c * x == 1) | np.isinf(x)
    inner = np.where(is_end, 0.0, x)
    level = _extreme_below(trace, self, inner, c)
    return np.where(is_end, np.where((c == 1) & (x == 1), 0.0, -np.inf), level - np.exp(level) - np.log1p(-c * inner))


@records(_CONTINUOUS, "genextreme_gen._ppf")
def _extreme_quantile(trace: Trace, self: Any, q: Any, c: Any) -> Any:
    level = -np.log(-np.log(trace.traced(q)))
    return level * special("exprel")(-c * level)


@records(_CONTINUOUS, "genextreme_gen._isf")
def _extreme_upper_quantile(trace: Trace, self: Any, q: Any, c: Any) -> Any:
    level = -np.log(-np.log1p(-trace.traced(q)))
    return level * special("exprel")(-c * level)


@records(_CONTINUOUS, "skewnorm_gen._logpdf")
def _skew_density(trace: Trace, self: Any, x: Any, a: Any) -> Any:
    x, a = map(trace.traced, (x, a))
    return math.log(2) + log_normal(x) + special("log_ndtr")(a * x)


@records(_CONTINUOUS, "skewnorm_gen._pdf")
def _skew_probability(trace: Trace, self: Any, x: Any, a: Any) -> Any:
    return np.exp(_skew_density(trace, self, x, a))


def _pearson(trace: Trace, skew: Any, normal: Any, first: Any, second: Any, far: Callable[[Any, Any], Any]) -> Any:
    """Pearson's third distribution: ``far`` of the rate and order of a gamma distribution, or nearly normal.

    ``normal``, ``first`` and ``second`` are the coefficients of an expansion by the skewness. Near 0 SciPy's value is
    the first one alone; the others are for derivatives.
    """
    near = np.abs(skew) < _NEARLY_NORMAL
    rate = 2 / np.where(near, 1.0, skew)
    at = trace.ruled("stop_gradient", skew)
    step = skew - at  # 0, with the derivative 1
    return np.where(near, normal + step * (first + (2 * at + step) * second), far(rate, rate * rate))


def _gamma() -> Any:
    return sys.modules["scipy.stats"].gamma


@records(_CONTINUOUS, "pearson3_gen._logpdf")
def _pearson_density(trace: Trace, self: Any, x: Any, skew: Any) -> Any:
    """By Edgeworth's series: cumulants of third and fourth order are the skewness and 3/2 of its square."""
    x, skew = map(trace.traced, (x, skew))
    first, second = (x**3 - 3 * x) / 6, -(x**4) / 16 + x * x / 8 - 1 / 48

    def far(rate: Any, order: Any) -> Any:
        return np.log(np.abs(rate)) + _gamma().logpdf(rate * (x + rate), order)

    return _pearson(trace, skew, log_normal(x), first, second, far)


@records(_CONTINUOUS, "pearson3_gen._cdf")
def _pearson_below(trace: Trace, self: Any, x: Any, skew: Any) -> Any:
    """The integral of Edgeworth's series."""
    x, skew = map(trace.traced, (x, skew))
    density = np.exp(log_normal(x))
    first, second = (x * x - 1) / 6, (x**3 - 3 * x) / 16 + (x**5 - 10 * x**3 + 15 * x) / 72

    def far(rate: Any, order: Any) -> Any:
        z = rate * (x + rate)
        return np.where(rate > 0, _gamma().cdf(z, order), _gamma().sf(z, order))

    return _pearson(trace, skew, special("ndtr")(x), -density * first, -density * second, far)


@records(_CONTINUOUS, "pearson3_gen._sf")
def _pearson_above(trace: Trace, self: Any, x: Any, skew: Any) -> Any:
    """By symmetry the distribution function of the mirrored variable."""
    return _pearson_below(trace, self, -trace.traced(x), -trace.traced(skew))


@records(_CONTINUOUS, "pearson3_gen._ppf")
def _pearson_quantile(trace: Trace, self: Any, q: Any, skew: Any) -> Any:
    """By the expansion of Cornish and Fisher: E. A. Cornish and R. A. Fisher, Moments and cumulants (1938)."""
    q, skew = map(trace.traced, (q, skew))
    z = special("ndtri")(q)
    first, second = (z * z - 1) / 6, (z**3 - 3 * z) / 16 - (2 * z**3 - 5 * z) / 36

    def far(rate: Any, order: Any) -> Any:
        return np.where(rate > 0, special("gammaincinv")(order, q), special("gammainccinv")(order, q)) / rate - rate

    return _pearson(trace, skew, z, first, second, far)


@records(_CONTINUOUS, *(f"ncx2_gen._{each}" for each in NONCENTRAL), named=True)
def _noncentral(name: str, trace: Trace, self: Any, x: Any, df: Any, nc: Any) -> Any:
    """Without noncentrality by the mixture alone; else as SciPy has it."""
    x, df, nc = map(trace.traced, (x, df, nc))
    method = name.removeprefix("ncx2_gen._")
    if bool(np.any(nc == 0)):
        return NONCENTRAL[method](x, df, nc)
    return original(getattr(type(self), f"_{method}"))(self, x, df, nc)


@records(_CONTINUOUS, "rice_gen._pdf")
def _rice_density(trace: Trace, self: Any, x: Any, b: Any) -> Any:
    """The exponentially scaled Bessel function, of which the slope at 0 is taken to be 0, is for large arguments."""
    x, b = map(trace.traced, (x, b))
    near = x * b < 1
    low, high = np.where(near, x * b, 0.5), np.where(near, 1.0, x * b)
    inner = np.exp(-0.5 * (x * x + b * b)) * special("i0")(low)
    return x * np.where(near, inner, np.exp(-0.5 * (x - b) ** 2) * special("i0e")(high))
