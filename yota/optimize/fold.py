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
_MOST_STEPS = 4096
"""Ops that all trips of a loop together may take to be folded."""


def run(tape: Tape) -> Tape:
    """Evaluate constant ops.

    A result that is much larger than what it is made from stays an op: a broadcast costs nothing when it
    runs, and memory when it is kept.
    """
    constants = dict(tape.constants)
    several: dict[int, tuple[Any, ...]] = {}
    """Results of ops that have several."""
    ops: list[Op] = []
    with np.errstate(all="ignore"):
        for op in tape.ops:
            operands = op.operands
            if op.access == AccessMap.ITEM and operands[0] in several:
                constants[op.result] = _frozen(several[operands[0]][op.keyword("index")], tape.types[op.result])
                continue
            if operands and operands[0] in constants and constants.keys() >= set(operands):
                values = [constants[operand] for operand in operands]
                # Named sizes may decide on what an op gives.
                type = tape.types[op.result]
                is_open = any(True for _ in extents_in((type.shape, op.static)))
                value = None if is_open else _evaluate(type, op, values)
                if op.regions and not is_open and _is_short(type, op):
                    several[op.result] = op.primitive.function(*values, **dict(op.static))
                if value is not None:
                    constants[op.result] = value
                    continue
            ops.append(op)
    return with_ops(tape, ops, constants=constants) if len(ops) < len(tape.ops) else tape


def _is_short(type: Any, op: Op) -> bool:
    """Whether a loop, whose results are of a tuple ``type``, takes little time and gives small arrays."""
    region = op.keyword("region")
    short = region.is_fixed and region.trips * len(region.body) <= _MOST_STEPS
    return short and all(part.nbytes <= _LARGEST_BROADCAST for part in type.parts)


def _evaluate(type: TensorType, op: Op, values: list[Any]) -> Any:
    """The constant's value, or None where it is better computed each time."""
    if op.primitive.expand is not None or isinstance(type, TupleType) or op.access == AccessMap.ITEM:
        return None
    if type.nbytes > _LARGEST_BROADCAST and type.nbytes > sum(np.asarray(value).nbytes for value in values):
        return None
    result = op.primitive.function(*values, **dict(op.static))
    return _frozen(result, type) if np.shape(result) == type.shape else None


def _frozen(value: Any, type: Any) -> Any:
    array = np.array(value, dtype=type.dtype)
    array.flags.writeable = False
    if type.shape:
        return array
    return array.item() if type.weak else array[()]
