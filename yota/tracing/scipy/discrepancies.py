"""Discrepancies of scipy.stats.qmc, by the sums that they are.

F. J. Hickernell, A generalized discrepancy and quadrature error bound, Mathematics of Computation 67 (1998).
Y.-D. Zhou, K.-T. Fang and J.-H. Ning, Mixture discrepancy for quasi-random point sets, Journal of Complexity 29 (2013).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


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
