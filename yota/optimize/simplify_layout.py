"""Rules of `simplify` for ops that only move elements, and for index arrays that run in steps, which are slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.errors import TapeError
from yota.ir.indexing import GATHER, Index, Slice, pieces_of
from yota.ir.infer import infer
from yota.ir.types import TensorType
from yota.optimize import simplify_reads as reading
from yota.optimize.case import Case, Rule

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


def unbroadcast(case: Case) -> int | None:
    """An elementwise op on arrays takes what its operands were broadcast from; its result is broadcast if need be."""
    sources = tuple(_source(case, operand) for operand in case.operands)
    if sources == case.operands:
        return None
    try:
        found = infer(case.primitive, tuple(case.type_of(source) for source in sources), case.static)
    except TapeError:
        return None
    if found.dtype != case.type.dtype:
        return None
    small = TensorType(case.type.dtype, found.shape)
    result = case.make(case.primitive, sources, case.static, small)
    if found.shape == case.type.shape:
        return result
    return case.make("broadcast_to", (result,), {"shape": case.type.shape}, case.type)


def _source(case: Case, variable: int) -> int:
    op = case.definition(variable, "broadcast_to")
    if op is not None:
        return _source(case, op.operands[0])
    op = case.definition(variable, "reshape")
    if op is not None and not case.type_of(op.operands[0]).shape:
        return _source(case, op.operands[0])
    if case.type_of(variable).shape:
        value = case.value(variable)
        if value is not None:
            return case.constant(value)
    return variable


def _reshape(case: Case) -> int | None:
    (operand,) = case.operands
    if case.type_of(operand).shape == case.type.shape:
        return case.same(operand)
    inner = case.definition(operand, "reshape") or case.definition(operand, "stack")
    if inner is not None and len(inner.operands) == 1:
        return case.make("reshape", inner.operands, case.static, case.type)
    read = case.definition(operand, "getitem")
    if read is not None and not case.type.shape and len(read.operands) == 1:
        place = tuple(0 for _ in case.type_of(operand).shape)
        index = reading.compose(read.keyword("index"), place)
        if index is not None:
            return case.make("getitem", read.operands, {"index": index}, case.type)
    return _of_uniform(case)


def _transpose(case: Case) -> int | None:
    (operand,) = case.operands
    axes = case.keyword("axes")
    if axes == tuple(range(len(axes))):
        return case.same(operand)
    inner = case.definition(operand, "transpose")
    if inner is not None:
        before = inner.keyword("axes")
        composed = tuple(before[axis] for axis in axes)
        return case.make("transpose", inner.operands, {"axes": composed}, case.type)
    return _of_uniform(case)


def _of_uniform(case: Case) -> int | None:
    """Elements of a broadcast scalar, rearranged or read, are a broadcast scalar."""
    inner = case.definition(case.operands[0], "broadcast_to")
    if inner is None or case.type_of(inner.operands[0]).size != 1:
        return None
    (scalar,) = inner.operands
    if case.type_of(scalar).shape:
        scalar = case.make("reshape", (scalar,), {"shape": ()})
    return case.make("broadcast_to", (scalar,), {"shape": case.type.shape}, case.type)


def _broadcast_to(case: Case) -> int | None:
    (operand,) = case.operands
    if case.type_of(operand) == case.type:
        return operand
    inner = case.definition(operand, "broadcast_to")
    if inner is not None:
        return case.make("broadcast_to", inner.operands, case.static, case.type)
    return None


def _truth(case: Case) -> int | None:
    """`any` and `all` of single truth values."""
    (operand,) = case.operands
    type = case.type_of(operand)
    return case.same(operand) if not type.shape and type == case.type else None


def _join_of_one(case: Case) -> int | None:
    return case.same(case.operands[0]) if len(case.operands) == 1 else None


def _read_of_uniform(case: Case) -> int | None:
    return _of_uniform(case) if len(case.operands) == 1 and case.type.size != 0 else None


EXACT: dict[str, tuple[Rule, ...]] = {
    "reshape": (_reshape,),
    "transpose": (_transpose,),
    "broadcast_to": (_broadcast_to,),
    "any": (_truth,),
    "all": (_truth,),
    "concatenate": (_join_of_one,),
    "getitem": (_read_of_uniform, *reading.RULES, read),
    "scatter": (addition, same_row),
}
