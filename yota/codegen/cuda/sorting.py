"""Kernels that sort pieces by the places that they are added at, with no library: the order is always the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from yota.codegen.c.types import c_type
from yota.codegen.cuda.flat import flat_kernel, over
from yota.codegen.cuda.kernel import FAULT
from yota.codegen.cuda.plan import KernelPlan, Parameter
from yota.errors import CodegenError

__all__ = ["MOST", "Places", "find_starts", "join_places"]

MOST = 2**31
"""Places, and pieces, that one key of 64 bits has room for."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where pieces are added.

    Parameters
    ----------
    names, dtypes
        Of the index arrays.
    extents
        Of the axes.
    inside
        Whether each index array is known to have places on its axis only.
    count
        The number of pieces.
    """

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[np.generic], ...]
    extents: tuple[int, ...]
    inside: tuple[bool, ...]
    count: int


def join_places(name: str, places: Places, threads: int, *, open: bool) -> KernelPlan:
    """The kernel that makes one key of a piece's place, counted through, and its number.

    Raises
    ------
    CodegenError
        If there are too many.
    """
    rows = math.prod(places.extents)
    if rows >= MOST or places.count >= MOST:
        raise CodegenError(f"pieces are added at {rows} places, more than kernels that need no library can sort")
    terms = [
        f"{array}[at]" if inside else f"within((int64_t){array}[at], {extent}, outside)"
        for array, extent, inside in zip(places.names, places.extents, places.inside, strict=True)
    ]
    row = terms[0]
    for term, extent in zip(terms[1:], places.extents[1:], strict=True):
        row = f"({row}) * {extent} + {term}" if " + " in row else f"{row} * {extent} + {term}"
    looks = not all(places.inside)
    key = "(uint64_t)row << 32 | (uint64_t)at"
    statements = [
        *(["bool outside = false;"] if looks else []),
        f"const int64_t row = {row};",
        f"keys[at] = outside ? ~(uint64_t)0 : {key};" if looks else f"keys[at] = {key};",
        *(["if (outside)", "    *fault = 1;"] if looks else []),
    ]
    lines = over(places.count, threads, statements)
    parameters = [
        *(
            Parameter(f"const {c_type(dtype)} *__restrict__ ", array, f"{places.count!s} places on an axis of {extent}")
            for array, dtype, extent in zip(places.names, places.dtypes, places.extents, strict=True)
        ),
        Parameter("uint64_t *__restrict__ ", "keys", "places and numbers of pieces"),
        *([FAULT] if looks else []),
    ]
    return flat_kernel(name, parameters, lines, places.count, threads, open=open)


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
