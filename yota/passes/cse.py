"""Pass `cse`: ops that compute the same are computed once; equal constants are one."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.tape import Op, Tape
from yota.passes.rewrite import Rewriting

__all__ = ["run"]

_COMMUTATIVE = frozenset(
    {"add", "multiply", "equal", "not_equal", "logical_and", "logical_or", "bitwise_and", "bitwise_or"}
)
_LARGEST_INTERNED = 65536


def run(tape: Tape) -> Tape:
    """Number values: two ops with one primitive, equal operands and equal keywords are one op."""
    if not _has_twins(tape):
        return tape
    rewriting = Rewriting(tape)
    _intern_arrays(rewriting)
    known: dict[Any, int] = {}
    for op in tape.ops:
        key = _key(tape, op, rewriting.operands(op))
        try:
            found = known.get(key)
        except TypeError:  # a keyword that cannot be hashed
            rewriting.copy(op)
            continue
        if found is None:
            known[key] = rewriting.copy(op)
        else:
            rewriting.bind(op.result, found)
    return rewriting.finish()


def _key(tape: Tape, op: Op, operands: tuple[int, ...]) -> Any:
    if op.name in _COMMUTATIVE:
        operands = tuple(sorted(operands))
    return op.primitive, operands, op.static, tape.types[op.result]


def _has_twins(tape: Tape) -> bool:
    """Whether any two constants, or two ops as they stand, are the same; copying a tape costs more than this look."""
    constants = {_constant_key(tape, variable, value) for variable, value in tape.constants.items()}
    try:
        ops = {_key(tape, op, op.operands) for op in tape.ops}
    except TypeError:  # a keyword that cannot be hashed
        return True
    return len(constants) < len(tape.constants) or len(ops) < len(tape.ops)


def _constant_key(tape: Tape, variable: int, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return type(value), repr(value), tape.types[variable]
    if value.nbytes > _LARGEST_INTERNED:
        return id(value)
    return value.dtype, value.shape, tape.types[variable].weak, value.tobytes()


def _intern_arrays(rewriting: Rewriting) -> None:
    known: dict[Any, int] = {}
    tape = rewriting.tape
    for variable, value in tape.constants.items():
        if not isinstance(value, np.ndarray):
            continue
        key = _constant_key(tape, variable, value)
        if key in known:
            rewriting.mapping[variable] = rewriting[known[key]]
        else:
            known[key] = variable
