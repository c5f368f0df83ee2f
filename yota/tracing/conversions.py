"""How a traced value turns into plain Python or NumPy: by a guard, by identity, or by a refusal."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import TracingError
from yota.ir.location import Location, Span, where
from yota.ir.tape import Guard
from yota.rules.language.model import Literal
from yota.tracing.bytecode import callee, consumer, is_call, running
from yota.tracing.library_calls import library_call
from yota.tracing.source_lines import ENTRY, Position, caller, here, is_deep_file, is_rewritten, location_of
from yota.tracing.writers import is_written_out

if TYPE_CHECKING:
    from yota.tracing.trace import Trace
    from yota.tracing.tracer import Tracer


SHIFTS = (2.0**-17, -(2.0**-17), 2.0**-8, -(2.0**-8))
"""By how much of their size numbers that leave the tape come out off, in runs that show whether that matters."""


_GOLDEN = 0.6180339887498949
"""Its multiples are spread evenly between whole numbers."""


class Interpret(BaseException):
    """Ends a run, for another one from the source. The user's code must not catch it.

    deep: whether the source of a library is what shows more.
    """

    def __init__(self, positions: Sequence[Position] = (), *, begun: bool = True, deep: bool = False) -> None:
        super().__init__()
        self.positions, self.begun, self.deep = positions, begun, deep


class LongLoop(Interpret):
    """Ops have repeated for long: the run ends, for another one from the source, which may have a loop for them."""


class FirstRun:
    """How far a first run came; until the second is there, what it does outside of itself has been done before.

    blocked: whether the second run ended before it did something once more.
    over: whether the second run is known to be past the place where the first one ended.
    own: by identity, what the second run has made itself.
    """

    skips_output = True
    """Whether what only prints or logs is left out, for it was done."""
    may_draw = True
    """Whether random numbers may be drawn."""
    selects = False
    """Whether decisions by traced values become selections."""

    def __init__(self, trace: Trace, positions: Sequence[Position]) -> None:
        self._ops = [op.primitive for op in trace.builder.ops]
        self._positions = positions
        self.blocked = self.over = self.skipped = False
        self.own: dict[int, Any] = {}

    def is_over(self, trace: Trace) -> bool:
        """Whether ``trace``, of the second run, has recorded all that the first one had, and more."""
        self.over = self.over or (len(trace.builder.ops) > len(self._ops) and self._agrees(trace))
        return self.over

    def arrives(self, trace: Trace) -> bool:
        """Whether the second run is where the first one ended, about to do there what that could not."""
        here = caller()
        if here is None or not is_rewritten(here) or not self._agrees(trace):
            return False
        location = location_of(here)
        columns = (location.column, location.end_column) if isinstance(location, Span) else None
        self.over = any(
            (location.filename, location.line) == (name, line)
            and (begin is None or end is None or columns is None or columns == (begin + 1, end + 1))
            for name, line, begin, end in self._positions
        )
        return self.over

    def ended_in(self, filename: str, lines: Sequence[int]) -> bool:
        """Whether the first run ended within these lines."""
        first, last = lines
        return any(name == filename and first <= line <= last for name, line, *_ in self._positions)

    def _agrees(self, trace: Trace) -> bool:
        ops = trace.builder.ops
        return len(ops) >= len(self._ops) and all(
            op.primitive is known for op, known in zip(ops, self._ops, strict=False)
        )

    def block(self, trace: Trace) -> TracingError:
        """The error with which the second run ends, before it does something once more."""
        name, self.blocked = trace.builder.name, True
        return trace.refuse(
            "this was done before something came that can only be recorded from the source, and is not done again.",
            f"Pass yota.interpreted({name}), which runs {name} from its source at once.",
        )


class Conversion:
    """A Python number or text that a traced value turned into; it is kept so that its identity stays unique."""

    __slots__ = ("guard", "library", "location", "made", "returned", "variable")

    def __init__(self, made: Any, variable: int) -> None:
        self.made, self.variable = made, variable
        self.guard: Guard | None = None
        """The guard that is not needed if the function only returns the number."""
        self.returned = False
        self.location: Location | None = here()
        self.library = library_call(sys._getframe(1), parameters=False)


def converted(trace: Trace, variable: int, number: Any, *, returned: bool) -> Any:
    """A Python number for ``variable``, recognised when it comes back. One that is just ``returned`` needs no guard."""
    # The product is a new object even for a factor of one, so that its identity is its own.
    number = shifted(trace, number, variable) if trace.shift else number * 1.0
    found = trace.conversions[id(number)] = Conversion(number, variable)
    if returned:
        found.guard = trace.builder.guards[-1]
    return number


def note(trace: Trace, variable: int, made: Any) -> None:
    """Note that ``made``, a text or a hash of ``variable``, left the tape and is not recognised if it comes back."""
    trace.conversions[-len(trace.conversions) - 1] = Conversion(made, variable)


def shifted(trace: Trace, value: Any, variable: int) -> Any:
    """``value``, also 0, off by the trace's shift; each variable has a part of its own, so that quotients move too."""
    return value + (abs(value) + 1.0) * trace.shift * (1.0 + _GOLDEN * variable % 1.0)


