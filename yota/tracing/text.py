"""Text of traced values: free where it is only written out, a guard where it may be used as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from yota.tracing.implementations import implements
from yota.tracing.location import caller
from yota.tracing.written import is_written_out

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["to_text"]

# Traced values go where NumPy's annotations ask for arrays.
np: Any = numpy

_MOST = 64
"""Numbers in a text that is used as data: each becomes a guard."""


def to_text(tracer: Any, make: Callable[[Any], str]) -> str:
    """The text that ``make`` gives for the value; unless it is only written out, that value becomes a guard."""
    trace = tracer._trace
    trace.check(tracer._variable)
    value = tracer._value()
    if trace.is_constant(tracer._current()) or is_written_out(caller(3)):
        return make(value)
    if tracer.size > _MOST:
        raise trace.refuse(
            f"the text of {tracer.size} traced numbers is used as data.",
            "Print it in the call of print itself, or make it outside of the function.",
        )
    for each in np.reshape(tracer, (-1,)) if tracer.ndim else [tracer]:
        trace.decide(each._current(), "value", each._value())
        if each.dtype.kind == "f" and not each._value():
            bool(np.signbit(each))  # zeros are equal, and their texts are not
    return make(value)


def _by_numpy(function: Any) -> None:
    @implements(function)
    def text(trace: Trace, a: Any, *args: Any, **keywords: Any) -> str:
        return to_text(trace.traced(a), lambda value: str(function(value, *args, **keywords)))


for _function in (numpy.array2string, numpy.array_str, numpy.array_repr):
    _by_numpy(_function)
