"""Arrays that were written into another one are read from there: then nobody needs them in memory twice."""

from __future__ import annotations

from yota.codegen.c.stencils import SMALLEST
from yota.ir.indexing import pattern_shape
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.passes.rewrite import Rewriting
from yota.passes.writes import is_basic

__all__ = ["read_where_written"]


def read_where_written(tape: Tape) -> Tape:
    """``tape`` with reads of what a `setitem` has written taken from its result."""
    last = {operand: number for number, op in enumerate(tape.ops) for operand in op.operands}
    kept = {*tape.outputs, *(guard.variable for guard in tape.guards), *tape.constants}
    kept.update(entry.variable for entry in tape.inputs)
    rewriting = Rewriting(tape)
    for number, op in enumerate(tape.ops):
        rewriting.builder.location = op.location
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
    if value.size < SMALLEST or value.dtype != result.dtype or not is_basic(index):
        return False
    return value.shape == pattern_shape(index, (), result.shape)
