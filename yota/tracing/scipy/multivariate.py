"""Parameters of multivariate distributions of SciPy, statistics without a mask, and discrepancies of samples.

F. J. Hickernell, A generalized discrepancy and quadrature error bound, Mathematics of Computation 67 (1998).
Y.-D. Zhou, K.-T. Fang and J.-H. Ning, Mixture discrepancy for quasi-random point sets, Journal of Complexity 29 (2013).
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.forms import Trace, np, paused, records
from yota.tracing.intercept import on_traced
from yota.tracing.scipy.distribution_formulas import special
from yota.tracing.scipy.special import scipy_special

_HOME = "scipy.stats._multivariate"


@records(_HOME, "multinomial_gen._process_parameters")
def _shares(trace: Trace, self: Any, n: Any, p: Any) -> Any:
    """The last probability is what the others leave: SciPy takes it so wherever they do not add up to 1."""
    n, p = np.array(n, dtype=int), trace.traced(p)
    p = np.concatenate([p[..., :-1], 1 - np.sum(p[..., :-1], axis=-1, keepdims=True)], axis=-1)
    p = np.where(np.abs(p) < 1e-15, 0 * p, p)
    return n, p, (n < 0) | np.any((p < 0) | (p > 1), axis=-1)


@records(_HOME, "_PSD")
def _positive(trace: Trace, M: Any, allow_singular: bool = True, **keywords: Any) -> Any:
    """What SciPy knows of a covariance matrix: by Cholesky's factor, which has a derivative by all matrices."""
    kind = inspect.unwrap(sys.modules[_HOME]._PSD)
    matrix = trace.traced(M)
    with paused():
        plain = kind(matrix._value(), allow_singular=allow_singular, **keywords)
    if plain.rank < len(matrix):
        return kind(M, allow_singular=allow_singular, **keywords)
    found = object.__new__(kind)
    factor = np.linalg.cholesky(np.tril(matrix) + np.swapaxes(np.tril(matrix, -1), -1, -2))
    found._M, found.eps, found.V, found.rank, found._pinv = matrix, plain.eps, plain.V, plain.rank, None
    found.U = np.swapaxes(np.linalg.inv(factor), -1, -2)
    found.log_pdet = 2 * np.sum(np.log(np.diagonal(factor)))
    return found


class _Estimate:
    """SciPy's compiled sum of Gaussian kernels, chosen by the name of a type, as NumPy computes it."""

    def __init__(self, original: Any, logarithm: bool) -> None:
        self.__wrapped__, self._logarithm = original, logarithm

    def __getitem__(self, kind: str) -> Any:
        return on_traced(self.__wrapped__[kind], self._record)

    def _record(self, trace: Trace, points: Any, values: Any, at: Any, factor: Any, dtype: Any) -> Any:
        factor = np.tril(factor)
        inner, outer = (np.linalg.solve(factor, np.transpose(each)) for each in (points, at))
        distances = np.sum(np.square(outer[:, :, None] - inner[:, None, :]), axis=0)
        level = np.sum(np.log(np.diagonal(factor))) + 0.5 * len(inner) * math.log(2 * math.pi)
        if self._logarithm:
            terms = (np.log(values) - level)[None] - 0.5 * distances[:, :, None]
            return scipy_special().logsumexp(terms, axis=1)
        return np.matmul(np.exp(-0.5 * distances - level), values)


_ESTIMATES = ("gaussian_kernel_estimate", "gaussian_kernel_estimate_log")


@functools.cache
def estimates(module: Any) -> list[tuple[Any, str, Any]]:
    """``(module, name, form)`` for these sums."""
    return [(module, name, _Estimate(getattr(module, name), name.endswith("_log"))) for name in _ESTIMATES]


_MODULE = "scipy.stats.mstats"
_QUARTERS = (0.25, 0.5, 0.75)
_OUTER = 2.5758293035489004
"""The quantile of a normal variable by which McKean and Schrader choose the elements that they compare."""


def _check(trace: Trace, name: str, *given: Any) -> None:
    if any(isinstance(each, np.ma.MaskedArray) for each in given):
        raise trace.unrecorded(f"{_MODULE}.{name} of a masked array", "Leave out what is masked.")


def _sorted(trace: Trace, name: str, data: Any, axis: int | None) -> Any:
    """What is sorted along the last axis."""
    _check(trace, name, data)
    data = trace.traced(data)
    if data.ndim > 2:
        raise ValueError(f"{_MODULE}.{name} takes arrays of two dimensions at most")
    return np.sort(np.ravel(data) if axis is None else np.moveaxis(data, axis, -1), axis=-1)


