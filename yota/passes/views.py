"""Which ops give arrays that may share memory with their operands."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from yota.ir.indexing import GATHER
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

__all__ = ["is_view", "roots", "shares"]

_VIEWS = frozenset({"reshape", "transpose", "broadcast_to"})
_FRESH = frozenset(
    "inv solve cholesky pinv"
    " where astype setitem scatter deposit sum prod max min matmul concatenate stack cumsum cumprod sort".split()
)


def is_view(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether ``op`` costs nothing and gives another look at its first operand."""
    if op.name in _VIEWS:
        return True
    if op.name == "getitem":
        return GATHER not in op.keyword("index")
    if op.name in ("real", "imag"):
        return types[op.operands[0]].is_complex
    return False


def shares(op: Op, types: Mapping[int, TensorType]) -> tuple[int, ...]:
    """Operands whose memory the result may be; unknown functions are taken to share all."""
    if not types[op.result].shape:
        return ()
    if is_view(op, types):
        return op.operands[:1]
    if op.name in ("real", "imag"):
        return op.operands[:1]
    if op.name == "call":
        return op.operands if op.keyword("form").view else ()
    if isinstance(op.primitive.function, np.ufunc) or op.name in _FRESH or op.name == "getitem":
        return ()
    if (op.primitive.target or "").startswith("numpy.fft."):
        return ()
    if op.name == "einsum" and len(op.operands) > 1:
        return ()
    return op.operands


def roots(tape: Tape, apart: frozenset[int] = frozenset()) -> dict[int, frozenset[int]]:
    """For each variable, the variables whose memory it may look at; its own if it owns its memory.

    Variables in ``apart`` own theirs, whatever NumPy's op would look at.
    """
    found = {item.variable: frozenset((item.variable,)) for item in tape.inputs}
    found.update({variable: frozenset((variable,)) for variable in tape.constants})
    for op in tape.ops:
        operands = () if op.result in apart else shares(op, tape.types)
        shared = frozenset().union(*(found[operand] for operand in operands))
        own = frozenset() if is_view(op, tape.types) and shared else frozenset((op.result,))
        found[op.result] = shared | own
    return found
