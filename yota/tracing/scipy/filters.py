"""Filters and peaks of scipy.signal: convolutions, recursive filters, smoothing; the compiled parts of its searches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from yota.tracing.forms import Trace, is_traced, np, original, overwrite, records
from yota.tracing.scipy.ndimage import CONSTANT, REFLECT, WRAP, padded


@records("scipy.signal", "convolve")
def _convolve(trace: Trace, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    a, v = trace.traced(in1), trace.traced(in2)
    if a.ndim != v.ndim or not a.ndim or not a.size or not v.size:
        raise trace.refuse("scipy.signal.convolve is recorded for arrays with equally many axes and elements.", "")
    full = trace.ruled("signal_convolve", a, v, mode="full", method=method)
    if mode == "full":
        return full
    if mode == "same":
        return _centre(full, a.shape)
    if mode != "valid":
        raise ValueError("acceptable mode flags are 'valid', 'same', or 'full'")
    return _centre(full, tuple(abs(n - m) + 1 for n, m in zip(a.shape, v.shape, strict=True)))


def _centre(full: Any, shape: Sequence[int]) -> Any:
    starts = [(whole - part) // 2 for whole, part in zip(full.shape, shape, strict=True)]
    return full[tuple(slice(start, start + part) for start, part in zip(starts, shape, strict=True))]


@records("scipy.signal", "fftconvolve", "oaconvolve")
def _fftconvolve(trace: Trace, in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    if axes is None or np.ndim(in1) < 2:
        return _convolve(trace, in1, in2, mode, "fft")
    return original(sys.modules["scipy.signal"].fftconvolve)(in1, in2, mode, axes)


@records("scipy.signal", "correlate")
def _correlate(trace: Trace, in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    v = trace.traced(in2)
    return _convolve(trace, in1, np.conjugate(v[(slice(None, None, -1),) * v.ndim]), mode, method)


@records("scipy.signal", "convolve2d", "correlate2d", named=True)
def _plane(
    name: str, trace: Trace, in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    a, v, flipped = trace.traced(in1), trace.traced(in2), name == "correlate2d"
    if a.ndim != 2 or v.ndim != 2:
        raise ValueError(f"{name} inputs must both be 2-D arrays")
    wide = [extent - 1 for extent in v.shape]
    plain = mode == "valid" or (boundary in ("fill", "pad") and not is_traced(fillvalue) and fillvalue == 0)
    if (flipped or not plain) and any(extent > own for extent, own in zip(wide, a.shape, strict=True)):
        raise trace.refuse(f"scipy.signal.{name} is recorded for kernels no larger than the image.", "")
    v = np.conjugate(v[::-1, ::-1]) if flipped else v
    if mode == "valid":
        return _convolve(trace, a, v, mode, "direct")
    if plain:
        full = _convolve(trace, a, v, "full", "direct")
    else:
        kind = {"fill": CONSTANT, "pad": CONSTANT, "wrap": WRAP, "circular": WRAP}.get(boundary, REFLECT)
        full = _convolve(trace, padded(trace, a, wide, wide, kind, fillvalue), v, "valid", "direct")
    if mode == "full":
        return full
    starts = [(extent + flipped) // 2 for extent in wide]
    return full[tuple(slice(start, start + extent) for start, extent in zip(starts, a.shape, strict=True))]


@records("scipy.signal", "lfilter")
def _lfilter(trace: Trace, b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    b, a, x = (np.atleast_1d(trace.traced(each)) for each in (b, a, x))
    axis = range(x.ndim)[axis]
    if zi is None:
        return _filtered(trace, b, a, x, axis)
    before = trace.traced(zi)
    count = max(b.size, a.size) - 1
    shape = tuple(count if each == axis else extent for each, extent in enumerate(x.shape))
    before = np.broadcast_to(before, shape)
    longer = np.concatenate([x, np.zeros(shape)], axis=axis)
    # What the states hold goes through the recursive part alone; what they hold afterwards is found from what the
    # filter would go on to give.
    held = np.concatenate([before, np.zeros(x.shape)], axis=axis)
    whole = _filtered(trace, b, a, longer, axis) + _filtered(trace, a[:1], a, held, axis)
    cut = x.shape[axis]
    rest = np.take(whole, np.arange(cut, cut + count), axis=axis)
    after = _filtered(trace, a / a[0], np.ones(1), rest, axis) if count else rest
    return np.take(whole, np.arange(cut), axis=axis), after


def _filtered(trace: Trace, b: Any, a: Any, x: Any, axis: int) -> Any:
    return trace.ruled("lfilter", *map(trace.traced, (b, a, x)), axis=axis)


@records("scipy.signal", "lfilter_zi")
def _steady(trace: Trace, b: Any, a: Any) -> Any:
    """The states of a filter whose input was always 1: the solution of a system that is solved from its first row."""
    b, a = (np.atleast_1d(trace.traced(each)) for each in (b, a))
    if b.ndim != 1 or a.ndim != 1:
        raise ValueError("Numerator and denominator must be 1-D.")
    count = max(len(a), len(b))
    b, a = (np.concatenate([each, np.zeros(count - len(each))]) / a[0] for each in (b, a))
    drive = b[1:] - a[1:] * b[0]
    first = np.sum(drive) / np.sum(a)
    sums = np.concatenate([a[:1], a[1:-1]])
    earlier = np.concatenate([np.zeros(1), drive[:-1]])
    return np.cumsum(sums) * first - np.cumsum(earlier)


@records("scipy.signal", "sosfilt")
def _sections(trace: Trace, sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    sos, x = trace.traced(sos), trace.traced(x)
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError("sos array must be shape (n_sections, 6)")
    states = []
    for place in range(sos.shape[0]):
        row = sos[place]
        if zi is None:
            x = _lfilter(trace, row[:3], row[3:], x, axis)
            continue
        x, after = _lfilter(trace, row[:3], row[3:], x, axis, trace.traced(zi)[place])
        states.append(after)
    return x if zi is None else (x, np.stack(states))


@records("scipy.signal._savitzky_golay", "_fit_edges_polyfit")
def _fitted_ends(
    trace: Trace, x: Any, window_length: int, polyorder: int, deriv: int, delta: Any, axis: int, y: Any
) -> Any:
    """At the ends a polynomial is fitted to the last window: what that does to each element of a window."""
    unit, half = np.eye(window_length), window_length // 2
    fit = sys.modules["scipy.signal"].savgol_filter(unit, window_length, polyorder, deriv, delta, axis=0)
    rows, inner = np.moveaxis(x, axis, 0), np.moveaxis(y, axis, 0)
    first = np.tensordot(fit[:half], rows[:window_length], axes=1)
    last = np.tensordot(fit[window_length - half :], rows[len(rows) - window_length :], axes=1)
    whole = np.concatenate([first, inner[half : len(rows) - half], last])
    overwrite(y, np.moveaxis(whole, 0, axis).astype(y.dtype, copy=False))
    return y


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
    weights = np.reshape(h, (1,) * (x.ndim - 1) + (-1,))
    found = trace.ruled("signal_convolve", spread, weights, mode="full", method="direct")
    return np.moveaxis(found[..., ::down], -1, axis)


@records("scipy.signal", "medfilt2d")
def _medfilt2d(trace: Trace, input: Any, kernel_size: Any) -> Any:
    return sys.modules["scipy.signal"].medfilt(input, kernel_size)


@records("scipy.signal", "sepfir2d")
def _separable(trace: Trace, input: Any, hrow: Any, hcol: Any) -> Any:
    """Along both axes of an image, which is reflected at its edges."""
    ndimage, image = sys.modules["scipy.ndimage"], trace.traced(input)
    for axis, taps in ((1, hrow), (0, hcol)):
        image = ndimage.convolve1d(image, taps, axis=axis, mode="reflect")
    return image


_COMPILED = "scipy.signal._peak_finding_utils"


@records(_COMPILED, "_local_maxima_1d")
def _local_maxima(trace: Trace, x: Any) -> Any:
    """Runs of equal samples between lower ones: the middle, the first and the last sample of each."""
    changes = np.flatnonzero(x[1:] != x[:-1])
    first = trace.traced(np.concatenate([np.zeros(1, int), changes + 1]))
    last = trace.traced(np.concatenate([changes, np.full(1, len(x) - 1)]))
    height = x[first]
    chosen = np.flatnonzero((height[1:-1] > height[:-2]) & (height[1:-1] > height[2:])) + 1
    first, last = first[chosen], last[chosen]
    return (first + last) // 2, first, last


@records(_COMPILED, "_peak_prominences")
def _prominences(trace: Trace, x: Any, peaks: Any, wlen: Any) -> Any:
    """Over the lowest sample on the higher side: of equal ones the nearest, short of samples above the peak."""
    peaks, places = np.asarray(peaks)[:, None], np.arange(len(x))
    half = wlen // 2 if wlen >= 2 else len(x)
    higher = x > x[peaks]
    first = np.max(np.where(higher & (places < peaks), places, -1), axis=1, keepdims=True) + 1
    last = np.min(np.where(higher & (places > peaks), places, len(x)), axis=1, keepdims=True) - 1
    first, last = np.maximum(first, peaks - half), np.minimum(last, peaks + half)
    before = np.where((places >= first) & (places <= peaks), x, np.inf)
    after = np.where((places >= peaks) & (places <= last), x, np.inf)
    left, right = len(x) - 1 - np.argmin(before[:, ::-1], axis=1), np.argmin(after, axis=1)
    return x[peaks[:, 0]] - np.maximum(x[left], x[right]), left, right


@records(_COMPILED, "_peak_widths")
def _widths(
    trace: Trace, x: Any, peaks: Any, rel_height: Any, prominences: Any, left_bases: Any, right_bases: Any
) -> Any:
    """Between where the signal crosses the height that is asked for, on the line from there to the next sample."""
    x, prominences, peaks = trace.traced(x), np.asarray(prominences), np.asarray(peaks)
    left_bases, right_bases = np.asarray(left_bases), np.asarray(right_bases)
    height, places = x[peaks] - prominences * rel_height, np.arange(len(x))
    low = x <= height[:, None]
    left = (places <= peaks[:, None]) & (low | (places <= left_bases[:, None]))
    right = (places >= peaks[:, None]) & (low | (places >= right_bases[:, None]))
    ends = []
    for side, place in (
        (1, np.max(np.where(left, places, 0), axis=1)),
        (-1, np.min(np.where(right, places, len(x)), axis=1)),
    ):
        below = x[place] < height
        rise = np.where(below, x[np.clip(place + side, 0, len(x) - 1)] - x[place], 1.0)
        ends.append(place + side * np.where(below, (height - x[place]) / rise, 0.0))
    return ends[1] - ends[0], height, *ends


@records(_COMPILED, "_select_by_peak_distance")
def _far_apart(trace: Trace, peaks: Any, priority: Any, distance: Any) -> Any:
    """SciPy's choice, which other peaks in the same order share."""
    given = [_known(trace, each) for each in (trace.traced(peaks), np.argsort(trace.traced(priority), kind="stable"))]
    compiled = original(sys.modules[_COMPILED]._select_by_peak_distance)
    places, order = map(np.ascontiguousarray, given)
    ranks = np.argsort(order).astype(float)
    return compiled(places, ranks, distance).astype(bool)


def _known(trace: Trace, value: Any) -> Any:
    """What the traced ``value`` is, which a guard asks for from now on."""
    known = trace.values[trace.lift(value)]
    if not bool(np.all(value == known)):
        raise ValueError("a value is not a number")
    return known


_CHOICES = {"max": np.max, "maximum": np.max, "min": np.min, "minimum": np.min, "avg": np.mean, "mean": np.mean}


@records("scipy.signal", "unique_roots")
def _unique_roots(trace: Trace, p: Any, tol: Any = 1e-3, rtype: str = "min") -> Any:
    """SciPy's groups; that other roots have the same ones is a guard."""
    if rtype not in _CHOICES:
        raise ValueError(f"`rtype` must be one of {set(_CHOICES)}")
    p = trace.traced(p)
    near = np.hypot(*(part(p)[:, None] - part(p)[None, :] for part in (np.real, np.imag))) <= tol
    known, rest, groups = _known(trace, near), list(range(len(p))), []
    while rest:
        groups.append([each for each in rest if known[rest[0], each]])
        rest = [each for each in rest if each not in groups[-1]]
    return np.stack([_CHOICES[rtype](p[group]) for group in groups]), np.array([len(group) for group in groups])
