"""Index arrays that are known only at run time: which ones kernels read, and who tells of places outside of an axis."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from yota.codegen.c.lines import block
from yota.codegen.c.patterns import given_places, index_arrays
from yota.codegen.c.types import c_type, is_known
from yota.codegen.cuda.kernel import FAULT
from yota.codegen.cuda.plan import KernelPlan, Launch, Parameter
from yota.ir.semantics import Positions
from yota.ir.tape import Op, Tape

__all__ = ["Check", "checks", "readable"]

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
    known, definitions = set(told), tape.definitions()
    found: list[Check] = []
    for op in ops:
        for variable, extent in index_arrays(tape, op):
            type = tape.types[variable]
            there = type.shape or variable in pointers
            if (variable, extent) in known or variable in tape.constants or not there or not type.size:
                continue
            if type.dtype.kind not in "iu" or _is_inside(tape, definitions.get(variable), extent):
                continue
            known.add((variable, extent))
            dtype = type.dtype if is_known(type.dtype) else np.dtype(np.int64)
            kernel = _check(f"{name}{len(found)}", dtype, type.size, extent, threads)
            found.append(Check(op.result, variable, dtype, kernel))
    return tuple(found)


def _is_inside(tape: Tape, made: Op | None, extent: int) -> bool:
    """Whether an index array was found as positions in something that is no longer than the axis."""
    found = Positions.NONE if made is None else made.semantics.positions
    if made is None or found in (Positions.NONE, Positions.BETWEEN):
        return False
    type = tape.types[made.operands[0]]
    return (type.size if found == Positions.TRUE else max(type.shape, default=1)) <= extent


def _check(name: str, dtype: np.dtype[np.generic], size: int, extent: int, threads: int) -> KernelPlan:
    index = "int" if size < _NARROW // 2 else "int64_t"
    low = f"places[at] < -{extent} || " if dtype.kind == "i" else ""
    body = block(f"if ({low}places[at] >= {extent})", ["*fault = 1;"])
    start, step = f"({index})blockIdx.x * {threads} + (int)threadIdx.x", f"({index})gridDim.x * {threads}"
    lines = block(f"for ({index} at = {start}; at < {size}; at += {step})", body)
    places = Parameter(f"const {c_type(dtype)} *__restrict__ ", "places", f"of {size} elements on an axis of {extent}")
    blocks = max(1, min(_MOST_BLOCKS, -(-size // threads)))
    return KernelPlan(name, (), (), (places, FAULT), tuple(lines), Launch(blocks, threads))
