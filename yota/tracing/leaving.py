"""How a traced value turns into plain Python or NumPy: by a guard, by identity, or by a refusal."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.tracing.bytecode import callee, consumer, is_call, running
from yota.tracing.conversions import converted, note, shifted
from yota.tracing.location import ENTRY, caller
from yota.tracing.received import received
from yota.tracing.written import is_written_out

if TYPE_CHECKING:
    from yota.tracing.tracer import Tracer

_LISTED = "A list of numbers becomes an array by np.array: np.sin(np.array(x)) in the place of np.sin(x). "
"""What helps where a function of NumPy's takes a list apart by itself."""


def to_bool(tracer: Tracer) -> bool:
    """Its truth, as a guard."""
    variable = tracer._current()
    decision = bool(tracer._trace.values[variable])
    tracer._trace.decide(variable, "bool", decision)
    return decision


def to_int(tracer: Tracer, convert: Callable[[Any], int]) -> int:
    """Its integer part, as a guard: the derivative of an integer is zero wherever it exists."""
    variable = tracer._current()
    number = convert(tracer._trace.values[variable])
    if not is_written_out(caller(3), tracer._trace.outlets):
        tracer._trace.decide(variable, "int", number)
    return number


def to_number(tracer: Tracer, convert: Callable[[Any], Any]) -> Any:
    """A Python number.

    Where the function has a source, it runs again from there, and the number stays on the tape. Else the number is
    recognised by its identity when it comes back to the tape. One that the traced function returns at once needs no
    guard; any other one may decide a branch, so it is one.
    """
    variable = tracer._current()
    trace = tracer._trace
    number = convert(trace.values[variable])
    user = caller(3)
    if trace.is_constant(variable) or is_written_out(user, trace.outlets):
        return number
    returned = _is_returned(sys._getframe(2))
    if not returned:
        trace.restart(user)
    trace.decide(variable, convert.__name__, number)
    return converted(trace, variable, number, returned=returned)


def _is_returned(frame: FrameType) -> bool:
    """Whether the running call stands in the traced function itself, and seems to be what that returns."""
    if frame.f_back is None or frame.f_back.f_code.co_filename != ENTRY:
        return False
    step = running(frame)
    if not is_call(step):
        return False
    following = consumer(frame.f_code, step.offset)
    if following is not None and following.opname in ("BUILD_TUPLE", "BUILD_LIST"):
        following = consumer(frame.f_code, following.offset)
    return following is not None and following.opname == "RETURN_VALUE"


def to_hash(tracer: Tracer) -> int:
    """Hash of a scalar's value, as a guard; arrays have none.

    By its hash a cache may find what was computed before, without the derivative.
    """
    variable, trace, user = tracer._current(), tracer._trace, caller(3)
    value = trace.values[variable]
    if isinstance(value, np.ndarray):
        raise TypeError("unhashable type: 'numpy.ndarray'")
    if isinstance(callee(sys._getframe(2)), functools._lru_cache_wrapper):
        raise trace.refuse(
            "functools.cache would keep a traced value, or give a plain number that was computed before.",
            "Leave the cache out, or call the function by its attribute __wrapped__.",
        )
    trace.decide(variable, "value", value)
    if tracer.dtype.kind not in "fc" or trace.is_constant(variable):
        return hash(value)
    trace.restart(user)
    number = hash(shifted(trace, value, variable) if trace.shift else value)
    note(trace, variable, number)
    return number


def to_array(tracer: Tracer, dtype: Any) -> Any:
    """A plain array, for a constant only; anything else would lose its derivative."""
    trace = tracer._trace
    trace.check(tracer._variable)
    variable = tracer._current()
    if not trace.is_constant(variable) and tracer.dtype.kind in "iub":
        if not tracer.ndim:
            # As in a[[0, i]]: whole numbers have no derivative, and int() would be a guard too.
            trace.decide(variable, "int", int(trace.values[variable]))
            return np.array(trace.values[variable], dtype=dtype)
        trace.is_too_narrow = True
        raise trace.refuse(
            "a plain array meets an index, or another array of whole numbers or truths, that is traced.",
            "Write np.asarray(a)[i] in the place of a[i], inside of the function, which records it; or pass "
            "yota.interpreted(f).",
        )
    if not trace.is_constant(variable):
        found = received(sys._getframe(1))
        place = f" in {found.name}" if found else ""
        raise trace.refuse(
            f"a traced value is being turned into a plain array{place}, which would lose its derivative.",
            (_LISTED if not tracer.ndim else "")
            + "Use NumPy's functions, write into arrays made inside the function by np.zeros and the like, or give the "
            f"function that needs a plain array a rule.{f' {found.advice()}' if found else ''}",
        )
    value = np.array(trace.values[variable], dtype=dtype)
    value.flags.writeable = False
    return value
