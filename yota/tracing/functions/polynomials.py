"""np.polymul, which goes through objects that do not dispatch, and np.polyfit."""

from __future__ import annotations

import warnings
from typing import Any

from yota.tracing.implementations import implements
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@implements(np.polymul)
def _polymul(trace: Trace, a1: Any, a2: Any) -> Any:
    one, other = (np.trim_zeros(np.atleast_1d(trace.traced(each)), "f") for each in (a1, a2))
    if not one.size or not other.size:
        return trace.constant(np.zeros(1, np.result_type(one, other)))
    return np.convolve(one, other)


@implements(np.polyfit)
def _polyfit(
    trace: Trace, x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """Scaled least squares, as NumPy has it; the rank is a guard."""
    order = int(deg) + 1
    x, y = trace.traced(x) + 0.0, trace.traced(y) + 0.0
    if int(deg) < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1 or not x.size or y.ndim not in (1, 2) or len(x) != len(y):
        raise TypeError("expected x and y to be vectors of the same length, or y a matrix with as many rows")
    cutoff = len(x) * float(np.finfo(x.dtype).eps) if rcond is None else rcond
    table, values = np.vander(x, order), y
    if w is not None:
        weights = trace.traced(w) + 0.0
        if weights.ndim != 1 or len(weights) != len(y):
            raise TypeError("expected w and y to have the same length")
        table = table * weights[:, None]
        values = values * (weights[:, None] if y.ndim == 2 else weights)
    scale = np.sqrt(np.sum(table * table, axis=0))
    table = table / scale
    found, residuals, rank, singular = np.linalg.lstsq(table, values, cutoff)
    coefficients = np.transpose(np.transpose(found) / scale)
    if rank != order and not full:
        warnings.warn("Polyfit may be poorly conditioned", np.exceptions.RankWarning, stacklevel=2)
    if full:
        return coefficients, residuals, rank, singular, cutoff
    if not cov:
        return coefficients
    spread = np.linalg.inv(np.matmul(np.transpose(table), table)) / np.outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1.0
    elif len(x) <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    else:
        factor = residuals / (len(x) - order)
    return coefficients, (spread if y.ndim == 1 else spread[:, :, None]) * factor
