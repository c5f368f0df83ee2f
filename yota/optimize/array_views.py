"""Which arrays may share memory with others, and which index arrays hold no number twice, or none below 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.ir.indexing import GATHER
from yota.ir.semantics import VIEWS, AccessMap, Positions
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType


def is_view(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether the result of ``op`` is a view of its first operand, which costs nothing."""
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
    """For each variable, the variables whose memory it may share; itself if it owns its memory.

    Variables in ``apart`` own their memory, even where NumPy's op gives a view.
    """
    found = {item.variable: frozenset((item.variable,)) for item in tape.inputs}
    found.update({variable: frozenset((variable,)) for variable in tape.constants})
    for op in tape.ops:
        operands = () if op.result in apart else shares(op, tape.types)
        shared = frozenset().union(*(found[operand] for operand in operands))
        own = frozenset() if is_view(op, tape.types) and shared else frozenset((op.result,))
        found[op.result] = shared | own
    return found


_PERMUTATIONS = (AccessMap.RESHAPE, AccessMap.TRANSPOSE)
_NONE: Mapping[int, Sequence[Any]] = MappingProxyType({})


def distinct(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Integer variables whose values are all different and none below 0, and masks.

    ``known`` has the values that further variables have, at several sizes.
    """
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    found = {variable for variable, arrays in values.items() if all(_apart(np.asarray(each)) for each in arrays)}
    found.update(variable for variable, type in tape.types.items() if type.dtype.kind == "b" and type.shape)
    for op in tape.ops:
        kind = op.semantics.positions
        # Positions in an array are each there at most once; what only selects elements takes none twice.
        is_distinct = kind == Positions.TRUE or (kind == Positions.SORTED and tape.types[op.operands[0]].ndim == 1)
        selects = GATHER not in op.keyword("index") if op.access == AccessMap.READ else op.access in _PERMUTATIONS
        if is_distinct or (selects and op.operands[0] in found):
            found.add(op.result)
    return frozenset(found)


def unsigned(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Constant arrays of integers, none below 0; ``known`` is that of `distinct`."""
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    found = {variable: tuple(map(np.asarray, arrays)) for variable, arrays in values.items()}
    return frozenset(
        variable
        for variable, arrays in found.items()
        if all(each.dtype.kind in "iu" and each.ndim > 0 and not np.any(each < 0) for each in arrays)
    )


def _apart(value: np.ndarray) -> bool:
    if value.dtype.kind not in "iu" or not value.size:
        return False
    ordered = np.sort(value, axis=None)
    return bool(ordered[0] >= 0 and np.all(ordered[1:] != ordered[:-1]))
