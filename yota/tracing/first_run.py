"""How far a first recording of a function came, for a second one that must not do again what that did."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from yota.errors import TracingError
from yota.ir.location import Span
from yota.tracing.source_lines import Place, caller

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


class FirstRun:
    """How far a first run came; until the second is there, what it does outside of itself has been done before.

    places: where in the user's code that ended, and what called that.
    blocked: whether the second run ended before it did something once more.
    over: whether the second run is known to be past that place.
    own: by identity, what the second run has made itself.
    """

    skips_output = True
    """Whether what only prints or logs is left out, for it was done."""

    def __init__(self, trace: Trace, places: Sequence[Place]) -> None:
        self._ops = [op.primitive for op in trace.builder.ops]
        self._places = places
        self.blocked = self.over = False
        self.own: dict[int, Any] = {}

    def is_over(self, trace: Trace) -> bool:
        """Whether ``trace``, of the second run, has recorded all that the first one had, and more."""
        self.over = self.over or (len(trace.builder.ops) > len(self._ops) and self._agrees(trace))
        return self.over

    def arrives(self, trace: Trace) -> bool:
        """Whether the second run is where the first one ended, about to do there what that could not."""
        here = caller()
        if here is None or isinstance(here, FrameType) or not self._agrees(trace):
            return False
        location = here.location()
        columns = (location.column, location.end_column) if isinstance(location, Span) else (None, None)
        self.over = any(
            (location.filename, location.line) == (name, line)
            and (begin is None or end is None or columns == (begin + 1, end + 1))
            for name, line, begin, end in self._places
        )
        return self.over

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
