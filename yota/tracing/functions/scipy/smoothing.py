"""Functions of scipy.signal that are linear in the signal: smoothing, trends, other rates, spectra of filters."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _applied(matrix: Any, x: Any) -> Any:
    """A plain matrix applied to an array's first axis."""
    rows = np.matmul(matrix, np.reshape(x, (x.shape[0], -1)))
    return np.reshape(rows, (rows.shape[0], *x.shape[1:]))


@records("scipy.signal", "savgol_filter")
def _savgol(
    trace: Trace,
    x: Any,
    window_length: int,
    polyorder: int,
    deriv: int,
    delta: float,
    axis: int,
    mode: str,
    cval: float,
) -> Any:
    module = sys.modules["scipy.signal"]
    x = trace.traced(x)
    weights = module.savgol_coeffs(window_length, polyorder, deriv=deriv, delta=delta)
    convolve = sys.modules["scipy.ndimage"].convolve1d
    if mode != "interp":
        return convolve(x, weights, axis, None, mode, cval)
    if window_length > x.shape[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    # At the ends a polynomial is fitted to the last window: what that does to each element of a window.
    ends = module.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, delta, axis=0)
    half = window_length // 2
    rows = np.moveaxis(x, axis, 0)
    inner = np.moveaxis(convolve(x, weights, axis, None, "constant"), axis, 0)
    parts = [
        _applied(ends[:half], rows[:window_length]),
        inner[half : len(rows) - half],
        _applied(ends[window_length - half :], rows[len(rows) - window_length :]),
    ]
    return np.moveaxis(np.concatenate(parts), 0, axis).astype(x.dtype, copy=False)


@records("scipy.signal", "detrend")
def _detrend(trace: Trace, data: Any, axis: int, type: str, bp: Any) -> Any:
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = trace.traced(data)
    if type in ("constant", "c"):
        return x - np.mean(x, axis=axis, keepdims=True)
    rows = np.moveaxis(x, axis, 0)
    bounds = np.unique(np.concatenate([[0], np.atleast_1d(bp), [len(rows)]])).astype(int)
    if bounds[-1] > len(rows):
        raise ValueError("Breakpoints must be less than length of data along given axis.")
    parts = []
    for low, high in itertools.pairwise(bounds.tolist()):
        line = np.stack([np.ones(high - low), np.arange(1, high - low + 1) / (high - low)], axis=1)
        basis = np.linalg.qr(line.astype(x.dtype))[0]
        parts.append(rows[low:high] - _applied(basis, _applied(basis.T, rows[low:high])))
    return np.moveaxis(np.concatenate(parts), 0, axis)


@records("scipy.signal", "upfirdn")
def _upfirdn(trace: Trace, h: Any, x: Any, up: int, down: int, axis: int, mode: str | None, cval: Any) -> Any:
    if mode not in ("constant", None) or cval:
        raise trace.refuse("scipy.signal.upfirdn is recorded for zeros outside of the signal.", "Leave mode out.")
    h, x = trace.traced(h), trace.traced(x)
    if h.ndim != 1 or not h.size:
        raise ValueError("h must be 1-D with non-zero length")
    axis = range(x.ndim)[axis]
    rows = np.moveaxis(x, axis, -1)
    spread = np.concatenate([rows[..., None], np.zeros((*rows.shape, up - 1), dtype=x.dtype)], axis=-1)
    spread = np.reshape(spread, (*rows.shape[:-1], -1))[..., : (rows.shape[-1] - 1) * up + 1]
    known = trace.registry.primitive("signal_convolve")
    weights = np.reshape(h, (1,) * (x.ndim - 1) + (-1,))
    found = trace.apply(known, (spread, weights), {"mode": "full", "method": "direct"})
    return np.moveaxis(found[..., ::down], -1, axis)


@records("scipy.signal", "medfilt2d")
def _medfilt2d(trace: Trace, input: Any, kernel_size: Any) -> Any:
    return sys.modules["scipy.signal"].medfilt(input, kernel_size)