@records(_MODULE, "linregress", "pearsonr", "sem", "variation", named=True)
def _unmasked(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """The function of scipy.stats."""
    _check(trace, name, *args, *keywords.values())
    found = getattr(sys.modules["scipy.stats"], name)(*args, **keywords)
    return found.astype(float) if name == "sem" else found


@records(_MODULE, "mquantiles")
def _quantiles(
    trace: Trace,
    a: Any,
    prob: Any = _QUARTERS,
    alphap: float = 0.4,
    betap: float = 0.4,
    axis: int | None = None,
    limit: Any = (),
) -> Any:
    if len(limit):
        raise trace.unrecorded(f"{_MODULE}.mquantiles with limit", "Leave out what is beyond it.")
    rows, p = _sorted(trace, "mquantiles", a, axis), np.atleast_1d(prob)
    count = rows.shape[-1]
    place = count * p + (alphap + p * (1.0 - alphap - betap))
    below = np.floor(np.clip(place, 1, max(count - 1, 1))).astype(int)
    share = np.clip(place - below, 0, 1)
    found = (1 - share) * rows[..., below - 1] + share * rows[..., np.minimum(below, count - 1)]
    return found if axis is None else np.moveaxis(found, -1, axis)


@records(_MODULE, "hdquantiles")
def _smooth_quantiles(
    trace: Trace, data: Any, prob: Any = _QUARTERS, axis: int | None = None, var: bool = False
) -> Any:
    """Sums of all elements, weighed by a beta distribution (F. E. Harrell, C. E. Davis 1982)."""
    rows, p = _sorted(trace, "hdquantiles", data, axis), np.atleast_1d(prob)
    count = rows.shape[-1]
    if var or count < 2:
        raise trace.unrecorded(f"{_MODULE}.hdquantiles with var, or of one element", "Pass more elements without it.")
    inner = np.where((p > 0) & (p < 1), p, 0.5)
    level = np.arange(count + 1.0)[:, None] / count
    weights = np.diff(special("betainc")((count + 1) * inner, (count + 1) * (1 - inner), level), axis=0)
    found = np.where(p == 0, rows[..., :1], np.where(p == 1, rows[..., -1:], rows @ weights))
    return found if axis is None else np.moveaxis(found, -1, axis)


def _deviation_of_median(rows: Any) -> Any:
    """From two elements around the median (J. W. McKean, R. M. Schrader 1984)."""
    count = rows.shape[-1]
    outer = int(round((count + 1) / 2.0 - _OUTER * math.sqrt(count / 4.0), 0))
    return (rows[..., count - outer] - rows[..., outer - 1]) / (2 * _OUTER)


@records(_MODULE, "compare_medians_ms")
def _compare_medians(trace: Trace, group_1: Any, group_2: Any, axis: int | None = None) -> Any:
    groups = [_sorted(trace, "compare_medians_ms", each, axis) for each in (group_1, group_2)]
    apart = np.abs(np.subtract(*(np.median(each, axis=-1) for each in groups)))
    apart = apart / np.sqrt(sum(_deviation_of_median(each) ** 2 for each in groups))
    return 1 - special("ndtr")(apart.astype(float))


def _centered(x: Any, z: Any) -> Any:
    return 1 + 0.5 * (np.abs(x - 0.5) + np.abs(z - 0.5) - np.abs(x - z))


def _centered_one(x: Any) -> Any:
    side = np.abs(x - 0.5)
    return 1 + 0.5 * side * (1 - side)


def _mixed(x: Any, z: Any) -> Any:
    apart = np.abs(x - z)
    return 15 / 8 - 0.25 * (np.abs(x - 0.5) + np.abs(z - 0.5)) - apart * (0.75 - 0.5 * apart)


def _mixed_one(x: Any) -> Any:
    side = np.abs(x - 0.5)
    return 5 / 3 - 0.25 * side * (1 + side)


def _wrapped(x: Any, z: Any) -> Any:
    apart = np.abs(x - z)
    return 3 / 2 - apart * (1 - apart)


_KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any] | None, float]] = {
    "centered": (_centered, _centered_one, 13 / 12),
    "mixture": (_mixed, _mixed_one, 19 / 12),
    "wrap_around": (_wrapped, None, 4 / 3),
    "l2_star": (lambda x, z: 1 - np.maximum(x, z), lambda x: (1 - x * x) / 2, 1 / 3),
}
"""Of two points, of one, and of none: what is multiplied over the coordinates."""


@records("scipy.stats._qmc", *(f"_cy_wrapper_{each}_discrepancy" for each in _KINDS), named=True)
def _discrepancy(name: str, trace: Trace, sample: Any, iterative: bool, workers: int = 1) -> Any:
    name = name.removeprefix("_cy_wrapper_").removesuffix("_discrepancy")
    pair, one, none = _KINDS[name]
    sample = trace.traced(sample)
    count, level = len(sample) + iterative, none ** sample.shape[1]
    pairs = np.sum(np.prod(pair(sample[:, None], sample[None]), axis=-1)) / count**2
    if one is None:
        return pairs - level
    found = level - 2 / count * np.sum(np.prod(one(sample), axis=-1)) + pairs
    return np.sqrt(found) if name == "l2_star" else found


@records("scipy.stats._qmc", "_cy_wrapper_update_discrepancy")
def _updated(trace: Trace, x_new_view: Any, sample_view: Any, initial_disc: Any) -> Any:
    x, sample = trace.traced(x_new_view), trace.traced(sample_view)
    count = len(sample) + 1
    more = 2 * np.sum(np.prod(_centered(x, sample), axis=-1)) + np.prod(_centered(x, x))
    return initial_disc - 2 / count * np.prod(_centered_one(x)) + more / count**2
