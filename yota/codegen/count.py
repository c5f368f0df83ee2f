"""Counting operations: what a tape costs, for banners, results and the choice between two forms of one tape."""

from __future__ import annotations

from yota.ir.tape import Op, Tape

__all__ = ["elements", "operations", "total"]

_FREE = frozenset(
    "getitem setitem scatter reshape transpose broadcast_to concatenate stack item astype real imag copy"
    " positive".split()
)


def operations(tape: Tape) -> dict[str, int]:
    """How often each primitive that computes something occurs, most frequent first.

    Reads, writes and rearrangements of elements do not count.
    """
    counts: dict[str, int] = {}
    for op in tape.ops:
        if op.name not in _FREE:
            counts[op.name] = counts.get(op.name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def total(tape: Tape) -> int:
    """Number of ops that compute something."""
    return sum(op.name not in _FREE for op in tape.ops)


def elements(tape: Tape) -> int:
    """Number of element operations: each op weighs as much as the largest array it reads or makes."""
    return sum(_weight(tape, op) for op in tape.ops if op.name not in _FREE)


def _weight(tape: Tape, op: Op) -> int:
    if op.name == "matmul":
        return tape.types[op.result].size * (tape.types[op.operands[0]].shape or (1,))[-1]
    return max([tape.types[op.result].size, *(tape.types[operand].size for operand in op.operands)])
