"""Kernels that sort pieces by the places that they are added at, with no library: the order is always the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yota.codegen.c.types import c_type
from yota.codegen.cuda.kernel import FAULT
from yota.codegen.cuda.plan import KernelPlan, Launch, Parameter
from yota.codegen.cuda.shape import OPEN_BLOCKS
from yota.errors import CodegenError

__all__ = ["MOST", "Places", "find_starts", "join_places"]

MOST = 2**31
"""Places, and pieces, that one key of 64 bits has room for."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where pieces are added: names and dtypes of the index arrays, extents of the axes, and the number of pieces."""

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[np.generic], ...]
    extents: tuple[int, ...]
    count: int


def join_places(name: str, places: Places, threads: int, *, open: bool) -> KernelPlan:
    """The kernel that makes one key of a piece's place, counted through, and its number.

    Raises
    ------
    CodegenError
        If there are too many.
    """
    rows = int(np.prod(places.extents, dtype=object))
    if max(rows, places.count) >= MOST:
        raise CodegenError(f"pieces are added at {rows} places, more than kernels that need no library can sort")
    terms = [
        f"within((int64_t){array}[at], {extent}, outside)"
        for array, extent in zip(places.names, places.extents, strict=True)
    ]
    row = terms[0]
    for term, extent in zip(terms[1:], places.extents[1:], strict=True):
        row = f"({row}) * {extent} + {term}" if " + " in row else f"{row} * {extent} + {term}"
    lines = _over(
        places.count,
        threads,
        (
            "bool outside = false;",
            f"const int64_t row = {row};",
            "keys[at] = outside ? ~(uint64_t)0 : (uint64_t)row << 32 | (uint64_t)at;",
            "if (outside)",
            "    *fault = 1;",
        ),
    )
    parameters = [
        *(
            Parameter(f"const {c_type(dtype)} *__restrict__ ", array, f"{places.count} places on an axis of {extent}")
            for array, dtype, extent in zip(places.names, places.dtypes, places.extents, strict=True)
        ),
        Parameter("uint64_t *__restrict__ ", "keys", "places and numbers of pieces"),
        FAULT,
    ]
    return _plan(name, parameters, lines, places.count, threads, open=open)


def find_starts(name: str, rows: int, count: int, threads: int, *, open: bool) -> KernelPlan:
    """The kernel that takes sorted keys apart: the numbers of pieces in order, and where those of each place start."""
    lines = _over(count, threads, ("order[at] = (int64_t)(keys[at] & 0xffffffff);",))
    lines += _over(f"{rows} + 1", threads, (f"starts[at] = first_of(keys, {count}, (uint64_t)at << 32);",))
    parameters = [
        Parameter("const uint64_t *__restrict__ ", "keys", f"{count} of them, sorted"),
        Parameter("int64_t *__restrict__ ", "order", "the pieces, sorted by their places"),
        Parameter("int64_t *__restrict__ ", "starts", f"where the pieces of each of {rows} places start"),
    ]
    return _plan(name, parameters, lines, max(rows, count), threads, open=open)


def _over(end: int | str, threads: int, lines: Sequence[str]) -> list[str]:
    start = f"(int64_t)blockIdx.x * {threads} + (int)threadIdx.x"
    head = f"for (int64_t at = {start}; at < {end}; at += (int64_t)gridDim.x * {threads}) {{"
    return [head, *(f"    {line}" for line in lines), "}"]


def _plan(
    name: str, parameters: Sequence[Parameter], lines: Sequence[str], points: int, threads: int, *, open: bool
) -> KernelPlan:
    blocks = OPEN_BLOCKS if open else max(1, min(1 << 16, -(-points // threads)))
    return KernelPlan(name, (), (), tuple(parameters), tuple(lines), Launch(blocks, threads))
