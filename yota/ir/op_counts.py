"""Operation counts of a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from yota.ir.semantics import AccessMap

if TYPE_CHECKING:
    from yota.ir.tape import Op, Tape


def operations(tape: Tape) -> dict[str, int]:
    """Count of each primitive that computes, most frequent first.

    Reads, writes and rearrangements of elements do not count; ops in a loop count once.
    """
    counts: dict[str, int] = {}
    for op in tape.ops:
        if not op.semantics.free:
            counts[op.name] = counts.get(op.name, 0) + 1
        for inner in op.regions:
            for name, count in operations(inner).items():
                counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def listed(counts: dict[str, int]) -> str:
    """Counts as text, e.g. ``2 multiply, 1 sum``."""
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


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
