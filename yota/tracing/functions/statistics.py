"""The standard library's statistics of numbers, which compute with fractions: recorded as NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.tracing.creation import array
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@records("statistics", "mean", "fmean")
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


@records("statistics", "geometric_mean")
def _geometric_mean(trace: Trace, data: Any) -> Any:
    return np.exp(np.mean(np.log(array(trace, data))))


@records("statistics", "harmonic_mean")
def _harmonic_mean(trace: Trace, data: Any, weights: Any = None) -> Any:
    return 1 / np.average(1 / array(trace, data), weights=weights)


records("statistics", "variance")(_spread(1, root=False))
records("statistics", "pvariance")(_spread(0, root=False))
records("statistics", "stdev")(_spread(1, root=True))
records("statistics", "pstdev")(_spread(0, root=True))
