"""Adjoints of extrema: masks are counted rather than summed, and what ties take is written at their few places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape

__all__ = ["as_counts"]

_LEAST = 2048
"""Elements from which on a number is written at few places, rather than chosen at each."""


def as_counts(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with sums of masks as counts, and numbers at the places of extrema as scatters; ``kept`` stays."""
    known = tape.definitions()
    found = [op if op.result in kept else _count(tape, op, known) or _ties(tape, op, known) or op for op in tape.ops]
    if all(one is other for one, other in zip(found, tape.ops, strict=True)):
        return tape
    read = {*tape.outputs, *(guard.variable for guard in tape.guards), *(v for op in found for v in op.operands)}
    builder = tape.builder()
    # Casts that nobody needs any more are gone.
    builder.ops = [op for op in found if op.result in read]
    return builder.finish(tape.outputs)


def _count(tape: Tape, op: Op, known: dict[int, Op]) -> Op | None:
    """The sum of a whole mask that was cast to numbers is that of the mask itself, in the type of the numbers."""
    cast = (
        known.get(op.operands[0])
        if op.access == AccessMap.REDUCTION and op.semantics.fold == "add" and not tape.types[op.result].shape
        else None
    )
    if cast is None or not cast.semantics.casts or cast.keyword("dtype").kind != "f":
        return None
    mask = cast.operands[0]
    return replace(op, operands=cast.operands) if mask in known and tape.types[mask].dtype.kind == "b" else None


def _ties(tape: Tape, op: Op, known: dict[int, Op]) -> Op | None:
    """A number where an array has its extremum, and zero elsewhere."""
    if not op.semantics.chooses or tape.types[op.result].size < _LEAST:
        return None
    mask, number, zero = op.operands
    value, type = tape.constants.get(zero), tape.types[op.result]
    if value is None or np.ndim(value) or value != 0 or np.signbit(value):
        return None
    if tape.types[number].dtype != type.dtype or tape.types[number].shape or tape.types[mask].shape != type.shape:
        return None
    if not _of_extremum(tape, mask, known):
        return None
    static = (("indices", ((GATHER,),)), ("shape", type.shape))
    return Op(op.result, primitive("scatter"), (number, mask), static, op.location)


def _of_extremum(tape: Tape, mask: int, known: dict[int, Op]) -> bool:
    """Whether ``mask`` tells where an array equals its own extremum over all axes: few places, as a rule."""
    equal = known.get(mask)
    if equal is None or equal.name != "equal":
        return False
    array, extremum = equal.operands
    found = known.get(extremum)
    if found is None or found.semantics.fold not in ("maximum", "minimum") or found.operands != (array,):
        return False
    return len(found.keyword("axis")) == tape.types[array].ndim
