"""Verifies the invariants of a tape; ``YOTA_VERIFY=1`` enables it after each pass, as in tests."""

from __future__ import annotations

from yota.errors import TapeError
from yota.ir.infer import infer
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
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
    types = tape.types
    defined = {entry.variable for entry in tape.inputs} | set(tape.constants)
    for op in tape.ops:
        primitive, operands, result = op.primitive, op.operands, op.result
        if not defined.issuperset(operands):
            operand = next(each for each in operands if each not in defined)
            raise TapeError(f"{op.name} -> %{result} uses %{operand} before it is defined")
        if result in defined:
            raise TapeError(f"%{result} is defined twice, the second time by {op.name}")
        if result not in types:
            raise TapeError(f"%{result} has no type")
        defined.add(result)
        if primitive.typed is not None:
            tuple(map(verify, op.regions))
        if primitive.access == AccessMap.CALL:
            continue  # of any function at all
        shape = _shape(op, tuple([types[v] for v in operands]), types[result].shape)
        # The number of true elements depends on values; the type has the recorded number.
        if types[result].shape != shape and op.semantics.positions != Positions.TRUE:
            found = f"has type {types[result]}, but its operands give shape {shape}"
            raise TapeError(f"{op.name} -> %{result} {found}")
    for variable in (*tape.outputs, *(guard.variable for guard in tape.guards)):
        if variable not in defined:
            raise TapeError(f"%{variable} is returned or guarded, and nothing defines it")
    for variable, value in tape.constants.items():
        shape = getattr(value, "shape", ())
        if shape != tape.types[variable].shape:
            raise TapeError(f"constant %{variable} has shape {shape}, its type says {tape.types[variable]}")
    return tape


def _shape(op: Op, operands: tuple[TensorType, ...], found: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that operands give, where ``found`` is what the result has."""
    # Most ops are elementwise on arrays of one shape, and inference takes longer.
    if op.primitive.elementwise and all(each.shape == found for each in operands):
        return found
    return infer(op.primitive, operands, op.static).shape
