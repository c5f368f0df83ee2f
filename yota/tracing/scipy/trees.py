"""Neighbours by `scipy.spatial.KDTree`: their numbers are piecewise constant, their distances are differentiable."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

from yota.ir.linkages import neighbours
from yota.tracing.forms import Trace, concrete, current, is_traced, np, original, paused, records

_LISTED = ("query_ball_point", "query_pairs", "query_ball_tree", "count_neighbors")
"""Methods whose results are whole numbers."""


@records("scipy.spatial", "cKDTree", always=True)
def _compiled_tree(trace: Trace, data: Any, leafsize: int = 16, *args: Any, **keywords: Any) -> Any:
    """A tree whose methods are SciPy's in Python, which record what they are asked of traced values."""
    if is_traced([data]):
        return _tree(trace, data, leafsize, *args, **keywords)
    return original(sys.modules["scipy.spatial"].KDTree)(data, leafsize, *args, **keywords)


@records("scipy.spatial", "KDTree")
def _tree(trace: Trace, data: Any, *args: Any, **keywords: Any) -> Any:
    """A tree of plain points that knows the traced ones."""
    points = trace.traced(data)
    kind = _traced_tree(original(sys.modules["scipy.spatial"].KDTree))
    if is_traced([*args, *keywords.values()]):
        raise trace.unrecorded("a tree of scipy.spatial in a box by traced numbers", "Pass numbers.")
    made = kind(np.array(concrete(trace, points), float), *args, **keywords)
    made.traced_points = points.astype(float, copy=False)
    return made


@functools.cache
def _traced_tree(kind: Any) -> Any:
    """The class of trees of traced points; SciPy's own attributes that tell the points give the traced ones."""

    def refused(name: str) -> Any:
        def read(self: Any) -> Any:
            trace = current()
            assert trace is not None
            raise trace.unrecorded(f"the attribute {name} of a tree of traced points", "Ask the tree for neighbours.")

        return property(read)

    found = {name: refused(name) for name in ("tree", "indices")}
    found["data"] = property(lambda self: self.traced_points)
    found["maxes"] = property(lambda self: np.max(self.traced_points, axis=0))
    found["mins"] = property(lambda self: np.min(self.traced_points, axis=0))
    return type("KDTree", (kind,), found)


def _points(tree: Any) -> Any:
    return getattr(tree, "traced_points", tree.data)


def _box(tree: Any) -> Any:
    return None if tree.boxsize is None else tuple(map(float, tree.boxsize))


@records("scipy.spatial", "KDTree.query")
def _query(trace: Trace, self: Any, x: Any, k: Any, eps: Any, p: Any, distance_upper_bound: Any) -> Any:
    if is_traced([eps, p, distance_upper_bound]):
        raise trace.unrecorded("scipy.spatial.KDTree.query by traced numbers", "Pass numbers.")
    points, x, box = trace.traced(_points(self)), trace.traced(x).astype(float, copy=False), _box(self)
    wanted = tuple(range(1, k + 1)) if isinstance(k, (int, np.integer)) else tuple(map(int, k))
    options = (float(eps), float(p), float(distance_upper_bound), box)
    places = trace.ruled("_nearest", points, x, wanted=wanted, options=options)
    is_there = places < self.n
    apart = x[..., None, :] - points[np.where(is_there, places, 0)]
    if box is not None:
        sizes = np.array([each or np.inf for each in box])
        apart = apart - np.rint(apart / sizes) * np.where(np.isinf(sizes), 0.0, sizes)
    found = np.where(is_there, np.linalg.norm(apart, p, axis=-1), np.inf)
    return (found[..., 0], places[..., 0]) if wanted == (1,) and not np.ndim(k) else (found, places)


@records("scipy.spatial", "KDTree.sparse_distance_matrix", always=True)
def _sparse_distances(trace: Trace, self: Any, other: Any, *args: Any, **keywords: Any) -> Any:
    if is_traced([_points(self), _points(other), *args, *keywords.values()]):
        raise trace.unrecorded(
            "scipy.spatial.KDTree.sparse_distance_matrix", "Take the pairs from query_ball_tree, and np.linalg.norm."
        )
    return original(original(sys.modules["scipy.spatial"].KDTree).sparse_distance_matrix)(
        self, other, *args, **keywords
    )


@records("scipy.spatial", *(f"KDTree.{name}" for name in _LISTED), named=True, always=True)
def _listed(path: str, trace: Trace, self: Any, *args: Any, **keywords: Any) -> Any:
    """What SciPy finds for plain values, under the guard that it finds the same for others."""
    name = path.rpartition(".")[2]
    method = original(getattr(original(sys.modules["scipy.spatial"].KDTree), name))
    bound = inspect.signature(method).bind(self, *args, **keywords)
    bound.apply_defaults()
    given = bound.arguments
    other = given.get("other")
    operands = [_points(self), given.get("x", 0.0) if other is None else _points(other), given["r"]]
    with paused():
        found = method(*concrete(trace, list(bound.args)), **concrete(trace, bound.kwargs))
    if is_traced(operands):
        if is_traced([given["p"], given.get("eps")]) or given.get("weights") is not None:
            raise trace.unrecorded(f"scipy.spatial.{path} with weights or by traced p or eps", "Leave them out.")
        options = (float(given.get("eps", 0.0)), float(given["p"]), _box(self), None if other is None else _box(other))
        traced = [trace.traced(each) for each in operands]
        known = neighbours(*concrete(trace, traced), method=name, options=options)
        bool(trace.ruled("_has_neighbours", *traced, known, method=name, options=options))
    return found
