"""Peaks and groups of roots of scipy.signal: the compiled parts, in NumPy's functions, of SciPy's own code."""

from __future__ import annotations

import sys
from typing import Any

from yota.ir.callables import original
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

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
