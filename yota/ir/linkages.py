"""The clusters that a hierarchical clustering merges, the simplices that points lie in, and their neighbours."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np


def merged(z: Any, *, halves: bool) -> Any:
    """For each merge, the weights of the points in its two clusters; they add up to one.

    halves: whether both clusters of an earlier merge count the same, and not their points.
    """
    count = len(z) + 1
    weights, sizes = [*np.eye(count)], [1] * count
    found = np.empty((2, count - 1, count))
    for row, (left, right) in enumerate(np.asarray(z)[:, :2].astype(int)):
        found[:, row] = weights[left], weights[right]
        part = 0.5 if halves else sizes[left] / (sizes[left] + sizes[right])
        weights.append(part * weights[left] + (1 - part) * weights[right])
        sizes.append(sizes[left] + sizes[right])
    return found


def corners(points: Any, x: Any) -> tuple[Any, Any]:
    """The corners of the Delaunay simplex of each point of ``x``, any if there is none, and whether there is one."""
    made = importlib.import_module("scipy.spatial").Delaunay(np.ascontiguousarray(points))
    found = made.find_simplex(np.ascontiguousarray(x))
    return made.simplices[np.maximum(found, 0)], found >= 0


def nearest(points: Any, x: Any, *, wanted: Sequence[int], options: tuple[Any, ...]) -> Any:
    """Which points are nearest to each of ``x``: the first, the second and so on, as is wanted."""
    eps, p, bound, box = options
    return _tree(points, box).query(x, list(wanted), eps, p, bound)[1]


def neighbours(points: Any, x: Any, r: Any, *, method: str, options: tuple[Any, ...]) -> Any:
    """What a method of a tree of points lists or counts, in one row of whole numbers."""
    eps, p, box, other_box = options
    tree = _tree(points, box)
    if method == "query_pairs":
        pairs = tree.query_pairs(r, p, eps, output_type="ndarray")
        return pairs[np.lexsort(pairs.T)].ravel()
    if method == "count_neighbors":
        return np.ravel(tree.count_neighbors(_tree(x, other_box), r, p))
    if method == "query_ball_tree":
        lists = tree.query_ball_tree(_tree(x, other_box), r, p, eps)
    else:
        lists = np.ravel(np.asarray(tree.query_ball_point(x, r, p, eps), dtype=object))
        lists = [lists] if np.ndim(x) == 1 else lists
    return np.concatenate([np.array([len(each), *sorted(each)], int) for each in lists] or [np.zeros(0, int)])


def has_neighbours(points: Any, x: Any, r: Any, known: Any, *, method: str, options: tuple[Any, ...]) -> Any:
    """Whether `neighbours` are those that are known."""
    return np.bool_(np.array_equal(neighbours(points, x, r, method=method, options=options), known))


def _tree(points: Any, box: Any) -> Any:
    return importlib.import_module("scipy.spatial").KDTree(points, boxsize=box)
