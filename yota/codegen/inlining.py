"""Finds results that are best written inside the one expression that uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from yota.codegen.storage import Storage
from yota.codegen.targets.numpy_choice import cuts_bits
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.passes.units import Unit
from yota.passes.views import is_view

__all__ = ["nested"]

_STATEMENTS = (AccessMap.WRITE, AccessMap.SCATTER, AccessMap.DEPOSIT)
"""Ops that are statements, and may name an operand more than once."""


def nested(tape: Tape, units: Sequence[Unit], storage: Storage) -> frozenset[int]:
    """Variables that are used once, by an expression that can hold theirs, and that the user gave no name.

    A view may be written where it is used, however much later: what it looks at is kept until then. Anything else, an
    element of an array too, is written into the very next statement alone, so that no value outlives its use.
    """
    uses = Counter(operand for unit in units for operand in unit.operands)
    uses.update(tape.outputs)
    uses.update(guard.variable for guard in tape.guards)
    users = {
        operand: position
        for position, unit in enumerate(units)
        if not unit.extent and (unit.is_kernel or not _is_statement(unit.members[0].op, tape))
        for operand in unit.operands
    }
    kept = {*tape.outputs, *tape.names, *(guard.variable for guard in tape.guards), *storage.inherits}
    found = set()
    for position, unit in enumerate(units):
        op = unit.members[0].op
        result = op.result
        if not unit.is_op or _is_statement(op, tape) or uses[result] != 1 or result in kept or result in storage.slot:
            continue
        user = users.get(result)
        if user is not None and (user == position + 1 or (tape.types[result].shape and is_view(op, tape.types))):
            found.add(result)
    return frozenset(found)


def _is_statement(op: Op, tape: Tape) -> bool:
    if op.access == AccessMap.CALL:
        return bool(op.keyword("form").writes)
    return op.access in _STATEMENTS or cuts_bits(op, tape.types)
