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
    """Number of element operations: each op weighs as much as the largest array it reads or makes."""
    return sum(_weight(tape, op) for op in tape.ops if not op.semantics.free)


def _weight(tape: Tape, op: Op) -> int:
    if op.primitive.elementwise and not tape.types[op.result].shape:
        return 1
    if op.access == AccessMap.MATMUL:
        return tape.types[op.result].size * (tape.types[op.operands[0]].shape or (1,))[-1]
    return max([tape.types[op.result].size, *(tape.types[operand].size for operand in op.operands)])
