"""Functions of scipy.signal that are linear in the signal: smoothing, trends, other rates, spectra of filters."""

from __future__ import annotations

import itertools
import sys
from typing import Any

from yota.tracing.implementations import FORMS, records
from yota.tracing.methods import is_traced
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
    convolve = FORMS["scipy.ndimage", "convolve1d"]
    if mode != "interp":
        return convolve(trace, x, weights, axis, mode, cval, 0)
    if window_length > x.shape[axis]:
        raise ValueError("If mode is 'interp', window_length must be less than or equal to the size of x.")
    # At the ends a polynomial is fitted to the last window: what that does to each element of a window.
    ends = module.savgol_filter(np.eye(window_length), window_length, polyorder, deriv, delta, axis=0)
    half = window_length // 2
    rows = np.moveaxis(x, axis, 0)
    inner = np.moveaxis(convolve(trace, x, weights, axis, "constant", 0.0, 0), axis, 0)
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


@records("scipy.signal", "hilbert")
def _hilbert(trace: Trace, x: Any, N: int | None, axis: int) -> Any:
    x = trace.traced(x)
    if x.dtype.kind == "c":
        raise ValueError("x must be real.")
    count = x.shape[axis] if N is None else N
    if count <= 0:
        raise ValueError("N must be positive.")
    share = np.zeros(count, x.dtype)
    share[0] = 1
    share[1 : (count + 1) // 2] = 2
    if count % 2 == 0:
        share[count // 2] = 1
    shape = tuple(-1 if each == range(x.ndim)[axis] else 1 for each in range(x.ndim))
    return np.fft.ifft(np.fft.fft(x, count, axis) * share.reshape(shape), axis=axis)


@records("scipy.signal", "resample")
def _resample(trace: Trace, x: Any, num: int, axis: int) -> Any:
    x = trace.traced(x)
    axis, given = range(x.ndim)[axis], x.shape[axis]
    kept = min(num, given)
    real = x.dtype.kind != "c"
    found = np.moveaxis((np.fft.rfft if real else np.fft.fft)(x, axis=axis), axis, 0)
    half = kept // 2
    if real:
        parts = [found[: half + 1]]
    else:
        parts = [found[: (kept + 1) // 2], found[len(found) - (kept - 1) // 2 :]]
    if kept % 2 == 0 and num != given:
        # The frequency that both ends share is one where there are fewer, and two where there are more.
        if real:
            parts = [found[:half], found[half : half + 1] * (2.0 if num < given else 0.5)]
        else:
            edge = found[half : half + 1]
            both = edge + found[given - half : given - half + 1] if num < given else 0.5 * edge
            parts[1:1] = [both] if num < given else [both, both]
    elif kept % 2 == 0 and not real:
        parts[1:1] = [found[half : half + 1]]
    if real:
        whole = np.moveaxis(np.concatenate(parts), 0, axis)
        return np.fft.irfft(whole, num, axis) * (num / given)
    if num > given:
        middle = 1 + (kept % 2 == 0)
        gap = np.zeros((num - sum(len(each) for each in parts), *found.shape[1:]), dtype=found.dtype)
        parts.insert(middle, gap)
    whole = np.moveaxis(np.concatenate(parts), 0, axis)
    return np.fft.ifft(whole, axis=axis) * (num / given)


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


@records("scipy.signal", "freqz")
def _freqz(trace: Trace, b: Any, a: Any, worN: Any, whole: bool, fs: float, include_nyquist: bool) -> Any:
    if is_traced(worN):
        worN = trace.values[trace.lift(worN)] if trace.is_constant(trace.lift(worN)) else None
    # Frequencies, and the dtype, are those that SciPy finds for other filters of this kind.
    others = [np.ones(each.shape, each.dtype) if is_traced(each) else each for each in (b, a)]
    b, a = (np.atleast_1d(trace.traced(each)) for each in (b, a))
    if b.ndim != 1 or a.ndim != 1 or worN is None:
        raise trace.refuse("scipy.signal.freqz is recorded for vectors and plain frequencies.", "Write a loop.")
    places, like = sys.modules["scipy.signal"].freqz(*others, worN, whole, None, fs, include_nyquist)
    turns = np.exp(-1j * (2 * np.pi * places / fs))
    found = np.polyval(b[::-1], turns) / np.polyval(a[::-1], turns)
    return places, found.astype(like.dtype, copy=False)


@records("scipy.signal", "medfilt")
def _medfilt(trace: Trace, volume: Any, kernel_size: Any) -> Any:
    x = np.atleast_1d(trace.traced(volume))
    size = 3 if kernel_size is None else kernel_size
    return FORMS["scipy.ndimage", "median_filter"](trace, x, size, None, "constant", 0.0, 0)


@records("scipy.signal", "medfilt2d")
def _medfilt2d(trace: Trace, input: Any, kernel_size: Any) -> Any:
    return _medfilt(trace, input, kernel_size)
