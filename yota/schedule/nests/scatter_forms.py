"""Brings writes and additions of pieces to forms that loops take: at all places at once, and without steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.ir.indexing import NEWAXIS, Index, Slice, pattern_shape
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize import dce
from yota.optimize.array_writes import is_basic
from yota.optimize.rewrite import Rewriting, rewritten, use_counts
from yota.schedule.nests.stencils import SMALLEST


def in_place(tape: Tape) -> Tape:
    """``tape`` with each output ``reshape(stack(...))`` of scalars as one ``scatter`` to all places."""
    uses, definitions = use_counts(tape), tape.definitions()
    chosen = {}
    for variable in tape.outputs:
        op = definitions.get(variable)
        inner = definitions.get(op.operands[0]) if op is not None and op.access == AccessMap.RESHAPE else None
        if (
            inner is not None
            and inner.access == AccessMap.STACK
            and uses[variable] == uses[inner.result] == 1
            and not any(tape.types[operand].shape for operand in inner.operands)
        ):
            chosen[variable] = inner
    if not chosen:
        return tape

    def placed(rewriting: Rewriting, op: Op) -> int | None:
        if op.result not in chosen:
            return None
        type = tape.types[op.result]
        indices = tuple(tuple(int(each) for each in index) for index in np.ndindex(type.shape))
        operands = rewriting.operands(chosen[op.result])
        return rewriting.emit("scatter", operands, {"shape": type.shape, "indices": indices}, type)

    return dce.run(rewritten(tape, placed))


def read_where_written(tape: Tape) -> Tape:
    """``tape`` with reads of what a `setitem` has written taken from its result."""
    last = {operand: number for number, op in enumerate(tape.ops) for operand in op.operands}
    kept = {*tape.outputs, *(guard.variable for guard in tape.guards), *tape.constants}
    kept.update(entry.variable for entry in tape.inputs)
    rewriting = Rewriting(tape)
    for number, op in enumerate(tape.ops):
        made = rewriting.copy(op)
        if op.access != AccessMap.WRITE or len(op.operands) > 2 or not _is_whole(tape, op):
            continue
        value = op.operands[1]
        if value not in kept and last[value] > number:
            kept.add(value)
            index = {"index": op.keyword("index")}
            rewriting.bind(value, rewriting.emit("getitem", (made,), index, tape.types[value]))
    return rewriting.finish()


def _is_whole(tape: Tape, op: Op) -> bool:
    """Whether a large value is written as it is: not broadcast, not converted."""
    value, result, index = tape.types[op.operands[1]], tape.types[op.result], op.keyword("index")
    if int(value.size) < SMALLEST or value.dtype != result.dtype or not is_basic(index):
        return False
    return value.shape == pattern_shape(index)


def without_strides(tape: Tape) -> Tape:
    """``tape`` whose sums of pieces have slices of step 1 only."""
    return rewritten(tape, _without_strides) if any(map(_has_strides, tape.ops)) else tape


def _has_strides(op: Op) -> bool:
    if op.access != AccessMap.SCATTER or len(op.operands) != len(op.keyword("indices")):
        return False
    return any(_is_strided(entry) for index in op.keyword("indices") for entry in index)


def _without_strides(rewriting: Rewriting, op: Op) -> int | None:
    if not _has_strides(op):
        return None
    indices: tuple[Index, ...] = op.keyword("indices")
    extents = op.keyword("shape")
    found = [_side_by_side(rewriting, piece, index, extents) for piece, index in zip(op.operands, indices, strict=True)]
    static = {"shape": extents, "indices": tuple(index for _, index in found)}
    return rewriting.emit(op.primitive, [piece for piece, _ in found], static, rewriting.tape.types[op.result])


def _is_strided(entry: Any) -> bool:
    return isinstance(entry, Slice) and entry.step not in (1, -1)


def _side_by_side(rewriting: Rewriting, operand: int, index: Index, extents: Sequence[int]) -> tuple[int, Index]:
    """The piece with zeros between its elements along each strided axis, and where it then belongs."""
    piece, entries = rewriting[operand], list[Any](index)
    axes = [place for place, entry in enumerate(entries) if entry is NEWAXIS or isinstance(entry, Slice)]
    shape = tuple(1 if entries[place] is NEWAXIS else entries[place].count() for place in axes)
    for axis, place in enumerate(axes):
        entry = entries[place]
        if not _is_strided(entry) or (type(shape[axis]) is int and shape[axis] < 1):
            continue
        if rewriting.type(piece).shape != shape:
            piece = rewriting.emit("broadcast_to", (piece,), {"shape": shape})
        count, step, start = shape[axis], abs(entry.step), entry.start
        if entry.step < 0:
            whole = [Slice(0, extent) for extent in shape]
            whole[axis] = Slice(count - 1, None, -1)
            piece = _typed(rewriting, "getitem", (piece,), {"index": tuple(whole)}, piece, shape)
            start = start - (count - 1) * step
        # Where they reach the end of the axis at all sizes, no remainder is left over.
        rest = extents[place - index[:place].count(NEWAXIS)] - start
        length = rest if count == -(-rest // step) else (count - 1) * step + 1
        piece, shape = _interleaved(rewriting, piece, shape, axis, step, length)
        entries[place] = Slice(start, start + shape[axis])
    return piece, tuple(entries)


def _interleaved(
    rewriting: Rewriting, piece: int, shape: tuple[int, ...], axis: int, step: int, length: int
) -> tuple[int, tuple[int, ...]]:
    """``length`` elements of an array with ``step - 1`` zeros between elements along an axis, and its shape."""
    before, count, after = shape[:axis], shape[axis], shape[axis + 1 :]
    kind = rewriting.type(piece)
    zero = rewriting.builder.constant(kind.dtype.type(0))
    gaps = (*before, count, step - 1, *after)
    zeros = _typed(rewriting, "broadcast_to", (zero,), {"shape": gaps}, piece, gaps)
    column = (*before, count, 1, *after)
    piece_column = _typed(rewriting, "reshape", (piece,), {"shape": column}, piece, column)
    table = (*before, count, step, *after)
    joined = _typed(rewriting, "concatenate", (piece_column, zeros), {"axis": axis + 1}, piece, table)
    flat = (*before, count * step, *after)
    found = _typed(rewriting, "reshape", (joined,), {"shape": flat}, piece, flat)
    last = (*before, length, *after)
    static = {"index": tuple(Slice(0, extent) for extent in last)}
    return _typed(rewriting, "getitem", (found,), static, piece, last), last


def _typed(
    rewriting: Rewriting, name: str, operands: Sequence[int], static: dict[str, Any], like: int, shape: tuple[int, ...]
) -> int:
    """Append an op whose result has the dtype of ``like``."""
    kind = replace(rewriting.type(like), shape=shape, weak=False)
    return rewriting.emit(name, operands, static, kind)
