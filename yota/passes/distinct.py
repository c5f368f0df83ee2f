"""Which index arrays hold no number twice, so that pieces can be added at their places at once, or none below 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.ir.indexing import GATHER
from yota.ir.semantics import AccessMap, Positions
from yota.ir.tape import Op, Tape

__all__ = ["distinct", "unsigned"]

_NONE: Mapping[int, Sequence[Any]] = MappingProxyType({})


def distinct(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Integer variables whose values are all different and none below 0, and masks.

    ``known`` has the values that further variables have, at several sizes.
    """
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    found = {variable for variable, arrays in values.items() if all(_apart(np.asarray(each)) for each in arrays)}
    found.update(variable for variable, type in tape.types.items() if type.dtype.kind == "b" and type.shape)
    for op in tape.ops:
        if _positions(op, tape) or (_selects(op) and op.operands[0] in found):
            found.add(op.result)
    return frozenset(found)


def unsigned(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Constant arrays of integers, none below 0; ``known`` is that of `distinct`."""
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    return frozenset(v for v, arrays in values.items() if all(_is_unsigned(np.asarray(each)) for each in arrays))


def _is_unsigned(value: np.ndarray) -> bool:
    return value.dtype.kind in "iu" and value.ndim > 0 and not np.any(value < 0)


def _apart(value: np.ndarray) -> bool:
    if value.dtype.kind not in "iu" or not value.size:
        return False
    ordered = np.sort(value, axis=None)
    return bool(ordered[0] >= 0 and np.all(ordered[1:] != ordered[:-1]))


def _positions(op: Op, tape: Tape) -> bool:
    """Positions in an array, each at most once."""
    found = op.semantics.positions
    return found == Positions.TRUE or (found == Positions.SORTED and tape.types[op.operands[0]].ndim == 1)


def _selects(op: Op) -> bool:
    """Whether the result's elements are elements of the first operand, none taken twice."""
    if op.access == AccessMap.READ:
        return GATHER not in op.keyword("index")
    return op.access in (AccessMap.RESHAPE, AccessMap.TRANSPOSE)
