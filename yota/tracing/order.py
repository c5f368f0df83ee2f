"""The orders "A" and "K" of reshapes, which are those of an array's elements in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer

__all__ = ["arranged", "axes_in_memory", "laid_out", "memory_order"]

_FAITHFUL = frozenset(("transpose", "reshape", "getitem", "astype", "setitem", "conjugate", "broadcast_to", "call"))
"""Primitives whose concrete results lie in memory as NumPy's do; those that act on each element are others."""


def memory_order(trace: Trace, a: Tracer, order: str) -> str:
    """``order`` as "C" or "F", where "A" is the one in which ``a`` lies in memory."""
    if order in ("C", "F") or _is_row(a):
        return "F" if order == "F" else "C"
    if order != "A":
        raise ValueError(f"order must be one of 'C', 'F', or 'A' (got {order!r})")
    flags = np.asarray(_laid(trace, a, order)).flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def axes_in_memory(trace: Trace, a: Tracer) -> tuple[int, ...] | None:
    """The axes of ``a`` from that with the longest strides to that with the shortest; None if that is the order "C"."""
    if _is_row(a):
        return None
    value = np.asarray(_laid(trace, a, "K"))
    if value.flags.c_contiguous:
        return None
    steps = [abs(step) for step, extent in zip(value.strides, value.shape, strict=True) if extent > 1]
    if len(set(steps)) < len(steps) or 0 in steps:
        raise trace.refuse(
            'order="K" is not known for an array of which several elements share a place in memory.', 'Use order="C".'
        )
    return tuple(sorted(range(a.ndim), key=lambda axis: -abs(value.strides[axis])))


def arranged(result: Any, order: str, operands: Sequence[Any] = ()) -> Any:
    """A fresh result as the keyword ``order`` asks it to lie in memory; "A" goes by the operands."""
    if order in ("A", "a"):
        flags = [np.asarray(each._value() if hasattr(each, "_value") else each).flags for each in operands]
        order = "F" if all(each.f_contiguous for each in flags) else "C"
    return (
        result if order in ("K", "k", None) or not hasattr(result, "_value") or result.ndim < 2 else result.copy(order)
    )


def laid_out(value: Any, order: Any) -> Any:
    """``value`` itself if it lies in memory as the keyword ``order`` asks, else a copy that does."""
    plain = value._value()
    if order in ("K", "k", None) or value.ndim < 2:
        return value
    return value if np.asarray(plain).astype(plain.dtype, order, copy=False) is plain else value.copy(order)


def _is_row(a: Tracer) -> bool:
    """Whether at most one axis has several elements, or there is no element."""
    return a.size < 2 or a.size in a.shape


def _laid(trace: Trace, a: Tracer, order: str) -> Any:
    """The concrete value of ``a``, on whose strides the recording depends from now on."""
    found = _doubtful(trace, a._current())
    if found is not None:
        raise trace.refuse(
            f'order="{order}" depends on how an array lies in memory, and {found} may lay its result out otherwise '
            "than NumPy does.",
            'Use order="C" or order="F".',
        )
    trace.rely_on_order()
    return trace.values[a._current()]


def _doubtful(trace: Trace, variable: int) -> str | None:
    """A primitive that ``variable`` came by and that stands for functions with several ways to lay a result out."""
    pending, seen = [variable], {variable}
    while pending:
        op = trace.builder.definition(pending.pop())
        if op is None:
            continue
        if op.name not in _FAITHFUL and not op.primitive.elementwise:
            return op.name
        if op.name in ("getitem", "setitem") and len(op.operands) > (1 if op.name == "getitem" else 2):
            return f"{op.name} at integer arrays"
        fresh = set(op.operands[:1] if op.name == "setitem" else op.operands) - seen
        pending += fresh
        seen |= fresh
    return None
