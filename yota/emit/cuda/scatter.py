"""Index arrays on the device: kernels that tell of places outside of an axis, sort them, and add pieces there.

The other way is atomic additions, which CuPy has: quicker where few places are the same, and never twice the same sum.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.c.dialect import c_type, is_known
from yota.emit.c.lines import block
from yota.emit.cuda.cuda_plan import FAULT, KernelPlan, Launch, Parameter
from yota.emit.cuda.threads import OPEN_BLOCKS
from yota.emit.render import render_lines
from yota.errors import CodegenError
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, broadcast, layout
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting, rewritten
from yota.schedule.nests.index_patterns import gathered_extents, given_places, index_arrays, is_inside


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
    rewriting: Rewriting, piece: int, index: Index, spread: Sequence[int], lengths: Sequence[int], dtype: np.dtype[Any]
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
    """The kernel that adds up, for each element of the result of an op of `leading`, the pieces that belong there."""
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


def over(end: int | str, threads: int, lines: Sequence[str], index: str = "int64_t") -> list[str]:
    """The loop over elements ``at`` up to ``end``, with ``lines`` in it."""
    start = f"({index})blockIdx.x * {threads} + (int)threadIdx.x"
    return block(f"for ({index} at = {start}; at < {end!s}; at += ({index})gridDim.x * {threads})", lines)


def flat_kernel(
    name: str, parameters: Sequence[Parameter], lines: Sequence[str], points: int, threads: int, *, open: bool
) -> KernelPlan:
    """The kernel ``name``; if it is ``open``, loops may have more or fewer than ``points``."""
    blocks = OPEN_BLOCKS if open else max(1, min(1 << 16, -(-points // threads)))
    return KernelPlan(name, (), (), tuple(parameters), tuple(lines), Launch(blocks, threads))


_NARROW = 2**31
_MOST_LOOKING = 1024
"""Blocks of a kernel that looks at an index array."""


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel that looks at one index array ahead of an op."""

    op: int
    variable: int
    dtype: np.dtype[np.generic]
    kernel: KernelPlan


def readable(tape: Tape) -> frozenset[int]:
    """Arguments that kernels may read places from: none whose products with strides need a wider type."""
    found = set(given_places(tape))
    for op in tape.ops:
        large = max((int(tape.types[v].size) for v in (*op.operands, op.result)), default=0) >= _NARROW
        found -= {v for v, _ in index_arrays(tape, op) if large and tape.types[v].dtype.itemsize < 8}
    return frozenset(found)


def checks(
    tape: Tape, ops: Iterable[Op], told: Collection[tuple[int, int]], pointers: frozenset[int], name: str, threads: int
) -> tuple[Check, ...]:
    """Kernels for the index arrays of ``ops`` that are not looked at by another; ``name`` and a number call them."""
    known, definition = set(told), tape.definitions().get
    found: list[Check] = []
    for op in ops:
        for variable, extent in index_arrays(tape, op):
            type = tape.types[variable]
            there = type.shape or variable in pointers
            if (variable, extent) in known or variable in tape.constants or not there or not type.size:
                continue
            if type.dtype.kind not in "iu" or is_inside(definition, tape.types, variable, extent):
                continue
            known.add((variable, extent))
            dtype = type.dtype if is_known(type.dtype) else np.dtype(np.int64)
            kernel = _check(f"{name}{len(found)}", dtype, type.size, extent, threads)
            found.append(Check(op.result, variable, dtype, kernel))
    return tuple(found)


def _check(name: str, dtype: np.dtype[np.generic], size: int, extent: int, threads: int) -> KernelPlan:
    index = "int" if size < _NARROW // 2 else "int64_t"
    low = f"places[at] < -{extent} || " if dtype.kind == "i" else ""
    body = block(f"if ({low}places[at] >= {extent})", ["*fault = 1;"])
    lines = over(size, threads, body, index)
    places = Parameter(f"const {c_type(dtype)} *__restrict__ ", "places", f"of {size} elements on an axis of {extent}")
    blocks = max(1, min(_MOST_LOOKING, -(-size // threads)))
    return KernelPlan(name, (), (), (places, FAULT), tuple(lines), Launch(blocks, threads))


MOST = 2**31
"""Places, and pieces, that one key of 64 bits has room for."""


@dataclass(frozen=True, slots=True)
class Place:
    """An index array: where along an axis pieces are added, and whether that is known to be on it."""

    name: str
    dtype: np.dtype[np.generic]
    extent: int
    inside: bool


def join_places(name: str, places: Sequence[Place], count: int, threads: int, *, open: bool) -> KernelPlan:
    """The kernel that makes one key of a piece's place, counted through, and its number."""
    rows = math.prod(each.extent for each in places)
    if max(int(rows), int(count)) >= MOST:
        raise CodegenError(f"pieces are added at {rows} places, more than kernels that need no library can sort")
    row = ""
    for each in places:
        term = f"{each.name}[at]" if each.inside else f"within((int64_t){each.name}[at], {each.extent}, outside)"
        before = f"({row})" if " + " in row else row
        row = f"{before} * {each.extent} + {term}" if row else term
    looks = not all(each.inside for each in places)
    statements = render_lines("cuda/keys.cu.jinja", row=row, looks=looks)
    parameters = [
        *(
            Parameter(
                f"const {c_type(each.dtype)} *__restrict__ ", each.name, f"{count!s} places on an axis of {each.extent}"
            )
            for each in places
        ),
        Parameter("uint64_t *__restrict__ ", "keys", "places and numbers of pieces"),
        *([FAULT] if looks else []),
    ]
    return flat_kernel(name, parameters, over(count, threads, statements), count, threads, open=open)


def find_starts(name: str, rows: int, count: int, threads: int, *, open: bool) -> KernelPlan:
    """The kernel that takes sorted keys apart: the numbers of pieces in order, and where those of each place start."""
    lines = over(count, threads, ("order[at] = (int64_t)(keys[at] & 0xffffffff);",))
    lines += over(f"{rows!s} + 1", threads, (f"starts[at] = first_of(keys, {count!s}, (uint64_t)at << 32);",))
    parameters = [
        Parameter("const uint64_t *__restrict__ ", "keys", f"{count!s} of them, sorted"),
        Parameter("int64_t *__restrict__ ", "order", "the pieces, sorted by their places"),
        Parameter("int64_t *__restrict__ ", "starts", f"where the pieces of each of {rows!s} places start"),
    ]
    return flat_kernel(name, parameters, lines, 0 if open else max(rows, count), threads, open=open)
