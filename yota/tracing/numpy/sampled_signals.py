"""Functions of sampled signals: interpolation, convolution, Fourier transforms, counts with weights."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.forms import Trace, axes_of, implements, is_tracer, np, primitive, turned, unboxed


@implements(np.interp, checked=True)
def _interp(trace: Trace, x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    # NumPy computes in double precision, whatever it is given.
    x, xp = (trace.traced(each).astype(float, copy=False) for each in (x, xp))
    fp = trace.traced(fp)
    fp = fp.astype(complex if fp.dtype.kind == "c" else float, copy=False)
    if period is not None:
        period = np.abs(period)
        x, xp = np.remainder(x, period), np.remainder(xp, period)
        order = np.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = np.concatenate([fp[-1:], fp, fp[:1]])
        left = right = None
    # What jumps behind the last point has the slope to its left there.
    closed = right is not None
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    if xp.size == 1:
        inside = np.broadcast_to(fp[0], x.shape)
    else:
        place = np.clip(trace.apply(primitive("searchsorted"), (xp, x), {"side": "right"}) - 1, 0, xp.size - 2)
        start, level = xp[place], fp[place]
        end, next_level = xp[place + 1], fp[place + 1]
        slope = (next_level - level) / (end - start)
        inside = slope * (x - start) + level
        if not all(_is_finite(trace, each) for each in (xp, fp)):
            # As in NumPy: at a point its value, else from the other end, else what both ends have.
            other = slope * (x - end) + next_level
            other = np.where(np.logical_and(np.isnan(other), np.equal(level, next_level)), level, other)
            inside = np.where(np.isnan(inside), np.where(np.equal(x, start), level, other), inside)
        last = fp[-1]
        if closed:
            from_end = next_level - slope * (end - x)
            last = np.where(np.isfinite(from_end), from_end, last)
        inside = np.where(np.equal(x, xp[-1]), last, inside)
    result = np.where(np.less(x, xp[0]), left, np.where(np.greater(x, xp[-1]), right, inside))
    return unboxed(result if xp.size == 1 else np.where(np.isnan(x), x, result))


def _is_finite(trace: Trace, values: Any) -> bool:
    """Whether values are known to be finite, for any arguments."""
    variable = trace.lift(values)
    return trace.is_constant(variable) and bool(np.all(np.isfinite(trace.values[variable])))


_FULL = (2, "full")
"""The mode in which either array may be the longer one."""


@implements(np.convolve, checked=True)
def _convolve(trace: Trace, a: Any, v: Any, mode: Any = "full") -> Any:
    a, v = (np.atleast_1d(trace.traced(each)) for each in (a, v))
    if mode in _FULL:
        return trace.ruled("convolve", a, v)
    if len(v) > len(a):
        a, v = v, a
    return _section(trace, a, np.flip(v), mode, (len(v) - 1) // 2)


@implements(np.gradient, checked=True)
def _gradient(trace: Trace, f: Any, *varargs: Any, axis: Any = None, edge_order: Any = 1) -> Any:
    """NumPy looks at the first distance only where all are equal; of traced points each has its own slope."""
    f, plain = trace.traced(f), np.gradient._implementation
    axes = axes_of(axis, f.ndim)
    uneven = [bool(np.ndim(each)) and trace.varies(each) for each in varargs]
    if not any(uneven) or len(varargs) != len(axes):
        return plain(f, *varargs, axis=axis, edge_order=edge_order)
    if np.result_type(*varargs).kind == "c" != f.dtype.kind:
        raise trace.refuse("np.gradient of real values at complex points is not recorded.", "Write the differences.")
    found = [
        _slopes(f, points, each, edge_order) if apart else plain(f, points, axis=each, edge_order=edge_order)
        for points, each, apart in zip(varargs, axes, uneven, strict=True)
    ]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Any, points: Any, axis: int, edge_order: int) -> Any:
    """Slopes of the parabolas through three points each; at the ends of lines, if ``edge_order`` is 1."""
    steps = np.diff(points)
    lines = np.diff(np.moveaxis(f, axis, -1), axis=-1) / steps
    before, behind, around = steps[:-1], steps[1:], steps[:-1] + steps[1:]
    inner = (behind * lines[..., :-1] + before * lines[..., 1:]) / around
    first, last = lines[..., :1], lines[..., -1:]
    if edge_order == 2:
        bend = np.diff(lines, axis=-1) / around
        first, last = first - steps[:1] * bend[..., :1], last + steps[-1:] * bend[..., -1:]
    return np.moveaxis(np.concatenate([first, inner, last], axis=-1), -1, axis)


@implements(np.correlate, checked=True)
def _correlate(trace: Trace, a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = (np.atleast_1d(trace.traced(each)) for each in (a, v))
    if mode in _FULL:
        return trace.ruled("convolve", a, np.flip(np.conjugate(v)))
    if len(v) <= len(a):
        return _section(trace, a, np.conjugate(v), mode, (len(v) - 1) // 2)
    return _section(trace, np.flip(np.conjugate(v)), np.flip(a), mode, len(a) // 2)


def _section(trace: Trace, a: Any, v: Any, mode: Any, before: int) -> Any:
    """Sums of ``a``, the longer one, times ``v`` moved along it; "same" is "full" from place ``before`` on."""
    if mode in (0, "valid"):
        return trace.ruled("correlate", a, np.conjugate(v))
    return trace.ruled("convolve", a, np.flip(v))[before : before + len(a)]


@implements(np.bincount, checked=True)
def _bincount(trace: Trace, x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """The length, which depends on the positions, is a guard."""
    x = trace.traced(x)
    if x.dtype == bool:  # as an index it would be a mask
        x = x.astype(int)
    length = max(int(np.max(x)) + 1 if x.size else 0, int(minlength))
    counted = np.ones(x.shape, int) if weights is None else weights
    result = trace.constant(np.zeros(length, int if weights is None else np.result_type(weights, float)))
    np.add.at(result, x, counted)
    return result


@implements(np.histogram)
def _histogram(
    trace: Trace, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if any(is_tracer(each) and not trace.is_constant(trace.lift(each)) for each in (a, bins)):
        raise trace.refuse("np.histogram counts traced values, and counts have no derivative.", "Use a smooth kernel.")
    points, edges = (trace.values[trace.lift(each)] if is_tracer(each) else each for each in (a, bins))
    edges = np.histogram_bin_edges(points, edges, range)
    places = np.searchsorted(edges, np.ravel(points), side="right") - 1
    places[np.ravel(points) == edges[-1]] = len(edges) - 2
    kept = np.flatnonzero((places >= 0) & (places < len(edges) - 1))
    weights = trace.traced(weights)
    counts = trace.constant(np.zeros(len(edges) - 1, np.result_type(weights, float)))
    np.add.at(counts, places[kept], np.ravel(weights)[kept])
    counts = counts.astype(weights.dtype, copy=False)
    return (counts / np.diff(edges) / np.sum(counts) if density else counts), edges


@implements(np.digitize)
def _digitize(trace: Trace, x: Any, bins: Any, right: bool = False) -> Any:
    bins = trace.traced(bins)
    steps = np.diff(bins)
    if bool(np.any(steps > 0)) or not bool(np.any(steps < 0)):
        return np.searchsorted(bins, x, side="left" if right else "right")
    return len(bins) - np.searchsorted(np.flip(bins), x, side="right" if right else "left")


@implements(np.nan_to_num)
def _nan_to_num(trace: Trace, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    x = trace.traced(x)
    if x.dtype.kind == "c":
        parts = (np.nan_to_num(each, True, nan, posinf, neginf) for each in (np.real(x), np.imag(x)))
        return next(parts) + turned(next(parts), x.dtype)
    if x.dtype.kind != "f":
        return x.copy()
    limits = np.finfo(x.dtype)
    kind = x.dtype.type
    high, low = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    result = np.where(np.isnan(x), kind(nan) if not is_tracer(nan) else nan, x)
    result = np.where(np.equal(x, math.inf), kind(high) if not is_tracer(high) else high, result)
    result = np.where(np.equal(x, -math.inf), kind(low) if not is_tracer(low) else low, result)
    if not copy:
        x[...] = result
        return unboxed(x)
    return unboxed(result)


@implements(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, named=True)
def _transform(name: str, trace: Trace, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
    a = trace.traced(a)
    axis = axes_of(axis, a.ndim)[0]
    if n is None:
        n = 2 * (a.shape[axis] - 1) if name == "irfft" else a.shape[axis]
    return trace.ruled(name, a, n=int(n), axis=axis, norm=norm or "backward")
