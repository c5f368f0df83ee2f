"""The clusters that a hierarchical clustering merges; only `np` is needed."""

from __future__ import annotations

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
