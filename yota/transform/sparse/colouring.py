"""Colouring of the columns of a sparse matrix; columns of one colour are computed together.

A. Curtis, M. Powell and J. Reid, "On the estimation of sparse Jacobian matrices" (Journal of the Institute of
Mathematics and its Applications 13, 1974); for symmetric matrices A. Gebremedhin, F. Manne and A. Pothen, "What color
is your Jacobian? Graph coloring for computing derivatives" (SIAM Review 47, 2005).
"""

from __future__ import annotations

import itertools
from typing import Any, TypeAlias

import numpy as np

from yota.transform.sparse.csr import csgraph, library

Colours: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_MOST_STEPS = 6_000_000
"""Largest number of Python steps for colouring column by column."""
_MOST_COUNTS = 200_000_000
_FURTHER = 16
_LONG = 16
"""How many times as long as others a column is at least that has a colour of its own."""


def apart(matrix: Any) -> Colours:
    """Colours of the columns of a CSR pattern; no row has entries in two columns of one colour."""
    lengths = np.bincount(matrix.indices, minlength=matrix.shape[1])
    long = np.flatnonzero(lengths > _LONG * max(4.0, float(np.mean(lengths))) if len(lengths) else [])
    if 0 < len(long) <= _FURTHER:
        # A column that meets nearly all others has a colour of its own.
        kept = np.ones(len(lengths), bool)
        kept[long] = False
        colours = apart(_without(matrix, kept))
        colours[long] = _number(colours[kept]) + np.arange(len(long))
        return colours
    least = int(np.max(np.diff(matrix.indptr), initial=0))
    if least <= 1:
        return np.zeros(matrix.shape[1], np.int64)
    found = _in_blocks(matrix)
    if _number(found) > least:
        turns = _in_turn(matrix, least)
        found = found if turns is None else min(found, turns, key=_number)
        near = _neighbours(matrix, _MOST_STEPS) if _number(found) > least + least // 8 else None
        if near is not None:
            found = min(found, _greedy(near), key=_number)
    return found


def _without(matrix: Any, kept: Any) -> Any:
    """A pattern with those columns alone, at their places, that are ``kept``."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    inside = kept[matrix.indices]
    return library().csr_array(
        (np.ones(int(np.sum(inside)), bool), (rows[inside], matrix.indices[inside])), shape=matrix.shape
    )


def _number(colours: Colours) -> int:
    return int(colours.max(initial=-1)) + 1


def _in_blocks(matrix: Any) -> Colours:
    """The number of each column among those that it is connected with, which suits blocks."""
    rows, columns = matrix.shape
    pointers = np.concatenate([matrix.indptr, np.full(columns, matrix.indptr[-1])])
    square = library().csr_array((matrix.data, matrix.indices + rows, pointers), shape=(rows + columns,) * 2)
    labels = csgraph().connected_components(square, directed=False)[1][rows:]
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], labels[order])
    colours = np.empty(columns, np.int64)
    colours[order] = np.arange(columns) - starts
    return colours


def _in_turn(matrix: Any, least: int) -> Colours | None:
    """Periodic colours, which suit banded matrices; None if they need many more colours."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    for number in range(max(1, least), max(1, least) + _FURTHER):
        if matrix.shape[0] * number > _MOST_COUNTS:
            break
        if np.max(np.bincount(rows * number + matrix.indices % number), initial=0) <= 1:
            return np.arange(matrix.shape[1]) % number
    return None


def _neighbours(matrix: Any, most: int) -> Any:
    """Columns that share a row, as a CSR pattern; None if there are too many."""
    lengths = np.diff(matrix.indptr).astype(np.int64)
    if int(np.sum(lengths**2)) > 20 * most:
        return None
    return (matrix.T @ matrix).tocsr()


def _greedy(near: Any) -> Colours:
    """Greedy colouring in order of decreasing degree."""
    starts, others = near.indptr, near.indices
    colours = np.full(near.shape[0], -1)
    for column in np.argsort(-np.diff(starts), kind="stable"):
        taken = colours[others[starts[column] : starts[column + 1]]]
        colours[column] = _first_free(taken)
    return colours


def _first_free(taken: Any) -> int:
    """The smallest number not in ``taken``; -1 means none."""
    used = np.zeros(len(taken) + 1, bool)
    used[taken[(taken >= 0) & (taken <= len(taken))]] = True
    return int(np.argmin(used))


def star(matrix: Any) -> Colours:
    """Star colouring of the columns of a symmetric CSR pattern: each entry, or its mirror, is alone in its row.

    Neighbours have different colours, and no path of four columns has only two colours.
    """
    found = apart(matrix)
    lengths = np.diff(matrix.indptr).astype(np.int64)
    if found.max(initial=0) < 3 or int(np.sum(lengths[matrix.indices] * lengths[matrix.indices])) > _MOST_STEPS:
        return found
    other = _star(matrix)
    return other if other.max(initial=0) < found.max(initial=0) else found


def _star(matrix: Any) -> Colours:
    starts, others = matrix.indptr.tolist(), matrix.indices.tolist()
    near = [
        [other for other in others[first:last] if other != column]
        for column, (first, last) in enumerate(itertools.pairwise(starts))
    ]
    colours = [-1] * len(near)
    order = sorted(range(len(near)), key=lambda column: -len(near[column]))
    for column in order:
        taken: set[int] = set()
        for other in near[column]:
            own = colours[other]
            if own < 0:
                taken.update(colours[further] for further in near[other])
                continue
            taken.add(own)
            for further in near[other]:
                if colours[further] >= 0 and any(colours[last] == own and last != other for last in near[further]):
                    taken.add(colours[further])
        colours[column] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    return np.array(colours, np.int64)
