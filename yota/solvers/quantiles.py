"""Quantiles of continuous distributions without a formula: all elements at once, by bracketing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.solvers.roots import root
from yota.tracing.implementations import records
from yota.tracing.trace import Trace

_MOST = 200
"""Steps of a search; each second one halves the interval at the least."""
_CLOSE, _RELATIVE = 1e-14, 4 * float(np.finfo(float).eps)
"""How wide the interval is in the end, as in SciPy's search."""


@records("scipy.stats._distn_infrastructure", "rv_continuous._ppf")
def _ppf(trace: Trace, self: Any, q: Any, *shapes: Any) -> Any:
    ends = self._get_support(*shapes)
    size = np.broadcast_shapes(*map(np.shape, (q, *ends, *shapes)))

    def excess(x: Any) -> Any:
        return self.cdf(x, *shapes) - q

    return root(trace, increasing_root, ["f"], (), excess, *ends, size)


def increasing_root(f: Callable[[Any], Any], low: Any, high: Any, size: tuple[int, ...]) -> Any:
    """Where increasing functions, one for each element, are zero between their ends, which may be infinite.

    T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without
    using derivatives (1997).
    """
    with np.errstate(all="ignore"):
        x1, f1, x2, f2 = _bracket(f, np.broadcast_to(low, size), np.broadcast_to(high, size))
        share: Any = 0.5
        for _ in range(_MOST):
            x = x1 + share * (x2 - x1)
            value = np.asarray(f(x))
            same = np.sign(value) == np.sign(f1)
            x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
            x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
            x1, f1 = x, value
            found = np.where(np.abs(f1) < np.abs(f2), x1, x2)
            width, close = np.abs(x2 - x1), _CLOSE + _RELATIVE * np.abs(found)
            if np.all((width <= close) | (f1 == 0) | (f2 == 0) | np.isnan(f1)):
                break
            place, level = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            quadratic = f1 / (f1 - f2) * f3 / (f3 - f2) - (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f2 - f3)
            is_regular = (1 - np.sqrt(1 - place) < level) & (level < np.sqrt(place))
            least = np.minimum(0.5 * close / width, 0.5)
            share = np.clip(np.where(is_regular, quadratic, 0.5), least, 1 - least)
    return np.where(np.isnan(f1), np.nan, found)[()]


def _bracket(f: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any, Any, Any]:
    """Finite places around the roots, with values of their signs: infinite ends move out tenfold, as in SciPy."""
    left = np.where(np.isinf(low), np.minimum(-10.0, high), low)
    right = np.where(np.isinf(high), np.maximum(10.0, left), high)
    left, right = _moved_out(lambda x: f(x) > 0, np.isinf(low), left, right)
    right, left = _moved_out(lambda x: f(x) < 0, np.isinf(high), right, left)
    return left, np.full_like(left, -0.5), right, np.full_like(right, 0.5)


def _moved_out(is_inside: Callable[[Any], Any], infinite: Any, end: Any, other: Any) -> tuple[Any, Any]:
    """An end beyond the roots, where it is infinite, and the other end, which moves to the last place inside."""
    for _ in range(_MOST):
        beyond = infinite & is_inside(end) if np.any(infinite) else np.False_
        if not np.any(beyond):
            break
        end, other = np.where(beyond, 10.0 * end, end), np.where(beyond, end, other)
    return end, other
