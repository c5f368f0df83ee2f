"""Which ops give arrays that may share memory with their operands."""

from __future__ import annotations

from collections.abc import Mapping

from yota.ir.indexing import GATHER
from yota.ir.semantics import VIEWS, AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

__all__ = ["is_view", "roots", "shares"]


def is_view(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether ``op`` costs nothing and gives another look at its first operand."""
    access = op.access
    if access == AccessMap.READ:
        return GATHER not in op.keyword("index")
    return access in VIEWS or (op.semantics.component != "" and types[op.operands[0]].is_complex)


def shares(op: Op, types: Mapping[int, TensorType]) -> tuple[int, ...]:
    """Operands whose memory the result may be; unknown functions are taken to share all."""
    if not types[op.result].shape:
        return ()
    if is_view(op, types) or op.semantics.component:
        return op.operands[:1]
    if op.access == AccessMap.CALL:
        return op.operands if op.keyword("form").view else ()
    # Of one operand an einsum is a view, or a sum.
    owns = op.semantics.owns or op.access == AccessMap.READ or (op.access == AccessMap.EINSUM and len(op.operands) > 1)
    return () if owns else op.operands


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
