"""Pass `cse`: ops that compute the same are computed once; equal constants are one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import with_ops

_LARGEST_INTERNED = 65536


def run(tape: Tape) -> Tape:
    """Number values: two ops with one primitive, equal operands and equal keywords are one op."""
    same = _equal_constants(tape)
    known: dict[Any, int] = {}
    ops: list[Op] = []
    types = tape.types
    for op in tape.ops:
        kept = op
        if same and not same.keys().isdisjoint(op.operands):
            operands = tuple([same.get(operand, operand) for operand in op.operands])
            kept = Op(op.result, op.primitive, operands, op.static, op.location)
        operands = kept.operands
        if len(operands) > 1 and kept.primitive.semantics.commutes:
            operands = tuple(sorted(operands))
        try:
            found = known.setdefault((kept.primitive, operands, kept.static, types[op.result]), op.result)
        except TypeError:  # a keyword that cannot be hashed
            found = op.result
        if found == op.result:
            ops.append(kept)
        else:
            same[op.result] = found
    return _merged(tape, ops, same) if same else tape


def _merged(tape: Tape, ops: list[Op], same: dict[int, int]) -> Tape:
    """``tape`` with ``ops``; each variable that is a key of ``same`` is replaced by its value there."""
    names = {variable: name for variable, name in tape.names.items() if variable not in same}
    for variable, name in tape.names.items():
        if variable in same:
            names.setdefault(same[variable], name)
    return with_ops(
        tape,
        ops,
        outputs=tuple([same.get(variable, variable) for variable in tape.outputs]),
        constants={variable: value for variable, value in tape.constants.items() if variable not in same},
        types={variable: type for variable, type in tape.types.items() if variable not in same},
        guards=[replace(guard, variable=same.get(guard.variable, guard.variable)) for guard in tape.guards],
        names=names,
    )


def _equal_constants(tape: Tape) -> dict[int, int]:
    """The first of all constants that are equal, by the number of each other one."""
    first: dict[Any, int] = {}
    same: dict[int, int] = {}
    for variable, value in tape.constants.items():
        found = first.setdefault(constant_key(tape.types[variable], value), variable)
        if found != variable:
            same[variable] = found
    return same


def constant_key(type_: TensorType, value: Any) -> Any:
    """What constants of the same type and bits have in common."""
    if not isinstance(value, np.ndarray):
        return type(value), repr(value), type_
    if value.nbytes > _LARGEST_INTERNED:
        return id(value)
    return value.dtype, value.shape, type_.weak, value.tobytes()
