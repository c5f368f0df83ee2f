"""Python numbers and texts that traced values turned into: recognised when they come back, or shown not to matter."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from yota.errors import TracingError
from yota.ir.location import Location, where
from yota.ir.tape import Guard
from yota.tracing.location import Place, here
from yota.tracing.received import received

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

SHIFTS = (2.0**-17, -(2.0**-17), 2.0**-8, -(2.0**-8))
"""By how much of their size numbers that leave the tape come out off, in runs that show whether that matters."""


_GOLDEN = 0.6180339887498949
"""Its multiples are spread evenly between whole numbers."""


class Interpret(BaseException):
    """A value left the tape where the source of the function tells more: the run ends, for another one from there.

    The user's code must not catch it.

    places: where in the user's code that is, and what called it.
    """

    def __init__(self, places: Sequence[Place] = ()) -> None:
        super().__init__()
        self.places = places


class Conversion:
    """A Python number or text that a traced value turned into; it is kept so that its identity stays unique."""

    __slots__ = ("guard", "library", "location", "made", "returned", "variable")

    def __init__(self, made: Any, variable: int) -> None:
        self.made, self.variable = made, variable
        self.guard: Guard | None = None
        """The guard that is not needed if the function only returns the number."""
        self.returned = False
        self.location: Location | None = here()
        self.library = received(sys._getframe(1), parameters=False)


def converted(trace: Trace, variable: int, number: Any, *, returned: bool) -> Any:
    """A Python number that stands for ``variable`` off the tape, to be recognised when it comes back.

    ``returned`` says that the function itself seems to return it at once: if it does, no guard is needed.
    """
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
    """``value``, off by the trace's shift; zeros as well, or a root finder would hide where its result came from.

    Each variable has a part of its own, or numbers that are equal would stay so, and their quotient one.
    """
    return value + (abs(value) + 1.0) * trace.shift * (1.0 + _GOLDEN * variable % 1.0)


def left(trace: Trace) -> Conversion | None:
    """What left the tape, and may have come back unseen."""
    return next((each for each in trace.conversions.values() if not each.returned), None)


def refusal(known: Conversion, *, readable: bool) -> TracingError:
    """The error for a number that went into the computation unseen.

    ``readable`` says that the function ran from its source.
    """
    kind = known.made.__class__.__name__
    place = f" in {known.library.name}" if known.library else ""
    cure = "Use the value itself, or put this into a function and give that a rule by yota.diffrule."
    if known.library:
        cure = f"Write what that does with NumPy's functions. {known.library.advice()}"
    elif not readable:
        cure = f"Leave {kind}() out, or define the function in a file: yota then follows it in its source."
    what = "makes a text of a traced value" if kind == "str" else "takes a traced value off the tape"
    return TracingError(
        f"{where(known.location)}{kind}() {what}{place}, and what is computed from it would lose its derivative. {cure}"
    )
