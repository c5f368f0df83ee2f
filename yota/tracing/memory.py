"""Whose memory an array shows, and how arrays lie in it where that decides what a function gives."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.types import type_of

if TYPE_CHECKING:
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer


def owner_of(array: Any) -> Any:
    """The array that owns the memory of ``array``; itself, unless it is a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def reference(array: Any) -> Callable[[], Any]:
    """A function that gives ``array``: None once nobody has it, whereupon nobody can write into its memory.

    >>> array = np.zeros(3)
    >>> found = reference(array)
    >>> found() is array
    True
    >>> del array
    >>> found() is None
    True
    """
    if type(array) is np.ndarray and array.flags.owndata:
        return weakref.ref(array)
    return lambda: array


def sharing(written: Sequence[bool], arrays: Sequence[Any]) -> tuple[int, int] | None:
    """The positions of a ``written`` array and of another one in the same memory, if there are such.

    >>> x = np.zeros(4)
    >>> sharing([True, False], [x[:3], x[2:]]), sharing([True, False], [x[::2], x[1::2]])
    ((0, 1), None)
    """
    known = [(number, each) for number, each in enumerate(arrays) if isinstance(each, np.ndarray)]
    for first, one in known[: sum(number < len(written) for number, _ in known)]:
        for second, other in known if written[first] else ():
            if first != second and np.shares_memory(one, other):
                return first, second
    return None


def laid_as(value: Any, strides: tuple[int, ...]) -> Any:
    """The elements of ``value`` in memory of their own that lies by ``strides``.

    As they are where elements that differ would share a place.

    >>> laid_as(np.ones((2, 3)), (8, 32)).strides
    (8, 32)
    >>> laid_as(np.arange(2.0), (0,)).strides
    (8,)
    """
    if not value.size:
        return value
    pairs = [*zip(strides, value.shape, strict=True)]
    reach = value.itemsize + sum(abs(stride) * (extent - 1) for stride, extent in pairs)
    before = sum(-stride * (extent - 1) for stride, extent in pairs if stride < 0)
    laid: Any = np.ndarray(value.shape, value.dtype, np.empty(reach, np.uint8), before, strides)
    laid[...] = value
    return laid if _are_apart(strides, value) or laid.tobytes() == value.tobytes() else value


def _are_apart(strides: tuple[int, ...], value: Any) -> bool:
    """Whether each axis steps over all that the axes with shorter strides reach: no two elements share a place."""
    reach = value.itemsize
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(strides, value.shape, strict=True)):
        if extent > 1 and stride < reach:
            return False
        reach += stride * (extent - 1)
    return True


def memory_order(trace: Trace, a: Tracer, order: str) -> str:
    """``order`` as "C" or "F", where "A" is the one in which ``a`` lies in memory."""
    if order in ("C", "F") or _is_row(a):
        return "F" if order == "F" else "C"
    if order != "A":
        raise ValueError(f"order must be one of 'C', 'F', or 'A' (got {order!r})")
    flags = np.asarray(_laid(trace, a)).flags
    return "F" if flags.f_contiguous and not flags.c_contiguous else "C"


def axes_in_memory(trace: Trace, a: Tracer) -> tuple[int, ...] | None:
    """The axes of ``a`` from that with the longest strides to that with the shortest; None if that is the order "C"."""
    if _is_row(a):
        return None
    value = np.asarray(_laid(trace, a))
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
    if order in ("K", "k", None) or not isinstance(plain, np.ndarray) or not plain.ndim:
        return value
    found = value if plain.astype(plain.dtype, order, copy=False) is plain else value.copy(order)
    by_layout(value, found)
    return found


def by_layout(tracer: Tracer, result: Tracer) -> None:
    """Note that memory order decides whether ``result`` is a view of ``tracer``: a later write tells the difference."""
    trace = tracer._trace
    roots = [root_of(tracer), root_of(result)]
    if tracer.ndim > 1 or id(roots[0]) in trace.arguments:
        trace.reshaped.update((id(each), each) for each in roots)


def root_of(tracer: Tracer) -> Tracer:
    """The array that a view, and each view of it, looks at in the end."""
    while tracer._base is not None:
        tracer = tracer._base
    return tracer


def _is_row(a: Tracer) -> bool:
    """Whether at most one axis has several elements, or there is no element."""
    return a.size < 2 or a.size in a.shape


def _laid(trace: Trace, a: Tracer) -> Any:
    """The concrete value of ``a``, on whose strides the recording depends from now on."""
    trace.rely_on_order()
    return trace.values[a._current()]


def guard_order(trace: Trace) -> None:
    """If what was recorded depends on how the arguments lie in memory, guard that."""
    if trace.ordered is None:
        return
    from yota.ir.catalog import primitive

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
