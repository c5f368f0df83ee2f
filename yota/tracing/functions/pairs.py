"""Kernels and distances of scikit-learn that it has in compiled code, by their formulas."""

from __future__ import annotations

import sys
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import overwrite

_MODULE = "sklearn.metrics.pairwise"


@records("sklearn.metrics._pairwise_fast", "_chi2_kernel_fast")
def _chi2(trace: Trace, X: Any, Y: Any, result: Any) -> None:
    x, y = trace.traced(X)[:, None, :], trace.traced(Y)[None, :, :]
    size = x + y
    terms = np.where(size == 0, 0.0, (x - y) ** 2 / np.where(size == 0, 1.0, size))
    if not is_traced(result):
        raise trace.refuse("a kernel would be written into a plain array.", "Make it inside the function.")
    overwrite(result, -np.sum(terms, axis=-1))


@records(_MODULE, "haversine_distances")
def _haversine(trace: Trace, X: Any, Y: Any = None) -> Any:
    """Angles between points on a sphere, given by latitude and longitude."""
    x = trace.traced(X)[:, None, :]
    y = trace.traced(X if Y is None else Y)[None, :, :]
    if x.shape[-1] != 2 or y.shape[-1] != 2:
        raise ValueError("Haversine distance only valid in 2 dimensions")
    half = np.sin(0.5 * (x - y)) ** 2
    square = half[..., 0] + np.cos(x[..., 0]) * np.cos(y[..., 0]) * half[..., 1]
    return _of_apart(square, lambda square: 2 * np.arcsin(np.sqrt(square)))


def _of_apart(squares: Any, distance: Any) -> Any:
    """Distances by their squares; of points that coincide the slope is that of a norm."""
    same = squares == 0
    return np.where(same, 0.0, distance(np.where(same, 1.0, squares))).astype(squares.dtype, copy=False)


@records(_MODULE, "_euclidean_distances")
def _euclidean(
    trace: Trace, X: Any, Y: Any, X_norm_squared: Any = None, Y_norm_squared: Any = None, squared: bool = False
) -> Any:
    own = sys.modules[_MODULE]._euclidean_distances
    found = getattr(own, "recorded_from", own)(X, Y, X_norm_squared, Y_norm_squared, squared=True)
    return found if squared else _of_apart(found, np.sqrt)


@records(_MODULE, "pairwise_distances_argmin_min")
def _nearest(
    trace: Trace, X: Any, Y: Any, *, axis: int = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> Any:
    found = sys.modules[_MODULE].pairwise_distances(X, Y, metric=metric, **(metric_kwargs or {}))
    return np.argmin(found, axis=axis), np.min(found, axis=axis)
