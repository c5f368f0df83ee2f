"""Verifies the invariants of a tape; ``YOTA_VERIFY=1`` enables it after each pass, as in tests."""

from __future__ import annotations

from yota.errors import TapeError
from yota.ir.infer import infer
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Tape
from yota.settings import settings


def is_on() -> bool:
    """Whether tapes and schedules are verified."""
    return settings.verify


def verify(tape: Tape) -> Tape:
    """Return ``tape`` if it is valid.

    Each variable is defined once, before its use, and has a type. Shapes of elementwise results follow from the
    operands.

    Raises TapeError if it is not valid; the message names the op.
    """
    defined = {entry.variable for entry in tape.inputs} | set(tape.constants)
    for op in tape.ops:
        for operand in op.operands:
            if operand not in defined:
                raise TapeError(f"{op.name} -> %{op.result} uses %{operand} before it is defined")
        if op.result in defined:
            raise TapeError(f"%{op.result} is defined twice, the second time by {op.name}")
        if op.result not in tape.types:
            raise TapeError(f"%{op.result} has no type")
        defined.add(op.result)
        tuple(map(verify, op.regions))
        if op.access == AccessMap.CALL:
            continue  # of any function at all
        shape = infer(op.primitive, tuple(tape.types[v] for v in op.operands), op.static).shape
        # The number of true elements depends on values; the type has the recorded number.
        if tape.types[op.result].shape != shape and op.semantics.positions != Positions.TRUE:
            found = f"has type {tape.types[op.result]}, but its operands give shape {shape}"
            raise TapeError(f"{op.name} -> %{op.result} {found}")
    for variable in (*tape.outputs, *(guard.variable for guard in tape.guards)):
        if variable not in defined:
            raise TapeError(f"%{variable} is returned or guarded, and nothing defines it")
    for variable, value in tape.constants.items():
        shape = getattr(value, "shape", ())
        if shape != tape.types[variable].shape:
            raise TapeError(f"constant %{variable} has shape {shape}, its type says {tape.types[variable]}")
    return tape
