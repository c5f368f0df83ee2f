"""scipy.stats.mstats of arrays without a mask."""

from __future__ import annotations

import math
import sys
from typing import Any

from yota.tracing.implementations import records
from yota.tracing.scipy.distribution_formulas import special
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_MODULE = "scipy.stats.mstats"
_QUARTERS = (0.25, 0.5, 0.75)
_OUTER = 2.5758293035489004
"""The quantile of a normal variable by which McKean and Schrader choose the elements that they compare."""


def _check(trace: Trace, name: str, *given: Any) -> None:
    if any(isinstance(each, np.ma.MaskedArray) for each in given):
        raise trace.unrecorded(f"{_MODULE}.{name} of a masked array", "Leave out what is masked.")


def _sorted(trace: Trace, name: str, data: Any, axis: int | None) -> Any:
    """What is sorted along the last axis."""
    _check(trace, name, data)
    data = trace.traced(data)
    if data.ndim > 2:
        raise ValueError(f"{_MODULE}.{name} takes arrays of two dimensions at most")
    return np.sort(np.ravel(data) if axis is None else np.moveaxis(data, axis, -1), axis=-1)


@records(_MODULE, "linregress", "pearsonr", "sem", "variation", named=True)
def _unmasked(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """The function of scipy.stats."""
    _check(trace, name, *args, *keywords.values())
    found = getattr(sys.modules["scipy.stats"], name)(*args, **keywords)
    return found.astype(float) if name == "sem" else found


@records(_MODULE, "mquantiles")
def _quantiles(
    trace: Trace,
    a: Any,
    prob: Any = _QUARTERS,
    alphap: float = 0.4,
    betap: float = 0.4,
    axis: int | None = None,
    limit: Any = (),
) -> Any:
    if len(limit):
        raise trace.unrecorded(f"{_MODULE}.mquantiles with limit", "Leave out what is beyond it.")
    rows, p = _sorted(trace, "mquantiles", a, axis), np.atleast_1d(prob)
    count = rows.shape[-1]
    place = count * p + (alphap + p * (1.0 - alphap - betap))
    below = np.floor(np.clip(place, 1, max(count - 1, 1))).astype(int)
    share = np.clip(place - below, 0, 1)
    found = (1 - share) * rows[..., below - 1] + share * rows[..., np.minimum(below, count - 1)]
    return found if axis is None else np.moveaxis(found, -1, axis)


@records(_MODULE, "hdquantiles")
def _smooth_quantiles(
    trace: Trace, data: Any, prob: Any = _QUARTERS, axis: int | None = None, var: bool = False
) -> Any:
    """Sums of all elements, weighed by a beta distribution (F. E. Harrell, C. E. Davis 1982)."""
    rows, p = _sorted(trace, "hdquantiles", data, axis), np.atleast_1d(prob)
    count = rows.shape[-1]
    if var or count < 2:
        raise trace.unrecorded(f"{_MODULE}.hdquantiles with var, or of one element", "Pass more elements without it.")
    inner = np.where((p > 0) & (p < 1), p, 0.5)
    level = np.arange(count + 1.0)[:, None] / count
    weights = np.diff(special("betainc")((count + 1) * inner, (count + 1) * (1 - inner), level), axis=0)
    found = np.where(p == 0, rows[..., :1], np.where(p == 1, rows[..., -1:], rows @ weights))
    return found if axis is None else np.moveaxis(found, -1, axis)


def _deviation_of_median(rows: Any) -> Any:
    """From two elements around the median (J. W. McKean, R. M. Schrader 1984)."""
    count = rows.shape[-1]
    outer = int(round((count + 1) / 2.0 - _OUTER * math.sqrt(count / 4.0), 0))
    return (rows[..., count - outer] - rows[..., outer - 1]) / (2 * _OUTER)


@records(_MODULE, "compare_medians_ms")
def _compare_medians(trace: Trace, group_1: Any, group_2: Any, axis: int | None = None) -> Any:
    groups = [_sorted(trace, "compare_medians_ms", each, axis) for each in (group_1, group_2)]
    apart = np.abs(np.subtract(*(np.median(each, axis=-1) for each in groups)))
    apart = apart / np.sqrt(sum(_deviation_of_median(each) ** 2 for each in groups))
    return 1 - special("ndtr")(apart.astype(float))
