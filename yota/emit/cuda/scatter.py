"""Adds pieces at places of which some are the same, always in one order: places are sorted, and each has a thread.

The other way is atomic additions, which CuPy has: quicker where few places are the same, and never twice the same sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.emit.c.dialect import c_type
from yota.emit.cuda.cuda_plan import KernelPlan, Launch, Parameter
from yota.emit.cuda.threads import OPEN_BLOCKS
from yota.emit.render import render_lines
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, broadcast, layout
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting, rewritten
from yota.schedule.nests.index_patterns import gathered_extents


def is_addition(op: Op) -> bool:
    """Whether an op adds by index arrays."""
    return op.access == AccessMap.SCATTER and len(op.operands) > len(op.keyword("indices"))


def leading(tape: Tape) -> Tape:
    """``tape``, which is `normalised`, with every addition at places along the first axes of its result.

    Pieces and index arrays that are not all constants are in memory as they are read: arguments or results, none of
    them spread out.
    """
    if not any(is_addition(op) for op in tape.ops):
        return tape
    return rewritten(tape, lambda rewriting, op: _in_rows(rewriting, op) if is_addition(op) else None)


def _in_rows(rewriting: Rewriting, op: Op) -> int:
    (index,) = op.keyword("indices")
    shape, dtype = rewriting.tape.types[op.result].shape, rewriting.tape.types[op.result].dtype
    piece, *arrays = rewriting.operands(op)
    spread = broadcast(rewriting.type(each).shape for each in arrays)
    constants = rewriting.builder.constants
    if all(each in constants for each in arrays):
        arrays = [rewriting.builder.constant(np.array(np.broadcast_to(constants[each], spread))) for each in arrays]
    else:
        arrays = [_there(rewriting, each, spread) for each in arrays]
    sliced = [(axis, entry.count()) for axis, entry in enumerate(_entries(index)) if isinstance(entry, Slice)]
    axes, lengths = [axis for axis, _ in sliced], tuple([length for _, length in sliced])
    rows = tuple(gathered_extents(index, shape))
    found = _there(rewriting, _turned(rewriting, piece, index, spread, lengths, dtype), (*spread, *lengths))
    own = (GATHER,) * len(rows) + tuple(Slice(0, length, 1) for length in lengths)
    static = {"shape": rows + lengths, "indices": (own,)}
    found = rewriting.emit(op.primitive, (found, *arrays), static, TensorType(dtype, rows + lengths))
    taken = [axis for axis, entry in enumerate(_entries(index)) if entry is GATHER]
    return _spread_out(rewriting, found, index, shape, [*taken, *axes])


def _entries(index: Index) -> list[object]:
    """What stands for each axis of the result."""
    return [entry for entry in index if entry is not NEWAXIS]


def _turned(
    rewriting: Rewriting,
    piece: int,
    index: Index,
    spread: tuple[int, ...],
    lengths: tuple[int, ...],
    dtype: np.dtype[np.generic],
) -> int:
    """The piece with the axes of the index arrays first, in the dtype of the result."""
    if rewriting.type(piece).dtype != dtype:
        piece = rewriting.emit("astype", (piece,), {"dtype": dtype})
    front, _ = layout(index)
    fresh = [entry is NEWAXIS for entry in index if entry is NEWAXIS or isinstance(entry, Slice)]
    rest = iter(lengths)
    own = [1 if each else next(rest) for each in fresh]
    whole = (*own[:front], *spread, *own[front:])
    if rewriting.type(piece).shape != whole:
        piece = rewriting.emit("broadcast_to", (piece,), {"shape": whole})
    count = len(spread)
    axes = (*range(front, front + count), *range(front), *range(front + count, len(whole)))
    if axes != tuple(range(len(whole))):
        piece = rewriting.emit("transpose", (piece,), {"axes": axes})
    if any(fresh):
        piece = rewriting.emit("reshape", (piece,), {"shape": (*spread, *lengths)})
    return piece


def _spread_out(rewriting: Rewriting, found: int, index: Index, shape: tuple[int, ...], order: Sequence[int]) -> int:
    """The sums, whose axes are those of the result in ``order``, where they belong."""
    kept = sorted(order)
    axes = tuple(order.index(axis) for axis in kept)
    if axes != tuple(range(len(axes))):
        found = rewriting.emit("transpose", (found,), {"axes": axes})
    if rewriting.type(found).shape == shape:
        return found
    entries = _entries(index)
    place = tuple(
        Slice(0, extent, 1) if entry is GATHER else entry for entry, extent in zip(entries, shape, strict=True)
    )
    return rewriting.emit("scatter", (found,), {"shape": shape, "indices": (place,)})


def _there(rewriting: Rewriting, variable: int, shape: tuple[int, ...]) -> int:
    """A variable that is in memory with ``shape``."""
    if rewriting.type(variable).shape != shape:
        return rewriting.emit("broadcast_to", (variable,), {"shape": shape})
    dtype = rewriting.type(variable).dtype
    # Of a constant array whose elements are all the same, code has the number only.
    if variable not in rewriting.builder.constants:
        return variable
    return rewriting.emit("astype", (variable,), {"dtype": dtype}, TensorType(dtype, shape))


_WARP = 32
_MOST_BLOCKS = 1 << 16


def is_sorted_scatter(tape: Tape, op: Op) -> bool:
    """Whether the order of additions decides about an op's last digits."""
    return (
        is_addition(op)
        and tape.types[op.result].dtype.kind in "fc"
        and tape.types[op.result].dtype.itemsize >= 4
        and tape.types[op.result].size > 0
    )


