"""The clusters that a hierarchical clustering merges, and the simplices of a triangulation that points lie in."""

from __future__ import annotations

import importlib
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
