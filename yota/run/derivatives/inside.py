"""Recording a function to be differentiated: with all that has recorded forms, and inside of a running trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yota.tracing.loops  # noqa: F401  (it registers recorded forms)
from yota.ir.inputs import Leaf
from yota.ir.tape import Tape
from yota.run.arguments import Arguments, sort_arguments
from yota.tracing.current import current
from yota.tracing.implementations import when_loaded
from yota.tracing.record import record
from yota.tracing.replay import inline
from yota.tracing.trace import Trace
from yota.tracing.tracer import Tracer

__all__ = ["Inside", "inside", "record"]


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A call inside a trace.

    plain: the arguments with plain values.
    """

    trace: Trace
    function: Callable[..., Any]
    arguments: Arguments
    plain: Arguments

    def inline(self, tape: Tape, outer: Mapping[int, Any]) -> list[Any]:
        """Record the ops of ``tape`` on the outer trace, whose values it captured are ``outer``; return its outputs."""
        given = {entry.variable: leaf.value for entry, leaf in zip(tape.inputs, self.arguments.leaves, strict=False)}
        return inline(tape, self.trace, {**given, **outer})


@when_loaded("scipy")
def _solvers() -> None:
    import yota.solvers  # noqa: F401  (its files register what they record)


def inside(function: Callable[..., Any], args: tuple[Any, ...]) -> Inside:
    """A call of ``function`` in the running trace of this thread."""
    trace = current()
    assert trace is not None
    arguments = sort_arguments(function, args)
    return Inside(trace, function, arguments, replace(arguments, leaves=tuple(map(_plain, arguments.leaves))))


def _plain(leaf: Leaf) -> Leaf:
    """A leaf with its plain value."""
    return replace(leaf, value=leaf.value._value()) if type(leaf.value) is Tracer else leaf
