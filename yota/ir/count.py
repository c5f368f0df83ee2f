"""Operation counts of a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yota.ir.tape import Tape

__all__ = ["listed", "operations"]


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
