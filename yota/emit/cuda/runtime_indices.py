"""Index arrays that are known only at run time: kernels that tell of places outside of an axis, and that sort them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from yota.emit.c.dialect import c_type, is_known
from yota.emit.c.lines import block
from yota.emit.cuda.cuda_plan import FAULT, KernelPlan, Launch, Parameter
from yota.emit.cuda.threads import OPEN_BLOCKS
from yota.emit.render import render_lines
from yota.errors import CodegenError
from yota.ir.tape import Op, Tape
from yota.schedule.nests.index_patterns import given_places, index_arrays, is_inside


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
_MOST_BLOCKS = 1024


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
    blocks = max(1, min(_MOST_BLOCKS, -(-size // threads)))
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
    """The kernel that makes one key of a piece's place, counted through, and its number.

    Raises CodegenError if there are too many.
    """
    rows = math.prod(each.extent for each in places)
    if rows >= MOST or count >= MOST:
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
