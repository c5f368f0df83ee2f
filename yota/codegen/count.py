"""Counting operations: what a tape costs, for banners, results and the choice between two forms of one tape."""

from __future__ import annotations

from yota.ir.count import operations
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape

__all__ = ["elements", "operations", "total"]


def total(tape: Tape) -> int:
    """Number of ops that compute something."""
    return sum(not op.semantics.free for op in tape.ops)


def elements(tape: Tape) -> int:
    """Number of element operations: each op weighs as much as the largest array it reads or makes.

    Named sizes count with their values at the first sample, for which of two sums is larger may depend on them.
    """
    types, total = tape.types, 0
    for op in tape.ops:
        primitive = op.primitive
        if not primitive.semantics.free:
            total += 1 if primitive.elementwise and not types[op.result].shape else _weight(tape, op)
    return total


def _weight(tape: Tape, op: Op) -> int:
    if op.access == AccessMap.MATMUL:
        return int(tape.types[op.result].size) * int((tape.types[op.operands[0]].shape or (1,))[-1])
    return max(int(tape.types[variable].size) for variable in (op.result, *op.operands))
