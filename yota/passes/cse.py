"""Pass `cse`: ops that compute the same are computed once; equal constants are one."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.tape import Tape
from yota.passes.rewrite import Rewriting

__all__ = ["run"]

_COMMUTATIVE = frozenset(
    {"add", "multiply", "equal", "not_equal", "logical_and", "logical_or", "bitwise_and", "bitwise_or"}
)
_LARGEST_INTERNED = 65536


def run(tape: Tape) -> Tape:
    """Number values: two ops with one primitive, equal operands and equal keywords are one op."""
    rewriting = Rewriting(tape)
    _intern_arrays(rewriting)
    known: dict[Any, int] = {}
    for op in tape.ops:
        operands = rewriting.operands(op)
        if op.name in _COMMUTATIVE:
            operands = tuple(sorted(operands))
        key = (op.primitive, operands, op.static, tape.types[op.result])
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


def _intern_arrays(rewriting: Rewriting) -> None:
    known: dict[Any, int] = {}
    tape = rewriting.tape
    for variable, value in tape.constants.items():
        if not isinstance(value, np.ndarray):
            continue
        if value.nbytes > _LARGEST_INTERNED:
            key: Any = id(value)
        else:
            key = (value.dtype, value.shape, tape.types[variable].weak, value.tobytes())
        if key in known:
            rewriting.mapping[variable] = rewriting[known[key]]
        else:
            known[key] = variable
