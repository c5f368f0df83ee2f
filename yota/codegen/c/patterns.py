"""Gathers and scatters by index arrays that are constants or arguments, brought to a form that loops can take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.codegen.c.index import Linear, Point, spread
from yota.errors import CodegenError
from yota.ir.access import pieces
from yota.ir.extents import Extent
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice, layout, pieces_of
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.passes.rewrite import Rewriting, rewritten

__all__ = [
    "gathered_extents",
    "given_places",
    "index_arrays",
    "index_operands",
    "is_fixed",
    "is_uniform",
    "normalised",
    "place",
]


def is_fixed(tape: Tape, op: Op, given: frozenset[int] = frozenset()) -> bool:
    """Whether an op gathers, or adds one piece, by index arrays that are constants, or among those ``given``."""
    if op.access == AccessMap.SCATTER:
        if len(op.keyword("indices")) != 1 or not tape.types[op.result].differentiable:
            return False
    elif op.access != AccessMap.READ:
        return False
    known = all(each in tape.constants or each in given for each in op.operands[1:])
    whole = all(tape.types[each].dtype.kind in "iu" for each in op.operands[1:])
    return len(op.operands) > 1 and known and whole


def is_uniform(value: Any) -> bool:
    """Whether all elements of a constant are the same, to the bit."""
    array = np.asarray(value)
    if not array.size:
        return False
    flat = np.ascontiguousarray(array).reshape(-1)
    return bool(np.array_equal(flat[1:].view(np.uint8), flat[:-1].view(np.uint8)))


def given_places(tape: Tape) -> frozenset[int]:
    """Arguments that serve as index arrays of axes of one extent, and as nothing else but for decisions on them."""
    extents: dict[int, set[int]] = {}
    for op in tape.ops:
        places = index_operands(tape, op) if op.access != AccessMap.WRITE else {}
        for at, variable in enumerate(op.operands):
            if at in places:
                extents.setdefault(variable, set()).add(places[at])
            elif op.semantics.fold not in ("minimum", "maximum"):
                extents.setdefault(variable, set()).update((-1, -2))
    names = ("int32", "int64", "uint8")
    return frozenset(
        entry.variable
        for entry in tape.inputs
        if len(extents.get(entry.variable, ())) == 1
        and tape.types[entry.variable].dtype.name in names
        and tape.types[entry.variable].size > 0
        and tape.types[entry.variable].shape
    )


def index_arrays(tape: Tape, op: Op) -> list[tuple[int, int]]:
    """The index arrays among an op's operands, with the extents; see `index_operands`."""
    return [(op.operands[at], extent) for at, extent in index_operands(tape, op).items()]


def index_operands(tape: Tape, op: Op) -> dict[int, int]:
    """Which of an op's operands are index arrays, each with the extent of the axis that it has places on."""
    found: dict[int, int] = {}
    shape = tape.types[op.operands[0] if op.access == AccessMap.READ else op.result].shape
    for _, arrays, index in pieces(op):
        found.update(zip(arrays, gathered_extents(index, shape), strict=True))
    return found


def gathered_extents(index: Index, shape: Sequence[int]) -> list[int]:
    """Extents of the axes that index arrays stand for."""
    axes = [entry for entry in index if entry is not NEWAXIS]
    return [extent for entry, extent in zip(axes, shape, strict=True) if entry is GATHER]


def normalised(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with one piece to a scatter by arrays, and no index that counts from the end; scatters ``kept`` stay."""
    if not any(GATHER in index for op in tape.ops for _, _, index in pieces(op)):
        return tape
    known: dict[bytes, int] = {}

    def replacement(rewriting: Rewriting, op: Op) -> int | None:
        plain = op.access == AccessMap.WRITE or not any(GATHER in index for _, _, index in pieces(op))
        if plain or (op.access == AccessMap.SCATTER and op.result in kept):
            return None
        if op.access == AccessMap.SCATTER:
            return _split(rewriting, op, known)
        shape = tape.types[op.operands[0]].shape
        arrays = _wrapped(rewriting, op.operands[1:], op.keyword("index"), shape, known)
        operands = (rewriting[op.operands[0]], *arrays)
        return rewriting.emit(op.primitive, operands, op.static, tape.types[op.result])

    return rewritten(tape, replacement)


def _split(rewriting: Rewriting, op: Op, known: dict[bytes, int]) -> int:
    """A scatter of several pieces as a sum: those without arrays together, each of the others by itself."""
    type = rewriting.tape.types[op.result]
    plain: list[tuple[int, Index]] = []
    found: list[int] = []
    for piece, arrays, index in pieces_of(op.operands, op.keyword("indices")):
        if not arrays:
            plain.append((rewriting[piece], index))
            continue
        operands = (rewriting[piece], *_wrapped(rewriting, arrays, index, type.shape, known))
        found.append(rewriting.emit(op.primitive, operands, {"shape": type.shape, "indices": (index,)}))
    if plain:
        static = {"shape": type.shape, "indices": tuple(index for _, index in plain)}
        found.append(rewriting.emit(op.primitive, [piece for piece, _ in plain], static))
    total = found[0]
    for each in found[1:]:
        total = rewriting.emit("add", (total, each))
    if rewriting.type(total).dtype != type.dtype:
        total = rewriting.emit("astype", (total,), {"dtype": type.dtype})
    return total


def _wrapped(
    rewriting: Rewriting, arrays: Sequence[int], index: Index, shape: Sequence[int], known: dict[bytes, int]
) -> list[int]:
    """The index arrays without negative numbers, and narrow: half the memory to read."""
    found = []
    for variable, extent in zip(arrays, gathered_extents(index, shape), strict=True):
        value = rewriting.tape.constants.get(variable)
        if value is None or np.asarray(value).dtype.kind not in "iu":
            found.append(rewriting[variable])
            continue
        whole = np.asarray(value).astype(np.int64)
        if isinstance(extent, Extent) and whole.size and whole.min() < 0:
            raise CodegenError("positions that count from the end of an axis of any length cannot be said; pass them")
        whole = np.where(whole < 0, whole + extent, whole)
        narrow = np.ascontiguousarray(whole.astype(np.int32 if np.prod(shape) < 2**31 else np.int64))
        narrow.flags.writeable = False
        key = repr((narrow.shape, narrow.dtype)).encode() + narrow.tobytes()
        if key not in known:
            known[key] = rewriting.builder.constant(narrow if narrow.ndim else narrow[()])
        found.append(known[key])
        if variable in rewriting.tape.names:
            rewriting.builder.names.setdefault(found[-1], rewriting.tape.names[variable])
    return found


def place(
    point: Point, index: Index, arrays: Sequence[tuple[int, ...]], number: Sequence[Linear] | None = None
) -> tuple[Point, list[Point]]:
    """For a point of ``x[index]``: the point of ``x``, with ``number`` at the gathered axes, and that of each array."""
    front, _ = layout(index)
    count = len(np.broadcast_shapes(*arrays))
    middle = point[front : front + count]
    rest = iter(point[:front] + point[front + count :])
    looked = [spread(middle, shape) for shape in arrays]
    numbers = iter(number if number is not None else [Linear(0)] * len(arrays))
    found: list[Linear] = []
    for entry in index:
        if entry is NEWAXIS:
            next(rest)
        elif isinstance(entry, Slice):
            found.append(next(rest).scaled(entry.step).shifted(entry.start))
        else:
            found.append(Linear(entry) if isinstance(entry, int) else next(numbers))
    return tuple(found), looked
