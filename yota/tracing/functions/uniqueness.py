"""Sets of values: unique and its kin; how many values differ is a guard, and first occurrences get the derivative."""

from __future__ import annotations

import math
from typing import Any

from yota.rules.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@implements(np.unique)
def _unique(
    trace: Trace,
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    ar = trace.traced(ar)
    shape = ar.shape if axis is None else None
    if axis is None:
        rows, axis = np.reshape(ar, (ar.size, 1)), 0
        lines = np.ravel(ar)
    else:
        axis = axes_of(axis, ar.ndim)[0]
        lines = np.moveaxis(ar, axis, 0)
        rows = np.reshape(lines, (lines.shape[0], math.prod(lines.shape[1:])))
    order = np.lexsort(tuple(rows[:, column] for column in reversed(range(rows.shape[1]))))
    first = _first_of_run(rows[order], equal_nan and shape is not None)
    places = np.nonzero(first)[0]
    index = order[places]
    results = [np.moveaxis(lines[index], 0, axis)]
    if return_index:
        results.append(index)
    if return_inverse:
        inverse = (np.cumsum(first) - 1)[np.argsort(order, kind="stable")]
        results.append(inverse if shape is None else np.reshape(inverse, shape))
    if return_counts:
        results.append(np.diff(np.concatenate([places, np.array([lines.shape[0]])])))
    return results[0] if len(results) == 1 else tuple(results)


def _first_of_run(rows: Any, equal_nan: bool) -> Any:
    """Which of the sorted rows differ from the one before."""
    later, earlier = rows[1:], rows[:-1]
    differs = np.not_equal(later, earlier)
    if equal_nan and rows.dtype.kind in "fc":
        differs = np.logical_and(differs, np.logical_not(np.logical_and(np.isnan(later), np.isnan(earlier))))
    start = np.ones(min(rows.shape[0], 1), bool)
    return np.concatenate([start, np.any(differs, axis=1)])


@implements(np.isin)
def _isin(
    trace: Trace,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    element, tests = trace.traced(element), np.sort(np.ravel(trace.traced(test_elements)))
    if not tests.size:
        found = np.zeros(element.shape, bool)
    else:
        places = np.minimum(np.searchsorted(tests, element), tests.size - 1)
        found = np.equal(tests[places], element)
    return np.logical_not(found) if invert else found


@implements(np.setdiff1d)
def _setdiff1d(trace: Trace, ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    values = np.ravel(trace.traced(ar1)) if assume_unique else np.unique(trace.traced(ar1))
    return values[np.isin(values, ar2, invert=True)]


@implements(np.array_equiv)
def _array_equiv(trace: Trace, a1: Any, a2: Any) -> bool:
    a1, a2 = trace.traced(a1), trace.traced(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return bool(np.all(np.equal(a1, a2)))
