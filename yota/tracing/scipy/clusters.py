"""Hierarchical clustering and isotonic regression: which points belong together is fixed, and heights are formulas."""

from __future__ import annotations

import sys
from typing import Any

import yota.ir.linkages  # noqa: F401  (a rule calls its function)
from yota.ir.callables import original
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_METHODS = ("single", "complete", "average", "weighted", "centroid", "median", "ward")


@records("scipy.cluster.hierarchy", *_METHODS, named=True)
def _linkage(method: str, trace: Trace, y: Any, metric: Any = "euclidean", optimal_ordering: bool = False) -> Any:
    """The merges of SciPy, with heights by the distances of all pairs."""
    distance = sys.modules["scipy.spatial.distance"]
    y = trace.traced(y).astype(float)
    y = distance.pdist(y, metric) if y.ndim == 2 else y
    z = trace.ruled("_linkage", y, method=method, optimal_ordering=bool(optimal_ordering))
    left, right = trace.ruled("_merged", z, halves=method in ("weighted", "median"))
    apart = distance.squareform(y)
    if method in ("single", "complete"):
        pairs = (left[:, :, None] > 0) & (right[:, None, :] > 0)
        extreme, outside = (np.min, np.inf) if method == "single" else (np.max, -np.inf)
        heights = extreme(np.where(pairs, apart, outside), axis=(1, 2))
    elif method in ("average", "weighted"):
        heights = np.sum(left @ apart * right, axis=1)
    else:
        # The square of the distance of two centres, by those of the points (Lance and Williams 1967).
        between = left - right
        squares = -np.sum(between @ apart**2 * between, axis=1) / 2
        if method == "ward":
            sizes = [np.sum(each > 0, axis=1) for each in (left, right)]
            squares = squares * 2 * sizes[0] * sizes[1] / (sizes[0] + sizes[1])
        heights = np.sqrt(squares)
    return np.stack([z[:, 0], z[:, 1], heights, z[:, 3]], axis=1)


@records("scipy.cluster.hierarchy", "linkage")
def _any_linkage(trace: Trace, y: Any, method: str, metric: Any, optimal_ordering: bool) -> Any:
    if method not in _METHODS:
        raise ValueError(f"Invalid method: {method}")
    return _linkage(method, trace, y, metric, optimal_ordering)


@records("scipy.optimize._isotonic", "pava")
def _pooled(trace: Trace, x: Any, w: Any, r: Any) -> Any:
    """Means of blocks of neighbours; the conditions under which the blocks are those of the solution are guards."""
    x, w = trace.traced(x), trace.traced(w)
    plain = original(sys.modules["scipy.optimize._isotonic"].pava)
    _, _, ends, count = plain(np.array(x._value()), np.array(w._value()), np.array(r))
    starts, sizes = ends[:count], np.diff(ends[: count + 1])
    sums = np.add.reduceat(w, starts)
    means = np.add.reduceat(w * x, starts) / sums
    found = np.repeat(means, sizes)
    inside = np.delete(np.cumsum(w * (x - found)), ends[1 : count + 1] - 1)
    bool(np.all(np.diff(means) > 0) & np.all(inside >= 0))
    return found, sums, ends, count
