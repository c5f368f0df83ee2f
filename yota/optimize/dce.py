"""Pass `dce`: ops that no output and no guard depends on are dropped, and constants that no op reads."""

from __future__ import annotations

from yota.ir.tape import Tape
from yota.optimize.rewrite import cone, with_ops


def run(tape: Tape) -> Tape:
    """Keep what outputs and guards need; the inputs all stay, for they are the function's signature."""
    needed = cone(tape, [*tape.outputs, *(guard.variable for guard in tape.guards)])
    ops = tuple([op for op in tape.ops if op.result in needed])
    if len(ops) == len(tape.ops) and needed.issuperset(tape.constants):
        return tape
    needed.update(entry.variable for entry in tape.inputs)
    return with_ops(
        tape,
        ops,
        constants={variable: value for variable, value in tape.constants.items() if variable in needed},
        types={variable: type for variable, type in tape.types.items() if variable in needed},
        names={variable: name for variable, name in tape.names.items() if variable in needed},
    )
