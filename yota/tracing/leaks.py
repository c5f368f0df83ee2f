"""Python numbers that traced values turned into, recognised by identity when they come back to the tape."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from yota.errors import TracingError
from yota.ir.location import where
from yota.ir.tape import Guard
from yota.tracing.location import here, library_function

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["Leak", "leak", "refusal"]

_PERTURBATION = 2.0**-17


class Leak:
    """A Python number that a traced value turned into; it is kept so that its identity stays unique."""

    __slots__ = ("guard", "library", "location", "number", "variable")

    def __init__(self, number: Any, variable: int, guard: Guard | None) -> None:
        self.number, self.variable, self.guard = number, variable, guard
        self.location, self.library = here(), library_function(sys._getframe(1))


def leak(trace: Trace, variable: int, number: Any, *, returned: bool) -> Any:
    """A Python number that stands for ``variable`` off the tape, to be recognised when it comes back.

    ``returned`` says that the function itself seems to return it at once: if it does, no guard is needed.
    """
    # The product is a new object even for a factor of one, so that its identity is its own. The perturbation moves
    # zeros as well, or a root finder would hide where its result came from.
    number = number + (abs(number) + 1.0) * _PERTURBATION if trace.perturbed else number * 1.0
    trace.leaks[id(number)] = Leak(number, variable, trace.builder.guards[-1] if returned else None)
    return number


def refusal(known: Leak) -> TracingError:
    """The error for a number that went into the computation unseen."""
    kind = type(known.number).__name__
    place = f" in {known.library}" if known.library else ""
    cure = f"Leave {kind}() out, or pass yota.interpreted(f)."
    if known.library:
        cure = "Write what that does with NumPy's functions, or give a function that calls it a rule."
    return TracingError(
        f"{where(known.location)}{kind}() takes a traced value off the tape{place}, and "
        f"what is computed from it would lose its derivative. {cure}"
    )
