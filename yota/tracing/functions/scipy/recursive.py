"""Recursive filters of scipy.signal, with states before and after, and in sections."""

from __future__ import annotations

from typing import Any

from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


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
    whole = _filtered(trace, b, a, longer, axis) + _filtered(trace, a[:1], a, _lengthened(before, x, axis), axis)
    cut = x.shape[axis]
    rest = np.take(whole, np.arange(cut, cut + count), axis=axis)
    after = _filtered(trace, a / a[0], np.ones(1), rest, axis) if count else rest
    return np.take(whole, np.arange(cut), axis=axis), after


def _lengthened(before: Any, x: Any, axis: int) -> Any:
    return np.concatenate([before, np.zeros(x.shape)], axis=axis)


def _filtered(trace: Trace, b: Any, a: Any, x: Any, axis: int) -> Any:
    operands = tuple(trace.traced(each) for each in (b, a, x))
    return trace.apply(trace.registry.primitive("lfilter"), operands, {"axis": axis})


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


@records("scipy.signal", "sosfilt_zi")
def _steady_sections(trace: Trace, sos: Any) -> Any:
    sos = trace.traced(sos)
    scale: Any = 1.0
    rows = []
    for place in range(sos.shape[0]):
        b, a = sos[place, :3], sos[place, 3:]
        rows.append(scale * _steady(trace, b, a))
        scale = scale * (np.sum(b) / np.sum(a))
    return np.stack(rows)
