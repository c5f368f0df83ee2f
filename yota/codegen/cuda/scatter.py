"""Adds pieces at places of which some are the same, always in the same order: places are sorted, and each has a thread.

The other way is atomic additions, which CuPy has: quicker where few places are the same, and never twice the same sum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.codegen.c.lines import block
from yota.codegen.c.types import c_type
from yota.codegen.cuda.leading import is_addition
from yota.codegen.cuda.plan import KernelPlan, Launch, Parameter
from yota.codegen.cuda.shape import OPEN_BLOCKS
from yota.codegen.literals import is_whole
from yota.ir.access import pieces
from yota.ir.indexing import GATHER, Index, to_numpy
from yota.ir.tape import Op, Tape

__all__ = ["Addition", "additions", "is_sorted_scatter", "plan_addition", "positions", "samples"]

_WARP = 32
_MOST_BLOCKS = 1 << 16


@dataclass(frozen=True, slots=True)
class Addition:
    """One piece of a scatter.

    Parameters
    ----------
    piece, arrays
        Numbers of operands: what is added, and the arrays of places.
    index
        Where, with `GATHER` for each array.
    rows, width
        How many places there are, and how many neighbouring elements each has.
    entries
        How many times something is added.
    leading
        Whether the arrays index the first axes and the rest is whole.
    kernel
        Adds the piece; None where no place comes twice.
    fresh
        Whether it writes every element, so that nothing need be there before.
    """

    piece: int
    arrays: tuple[int, ...]
    index: Index
    rows: int
    width: int
    entries: int
    leading: bool
    kernel: KernelPlan | None
    fresh: bool


def is_sorted_scatter(tape: Tape, op: Op) -> bool:
    """Whether the order of additions decides about an op's last digits."""
    return (
        is_addition(op)
        and tape.types[op.result].dtype.kind in "fc"
        and tape.types[op.result].dtype.itemsize >= 4
        and tape.types[op.result].size > 0
    )


def additions(tape: Tape, op: Op, name: str, threads: int) -> tuple[Addition, ...]:
    """The pieces of a scatter in order; kernels are called ``name`` and a number."""
    shape = tape.types[op.result].shape
    found: list[Addition] = []
    for piece, numbers, index in pieces(op):
        arrays = tuple(numbers)
        if not arrays:
            found.append(Addition(piece, (), index, 0, 0, 0, False, None, False))
            continue
        spread = np.broadcast_shapes(*(tape.types[op.operands[number]].shape for number in arrays))
        count = len(arrays)
        leading = _is_leading(index, shape, count) and tape.types[op.operands[piece]].shape == spread + shape[count:]
        rows = math.prod(shape[:count]) if leading else math.prod(shape)
        width = math.prod(shape[count:]) if leading else 1
        entries = math.prod(spread) if leading else math.prod(positions(index, shape, samples(tape, op, arrays)).shape)
        fresh = not found
        dtype = tape.types[op.result].dtype
        kernel = plan_addition(f"{name}{len(found)}", dtype, rows, width, entries, threads, fresh=fresh)
        found.append(Addition(piece, arrays, index, rows, width, entries, leading, kernel, fresh))
    return tuple(found)


def _is_leading(index: Index, shape: tuple[int, ...], count: int) -> bool:
    rest = zip(index[count:], shape[count:], strict=False)
    return (
        len(index) == len(shape)
        and all(entry is GATHER for entry in index[:count])
        and all(entry is not GATHER and is_whole(entry, extent) for entry, extent in rest)
    )


def samples(tape: Tape, op: Op, arrays: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    """Index arrays of the shapes of operands with these numbers."""
    return [np.zeros(tape.types[op.operands[number]].shape, int) for number in arrays]


def positions(index: Index, shape: tuple[int, ...], arrays: list[Any]) -> Any:
    """The flat places of what ``x[index]`` takes of an array of ``shape``."""
    found: Any = np.arange(math.prod(shape)).reshape(shape)[to_numpy(index, arrays)]
    return found


def plan_addition(
    name: str,
    dtype: np.dtype[Any],
    rows: int,
    width: int,
    entries: int,
    threads: int,
    *,
    fresh: bool,
    tables: tuple[str, str] = ("", ""),
    open: bool = False,
) -> KernelPlan:
    """The kernel that adds up, for each element of the result, the pieces that belong there.

    Parameters
    ----------
    fresh
        Whether the sums are the result, rather than to be added to it.
    tables
        Names of the file's tables of the order of pieces and of where those of each place start; empty for parameters.
    open
        Whether there may be more or fewer when it runs.
    """
    order, starts = tables[0] or "order", tables[1] or "starts"
    kind, size = c_type(dtype), rows * width
    total = f"Sum<{kind}>"
    many = not open and entries > _WARP * rows
    wide = open or max(size, entries * width) >= 2**31 - 2**27
    index = "int64_t" if wide else "int"
    element = f"pieces[({index}){order}[entry] * {width} + column]" if width > 1 else f"pieces[{order}[entry]]"
    row = [f"const {index} row = at / {width}, column = at % {width};"] if width > 1 else []
    place = "row" if width > 1 else "at"
    lane, step = (" + lane", _WARP) if many else ("", 1)
    held = "" if fresh else "result[at] + "
    zero = f"{kind}(0, 0)" if dtype.kind == "c" else f"{kind}(0)"
    store = f"result[at] = {held or zero + ' + '}total.result();"
    inner = [
        *row,
        f"{total} total = {total}::none();",
        *block(
            f"for (int64_t entry = {starts}[{place}]{lane}; entry < {starts}[{place} + 1]; entry += {step})",
            [f"total.add({element});"],
        ),
        *(["total = joined_in_warp(total);", *block("if (lane == 0)", [store])] if many else [store]),
    ]
    across = threads // _WARP if many else threads
    own = f"(int)threadIdx.x / {_WARP}" if many else "(int)threadIdx.x"
    start = f"({index})blockIdx.x * {across} + {own}"
    lines = [
        *([f"const int lane = threadIdx.x % {_WARP};"] if many else []),
        *block(f"for ({index} at = {start}; at < {size!s}; at += ({index})gridDim.x * {across})", inner),
    ]
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
