"""Text of traced values: free where it is only written out, a guard where it may be used as data."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from yota.tracing.conversions import SHIFTS, note, shifted
from yota.tracing.implementations import implements
from yota.tracing.location import caller
from yota.tracing.traced_text import Text
from yota.tracing.untyped import np
from yota.tracing.written import is_written_out

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

_MOST = 64
"""Numbers in a text that is used as data: each becomes a guard."""


def to_text(tracer: Any, make: Callable[[Any], str]) -> str:
    """The text that ``make`` gives for the value; unless it is only written out, that value becomes a guard.

    A text that shows the last digits of the value could be read back, without the derivative. The function then runs
    from its source, where texts are followed; else it is proved that nothing comes of the text.
    """
    trace = tracer._trace
    trace.check(tracer._variable)
    value, user = tracer._value(), caller(3)
    if trace.is_constant(tracer._current()) or is_written_out(user, trace.outlets):
        return make(value)
    moves = tracer.dtype.kind in "fc" and _moves(value, make)
    if moves:
        trace.restart(user)
    variable = tracer._current()
    if trace.reads and user is not None and not isinstance(user, FrameType):
        return _followed(trace, variable, make(shifted(trace, value, variable) if trace.shift else value), moves)
    _decide(trace, variable)
    if not moves:
        return make(value)
    text = make(shifted(trace, value, variable) if trace.shift else value)
    note(trace, variable, text)
    return text


def to_bytes(tracer: Any, order: str) -> bytes:
    """The bytes of the value, which become guards; nothing may be computed from them."""
    trace, value, variable = tracer._trace, tracer._value(), tracer._current()
    trace.check(tracer._variable)
    if not trace.is_constant(variable):
        trace.rely_on_order()
        _decide(trace, variable)
        value = shifted(trace, value, variable) if trace.shift and tracer.dtype.kind in "fc" else value
    made: bytes = value.tobytes(order)
    note(trace, variable, made)
    return made


def _followed(trace: Trace, variable: int, content: str, moves: bool) -> Text:
    """A text in the hands of a function that runs from its source."""

    def use(escapes: bool) -> None:
        if trace.finished:
            return
        _decide(trace, variable)
        if escapes and moves:
            note(trace, variable, content)

    if moves and trace.first_run is not None:
        trace.first_run.over = True  # here the first run has ended at the latest
    return Text(content, moves, use)


def _moves(value: Any, make: Callable[[Any], str]) -> bool:
    """Whether a small step of the value shows in its text."""
    text = make(value)
    return any(make(value + (abs(value) + 1.0) * shift) != text for shift in SHIFTS)


def _decide(trace: Trace, variable: int) -> None:
    """Make each number of a variable a guard."""
    tracer = trace.wrap(variable, trace.values[variable])
    if tracer.size > _MOST:
        raise trace.refuse(
            f"the text of {tracer.size} traced numbers is used as data.",
            "Print it in the call of print itself, or make it outside of the function.",
        )
    for each in np.reshape(tracer, (-1,)) if tracer.ndim else [tracer]:
        trace.decide(each._current(), "value", each._value())
        if each.dtype.kind == "f" and not each._value():
            bool(np.signbit(each))  # zeros are equal, and their texts are not


def _by_numpy(function: Any) -> None:
    @implements(function)
    def text(trace: Trace, a: Any, *args: Any, **keywords: Any) -> str:
        return to_text(trace.traced(a), lambda value: str(function(value, *args, **keywords)))


for _function in (np.array2string, np.array_str, np.array_repr):
    _by_numpy(_function)
