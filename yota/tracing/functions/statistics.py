"""The standard library's statistics of numbers, which compute with fractions: recorded as NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.tracing.creation import array

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["STATISTICS"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy


def _mean(trace: Trace, data: Any, weights: Any = None) -> Any:
    return np.average(array(trace, data), weights=weights)


def _spread(ddof: int, *, root: bool) -> Callable[..., Any]:
    def spread(trace: Trace, data: Any, *given: Any, **by_name: Any) -> Any:
        values = array(trace, data)
        centre = next(iter((*given, *by_name.values())), None)
        deviation = values - (np.mean(values) if centre is None else centre)
        variance = np.sum(deviation * deviation) / (values.size - ddof)
        return np.sqrt(variance) if root else variance

    return spread


def _geometric_mean(trace: Trace, data: Any) -> Any:
    return np.exp(np.mean(np.log(array(trace, data))))


def _harmonic_mean(trace: Trace, data: Any, weights: Any = None) -> Any:
    return 1 / np.average(1 / array(trace, data), weights=weights)


STATISTICS: dict[tuple[str, str], Callable[..., Any]] = {
    ("statistics", "mean"): _mean,
    ("statistics", "fmean"): _mean,
    ("statistics", "geometric_mean"): _geometric_mean,
    ("statistics", "harmonic_mean"): _harmonic_mean,
    ("statistics", "variance"): _spread(1, root=False),
    ("statistics", "pvariance"): _spread(0, root=False),
    ("statistics", "stdev"): _spread(1, root=True),
    ("statistics", "pstdev"): _spread(0, root=True),
}
"""Recorded forms by module and name; each takes the trace first."""