def sorted_places(arrays: Sequence[Any], extents: Sequence[int]) -> tuple[Any, Any]:
    """The order of pieces that are added at constant places, and where those of each place start."""
    places = np.ravel_multi_index(tuple(map(np.asarray, arrays)), tuple(extents), mode="wrap").reshape(-1)
    order = np.argsort(places, kind="stable")
    return order, np.searchsorted(places[order], np.arange(math.prod(extents) + 1))


def plan_addition(
    name: str, tape: Tape, op: Op, threads: int, *, tables: tuple[str, str] = ("", ""), open: bool = False
) -> KernelPlan:
    """The kernel that adds up, for each element of the result of an op of `leading`, the pieces that belong there.

    tables: names of the file's tables of the order of pieces and of where those of each place start; empty for
        parameters.
    open: whether there may be more or fewer when it runs.
    """
    shape, dtype, count = op.keyword("shape"), tape.types[op.result].dtype, len(op.operands) - 1
    rows, width, entries = math.prod(shape[:count]), math.prod(shape[count:]), tape.types[op.operands[1]].size
    kind, size = c_type(dtype), rows * width
    many = not open and entries > _WARP * rows
    wide = open or max(size, entries * width) >= 2**31 - 2**27
    across = threads // _WARP if many else threads
    lines = render_lines(
        "cuda/addition.cu.jinja",
        kind=kind,
        size=size,
        width=width,
        many=many,
        across=across,
        warp=_WARP,
        index="int64_t" if wide else "int",
        order=tables[0] or "order",
        starts=tables[1] or "starts",
        zero=f"{kind}(0, 0)" if dtype.kind == "c" else f"{kind}(0)",
    )
    sorted_ = (
        Parameter("const int64_t *__restrict__ ", "order", "the pieces, sorted by their places"),
        Parameter("const int64_t *__restrict__ ", "starts", "where the pieces of each place start"),
    )
    parameters = (
        Parameter(f"const {kind} *__restrict__ ", "pieces", f"{entries!s} rows of {width}"),
        *(() if tables[0] else sorted_),
        Parameter(f"{kind} *__restrict__ ", "result", f"{rows!s} rows of {width}"),
    )
    blocks = OPEN_BLOCKS if open else max(1, min(_MOST_BLOCKS, -(-size // across)))
    remark = "/* Pieces at one place are added up in the order in which they come. */"
    return KernelPlan(name, (remark,), (), parameters, tuple(lines), Launch(blocks, threads))
