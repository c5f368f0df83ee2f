"""The guard of a recording that depends on how the arguments lie in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.types import type_of

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["guard_order"]


def guard_order(trace: Trace) -> None:
    """If what was recorded depends on how the arguments lie in memory, guard that."""
    if trace.ordered is None:
        return
    builder, strided, element = trace.builder, primitive("strides"), primitive("getitem")
    builder.location = trace.ordered
    for entry in builder.inputs:
        if entry.argument < 0 or not builder.types[entry.variable].ndim:
            continue
        strides = np.array(trace.strides[entry.variable])
        found = builder.emit(strided, (entry.variable,), {}, type_of(strides))
        for axis, stride in enumerate(strides.tolist()):
            one = builder.emit(element, (found,), {"index": (axis,)}, type_of(strides[axis]))
            builder.guard(one, stride, "layout")
