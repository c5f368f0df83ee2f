"""Rules of `simplify` for constant index arrays that run in steps: they are slices, which cost next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.indexing import GATHER, Index, Slice, pieces_of
from yota.optimize.case import Case

_SHORTEST = 64
"""Fewer elements are gathered as they are."""
_MOST = 8
_MEAN_LENGTH = 8


def slices(places: Any, extent: int) -> list[Slice] | None:
    """Slices of an axis that together, in this order, are the elements at ``places``; None if they are too many.

    >>> slices(np.r_[2, 1, np.arange(100)], 100)
    [Slice(start=2, stop=None, step=-1), Slice(start=1, stop=100, step=1)]
    """
    where = np.asarray(places)
    if where.ndim != 1 or where.dtype.kind not in "iu" or where.size < _SHORTEST:
        return None
    where = where.astype(np.int64)
    where = np.where(where < 0, where + extent, where)
    steps = np.diff(where)
    changes = np.flatnonzero(np.diff(steps)) + 1
    if changes.size > 2 * _MOST:
        return None
    found: list[Slice] = []
    position = 0
    while position < where.size and len(found) <= _MOST:
        step = int(steps[position]) if position < steps.size else 0
        end = position
        if step:
            later = changes[changes > position]
            end = int(later[0]) if later.size else where.size - 1
        found.append(_slice(int(where[position]), int(where[end]), step or 1))
        position = end + 1
    return found if len(found) <= _MOST and where.size >= _MEAN_LENGTH * len(found) else None


def _slice(first: int, last: int, step: int) -> Slice:
    stop = last + (1 if step > 0 else -1)
    return Slice(first, None if stop < 0 else stop, step)


def read(case: Case) -> int | None:
    """A gather along one axis, as slices side by side."""
    index, (source, *arrays) = case.keyword("index"), case.operands
    axis = _axis(index, case.type_of(source).shape)
    if axis is None or arrays[0] not in case.builder.constants:
        return None
    pieces = slices(case.builder.constants[arrays[0]], case.type_of(source).shape[axis])
    if pieces is None:
        return None
    parts = [case.make("getitem", (source,), {"index": _along(index, axis, piece)}) for piece in pieces]
    return parts[0] if len(parts) == 1 else case.make("concatenate", parts, {"axis": axis}, case.type)


def addition(case: Case) -> int | None:
    """Pieces added at such places are pieces added to slices."""
    shape = case.keyword("shape")
    operands: list[int] = []
    indices: list[Index] = []
    for piece, arrays, index in pieces_of(case.operands, case.keyword("indices")):
        found = _pieces(case, index, shape, piece, arrays)
        if found is None:
            operands += [piece, *arrays]
            indices.append(index)
        for place, part in found or ():
            operands.append(part)
            indices.append(place)
    if tuple(indices) == case.keyword("indices"):
        return None
    return case.make("scatter", operands, {"indices": tuple(indices), "shape": shape}, case.type)


def same_row(case: Case) -> int | None:
    """Pieces added to one row are added to each other first, so that they are a sum like any other."""
    indices = case.keyword("indices")
    rows = [index[0] if index and isinstance(index[0], int) else None for index in indices]
    if None in rows or any(GATHER in index for index in indices) or len(set(indices)) == len(indices):
        return None
    if len(set(rows)) < len(set(indices)):
        # Places of one row that overlap in part: what is added to what first would be another order.
        return None
    pieces: dict[Index, int] = {}
    for index, piece in zip(indices, case.operands, strict=True):
        before = pieces.get(index)
        if before is not None and case.type_of(before) != case.type_of(piece):
            return None
        pieces[index] = piece if before is None else case.make("add", (before, piece))
    static = {"indices": tuple(pieces), "shape": case.keyword("shape")}
    return case.make("scatter", list(pieces.values()), static, case.type)


def _pieces(
    case: Case, index: Index, shape: tuple[int, ...], piece: int, arrays: list[int]
) -> list[tuple[Index, int]] | None:
    """Indices and the parts of a piece that go there."""
    axis = _axis(index, shape)
    if axis is None or arrays[0] not in case.builder.constants:
        return None
    given = case.type_of(piece).shape
    if given != (*shape[:axis], case.type_of(arrays[0]).size, *shape[axis + 1 :]):
        return None
    found, start = [], 0
    for each in slices(case.builder.constants[arrays[0]], shape[axis]) or ():
        stop = start + len(each.positions(shape[axis]))
        part = case.make("getitem", (piece,), {"index": _along(index, axis, Slice(start, stop))})
        found.append((_along(index, axis, each), part))
        start = stop
    return found or None


def _axis(index: Index, shape: tuple[int, ...]) -> int | None:
    """The one axis that is gathered, if all others are taken whole."""
    if index.count(GATHER) != 1 or len(index) != len(shape):
        return None
    whole = (entry is GATHER or entry == Slice(0, extent) for entry, extent in zip(index, shape, strict=True))
    return index.index(GATHER) if all(whole) else None


def _along(index: Index, axis: int, piece: Slice) -> Index:
    return (*index[:axis], piece, *index[axis + 1 :])
