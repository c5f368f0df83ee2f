"""Sums of an array and of few pieces at indices: the pieces are added into the array itself."""

from __future__ import annotations

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape

__all__ = ["as_deposits"]

_SPARSE = 16
"""A scatter of slices is sparse if at most one element in so many is written."""


def as_deposits(tape: Tape, kept: frozenset[int] = frozenset()) -> Tape:
    """``tape`` with ``a + scatter(...)`` as one op on ``a``; what computes ``kept`` stays."""
    scatters = _single_scatters(tape, kept)
    if not scatters:
        return tape
    builder = tape.builder()
    builder.ops = []
    gone: set[int] = set()
    for op in tape.ops:
        found = _deposit(tape, op, scatters) if op.result not in kept else None
        builder.ops.append(op if found is None else found)
        if found is not None:
            gone.update(variable for variable in op.operands if variable in scatters and variable != found.operands[0])
    builder.ops = [op for op in builder.ops if op.result not in gone]
    return builder.finish(tape.outputs)


def _single_scatters(tape: Tape, kept: frozenset[int]) -> dict[int, Op]:
    """Sparse scatters that one op reads, and nothing else."""
    reads: dict[int, int] = {}
    for variable in (*tape.outputs, *(guard.variable for guard in tape.guards)):
        reads[variable] = 2
    for op in tape.ops:
        for operand in op.operands:
            reads[operand] = reads.get(operand, 0) + 1
    return {
        op.result: op
        for op in tape.ops
        if op.access == AccessMap.SCATTER
        and reads.get(op.result) == 1
        and op.result not in kept
        and _is_sparse(tape, op)
    }


def _is_sparse(tape: Tape, op: Op) -> bool:
    if any(GATHER in index for index in op.keyword("indices")):
        return True
    written = sum(tape.types[piece].size for piece in op.operands)
    return _SPARSE * written <= tape.types[op.result].size


def _deposit(tape: Tape, op: Op, scatters: dict[int, Op]) -> Op | None:
    if op.name != "add":
        return None
    for array, pieces in (op.operands, op.operands[::-1]):
        type = tape.types[op.result]
        if pieces in scatters and array != pieces and tape.types[array] == tape.types[pieces] == type:
            scatter = scatters[pieces]
            static = (("indices", scatter.keyword("indices")),)
            return Op(op.result, primitive("deposit"), (array, *scatter.operands), static, op.location)
    return None
