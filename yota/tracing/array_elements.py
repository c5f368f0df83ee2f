"""Single elements of traced arrays, which loops read and write by the thousand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from yota.ir.catalog import primitive
from yota.tracing.current import current

if TYPE_CHECKING:
    from yota.tracing.tracer import Tracer

_SETITEM = primitive("setitem")
_ALONE = 3
"""References to a value of a trace that nothing else holds: the trace, a variable here, and the argument of a count."""


def are_whole(index: tuple[Any, ...]) -> bool:
    """Whether an index is of whole numbers, one at least."""
    return bool(index) and all(type(entry) is int for entry in index)


def places(index: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers as an index without those from the end."""
    if type(index) is int:
        return (index if index >= 0 else index + shape[0],)
    return tuple([entry if entry >= 0 else entry + extent for entry, extent in zip(index, shape, strict=False)])


def is_written(tracer: Tracer, index: Any, value: Any) -> bool:
    """Whether ``tracer[index] = value`` was done here: an element of the array that was written last (`Trace.written`).

    The concrete array is written too. A copy for each element would take time and memory by the square of the extent.
    """
    trace, variable = tracer._trace, tracer._variable
    array = trace.values[variable]
    if not (type(index) is int or (type(index) is tuple and are_whole(index))):
        return False
    found = places(index, array.shape)
    is_alone = (
        current() is trace
        and not trace.finished
        and not trace.is_constant(variable)
        and id(tracer) not in trace.reshaped
        # None of its views is alive.
        and sys.getrefcount(array) <= _ALONE
    )
    is_there = len(found) == array.ndim and all(map(_is_within, found, array.shape))
    if not (is_alone and is_there):
        return False
    element = trace.lift(value)
    type_ = trace.builder.types[element]
    is_number = type_.weak and type_.dtype.kind in "if" and array.dtype.kind == "f"
    if type_.shape or not (is_number or type_.dtype == array.dtype):
        return False
    array[found] = trace.values[element]
    written: Tracer = trace.record(_SETITEM, (variable, element), (("index", found),), array)
    del trace.values[variable]
    tracer._variable = written._variable
    return True


def _is_within(place: int, extent: int) -> bool:
    return 0 <= place < extent