def left(trace: Trace) -> Conversion | None:
    """What left the tape, and may have come back unseen."""
    return next((each for each in trace.conversions.values() if not each.returned), None)


def refusal(known: Conversion, *, readable: bool) -> TracingError:
    """The error for a number that went into the computation unseen."""
    kind = known.made.__class__.__name__
    place = f" in {known.library.name}" if known.library else ""
    cure = (
        "Use the value itself, and write it into an array that the function makes, as by a = a.copy(). "
        "Or put this into a function and give that a rule by yota.diffrule."
    )
    if known.library:
        cure = f"Write what that does with NumPy's functions. {known.library.advice()}"
    elif not readable:
        cure = f"Leave {kind}() out, or define the function in a file: yota then follows it in its source."
    what = "makes a text of a traced value" if kind == "str" else "takes a traced value off the tape"
    return TracingError(
        f"{where(known.location)}{kind}() {what}{place}, and what is computed from it would lose its derivative. {cure}"
    )


_LISTED = "A list of numbers becomes an array by np.array: np.sin(np.array(x)) in the place of np.sin(x). "
"""What helps where a function of NumPy's takes a list apart by itself."""


def to_int(tracer: Tracer, convert: Callable[[Any], int]) -> int:
    """Its integer part, as a guard: the derivative of an integer is zero wherever it exists."""
    variable, trace = tracer._current(), tracer._trace
    value = trace.values[variable]
    number = convert(value)
    if is_written_out(caller(3), trace.outlets):
        return number
    trace.decide(variable, "int", number)
    may_move = tracer.dtype.kind == "f" and not trace.is_constant(variable) and not _is_flat(trace, variable)
    if may_move and np.spacing(np.abs(value)) >= 1:
        # So large a number has no fraction: nothing is cut off, and the integer is the number itself.
        number = convert(shifted(trace, value, variable) if trace.shift else value)
        note(trace, variable, number)
    return number


def _is_flat(trace: Trace, variable: int) -> bool:
    """Whether all partials of what computed ``variable`` are zero, as those of ``np.ceil``."""
    op = trace.builder.definition(variable)
    if op is None or not op.primitive.elementwise:
        return False
    partials = trace.registry.rules(op.primitive.name)[0].partials.values()
    return bool(partials) and all(each == Literal(0) for each in partials)


def to_number(tracer: Tracer, convert: Callable[[Any], Any]) -> Any:
    """A Python number, recognised when it comes back, and a guard; one from the source stays on the tape."""
    variable = tracer._current()
    trace = tracer._trace
    number = convert(trace.values[variable])
    user = caller(3)
    if trace.is_constant(variable) or is_written_out(user, trace.outlets):
        return number
    asking = sys._getframe(2)
    returned = _is_returned(asking)
    if not returned:
        trace.restart(user, deep=is_deep_file(asking.f_code.co_filename))
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
    """Hash of a scalar as a guard: by it a cache may find what was computed before, without the derivative."""
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
        found = library_call(sys._getframe(1))
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
