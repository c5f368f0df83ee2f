"""Pass `dce`: ops that neither an output nor a guard depends on are dropped, and constants that nobody reads."""

from __future__ import annotations

from yota.ir.tape import Tape
from yota.passes.rewrite import Rewriting, cone

__all__ = ["run"]


def run(tape: Tape) -> Tape:
    """Keep what outputs and guards need; the inputs all stay, for they are the function's signature."""
    needed = cone(tape, [*tape.outputs, *(guard.variable for guard in tape.guards)])
    if all(op.result in needed for op in tape.ops) and needed.issuperset(tape.constants):
        return tape
    rewriting = Rewriting(tape)
    for op in tape.ops:
        if op.result in needed:
            rewriting.copy(op)
    return rewriting.finish()
