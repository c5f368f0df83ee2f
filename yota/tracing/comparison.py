"""Whether two recordings of one function are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.ir.tape import Tape
from yota.structures import is_on_device


def same(left: Tape, right: Tape) -> bool:
    """Whether two tapes do the same, whatever their variables are numbered: imports while one was made leave gaps."""
    partner = {one.variable: other.variable for one, other in zip(left.inputs, right.inputs, strict=False)}

    def alike(ours: Sequence[int], theirs: Sequence[int]) -> bool:
        return len(ours) == len(theirs) and all(
            _equal(left.constants[one], right.constants[other])
            if one in left.constants and other in right.constants
            else partner.get(one) == other
            for one, other in zip(ours, theirs, strict=True)
        )

    if len(left.ops) != len(right.ops):
        return False
    for a, b in zip(left.ops, right.ops, strict=True):
        if a.primitive is not b.primitive or a.static != b.static or not alike(a.operands, b.operands):
            return False
        partner[a.result] = b.result
    return alike(left.outputs, right.outputs)


def same_arrays(left: Mapping[int, Any], right: Mapping[int, Any]) -> bool:
    """Whether two mappings hold equal arrays in the same order; a NaN is like another."""
    return len(left) == len(right) and all(map(_equal, left.values(), right.values()))


def _equal(value: Any, other: Any) -> bool:
    value, other = (each.get() if is_on_device(each) else each for each in (value, other))
    return np.array_equal(value, other, equal_nan=np.asarray(value).dtype.kind in "fc")
