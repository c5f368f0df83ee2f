"""Pass `fold`: ops whose operands are all constants are evaluated once and become constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.extents import extents_in
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.optimize.rewrite import with_ops

_LARGEST_BROADCAST = 65536


def run(tape: Tape) -> Tape:
    """Evaluate constant ops.

    A result that is much larger than what it is made from stays an op: a broadcast costs nothing when it
    runs, and memory when it is kept.
    """
    constants = dict(tape.constants)
    ops: list[Op] = []
    with np.errstate(all="ignore"):
        for op in tape.ops:
            operands = op.operands
            if operands and operands[0] in constants and constants.keys() >= set(operands):
                values = [constants[operand] for operand in operands]
                # Named sizes may decide on what an op gives.
                is_open = any(True for _ in extents_in((tape.types[op.result].shape, op.static)))
                value = None if is_open else _evaluate(tape.types[op.result], op, values)
                if value is not None:
                    constants[op.result] = value
                    continue
            ops.append(op)
    return with_ops(tape, ops, constants=constants) if len(ops) < len(tape.ops) else tape


def _evaluate(type: TensorType, op: Op, values: list[Any]) -> Any:
    """The constant's value, or None where it is better computed each time."""
    if op.primitive.expand is not None or isinstance(type, TupleType) or op.access == AccessMap.ITEM:
        return None
    if type.nbytes > _LARGEST_BROADCAST and type.nbytes > sum(np.asarray(value).nbytes for value in values):
        return None
    result = op.primitive.function(*values, **dict(op.static))
    if type.weak:
        return np.asarray(result).astype(type.dtype)[()].item()
    if not type.shape:
        return np.asarray(result).astype(type.dtype)[()]
    array = np.array(result, dtype=type.dtype)
    if array.shape != type.shape:
        return None
    array.flags.writeable = False
    return array
