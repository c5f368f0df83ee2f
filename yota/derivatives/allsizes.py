"""Value and gradient of a function for all sizes of its arguments, compiled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from yota.codegen.targets.base import Source
from yota.compilation.arguments import Arguments, key_of, positional, sort_arguments
from yota.compilation.branches import Dynamic
from yota.compilation.collection import uncollected
from yota.compilation.compiled import CHANGED, CLEARED, Journal
from yota.compilation.kept import place_of
from yota.compilation.layout import Wrt, layout_of
from yota.compilation.specialise import Gradient, Target, trace_gradient
from yota.derivatives.differentiated import Differentiated
from yota.errors import ArgumentError, StaleTapeError
from yota.generation.contents import collected
from yota.generation.plain import visible
from yota.generation.provenance import called
from yota.generation.ranks import axes
from yota.generation.request import Request
from yota.generation.subject import call_of
from yota.ir.callables import name_of
from yota.ir.location import where
from yota.ir.tape import Tape
from yota.rules.registry import registry
from yota.runtime.python import load
from yota.tracing.replay import ASYMMETRIC
from yota.tracing.state import current
from yota.watching.captured import Captured
from yota.watching.contents import Contents
from yota.watching.reach import bearers

__all__ = ["AllSizes", "check_options"]


class AllSizes:
    """Value and gradient for arguments of given specs, whatever the sizes that have names there.

    Parameters
    ----------
    function
        A plain NumPy function that returns a scalar.
    args
        Specs of its arguments, by name or in order; see `yota.generate`.
    wrt
        What to differentiate by; see `yota.value_and_grad`.
    strict
        Whether the value has NumPy's bits.

    Raises
    ------
    ArgumentError
        If the specs do not fit, or the function takes other steps when a size changes.
    """

    def __init__(self, function: Callable[..., Any], args: Any, wrt: Wrt, *, strict: bool) -> None:
        self.call = call_of(function, args)
        self.wrt, self.strict = wrt, strict
        self.inside = Differentiated(function, wrt, Target("numpy", strict), dynamic=False)
        self._captured = Captured(self.call.function)
        self.journal = Journal(f"value_and_grad of {name_of(self.call.function)}", "numpy")
        self._compile()

    def _compile(self) -> None:
        """Trace at several sizes, generalise, prove, and load the code."""
        # At some size, for what is the same at all of them.
        call = self.call.with_axes(axes(2))
        function, arguments = call.arguments(dict.fromkeys(call.dimensions(), 4))
        self._layout = layout_of(function, self.wrt, len(self.call.hidden), arguments)
        self._form = _form(arguments)
        self._count = len(arguments.leaves)
        self._plain = all(not leaf.path for leaf in arguments.leaves) and self._count == len(self._form)
        options = "all sizes", tuple(map(str, self.call.specs)), self.call.names, self.wrt, len(self.call.hidden)
        target, others = Target("numpy", self.strict), bearers(arguments.values)
        with uncollected(), self.journal.compiling(arguments, "numpy") as made:
            place = place_of(self.call.function, others, arguments, options, target, self.journal)
            known = place.load(arguments) if place else None
            if known:
                traced, source, how = known
                self._captured.absorb()
            else:
                traced, source = self._traced(function, arguments)
                how = ""
                if place:
                    place.save(traced, source)
            made(traced.tape, source.text, how)
        self._present = traced.leaves
        self._function = load(source)
        self._function.__globals__["_precondition"] = _Stale(traced.tape)
        self._contents = traced.contents

    def _traced(self, function: Callable[..., Any], arguments: Arguments) -> tuple[Gradient, Source]:
        """The tape at some size, and the source for all."""
        request = Request(
            self.call, "numpy", None, self.wrt, ("value", "gradient"), "", False, self.strict, False, ("yota",)
        )
        around = self._captured.surroundings(arguments.values)
        traced = trace_gradient(function, arguments, self._layout.wanted, registry(), around=around)
        text, *_ = collected(request)
        self._captured.take(traced.ran)
        self._captured.absorb()
        # The code reads nothing afresh: all that it was made from is in it.
        contents = Contents.of(traced.contents.pairs, [*self._captured.parts(), *traced.captured], ())
        source = Source(text, f"{called(request.wish)}_value_and_gradient")
        return replace(traced, contents=contents), source

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Value and gradient."""
        if current() is not None:
            return self.inside.traced(args, kwargs)
        if not self.journal.live or self._captured.changed() or self._contents.changed():
            self.journal.forget(CHANGED if self.journal.live else CLEARED)
            self._compile()
        leaves = args if self._plain and not kwargs and len(args) == self._count else self._leaves(args, kwargs)
        value, found = self._function(*leaves)
        parts = found if len(self._layout.wanted) > 1 else (found,)
        known = dict(zip(self._layout.wanted, parts, strict=True))
        return value, self._layout.shaped(self._present, [known[leaf] for leaf in self._present])

    def _leaves(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        function, values = positional(self.call.function, (*self.call.hidden, *args), kwargs)
        arguments = sort_arguments(function, values)
        found = _form(arguments)
        if found != self._form:
            wanted = ", ".join(f"{name}={spec}" for name, spec in zip(self.call.names, self.call.specs, strict=True))
            title = name_of(self.call.function)
            raise ArgumentError(
                f"{title} was compiled for args of the structure {visible(wanted)}; this call has another structure or "
                "other static values. Give the specs of what it is called with, or leave args= out"
            )
        return [leaf.value for leaf in arguments.leaves]


def _form(arguments: Arguments) -> tuple[Any, ...]:
    """Structure and static values of arguments, whatever their leaves."""
    zeros = [0.0] * len(arguments.leaves)
    return tuple(key_of(value, []) for value in arguments.rebuild(zeros))


class _Stale:
    """Makes the error of a guard that fails."""

    def __init__(self, tape: Tape) -> None:
        self.guards = tape.guards

    def __call__(self, number: int, found: object) -> StaleTapeError:
        guard = self.guards[number]
        what = (
            ASYMMETRIC
            if guard.kind == "hermitian"
            else f"this decision was {guard.expected!r} when the function was traced and is {found} now; code for all "
            "sizes goes one way only. Write it with np.where,"
        )
        fault = StaleTapeError(f"{where(guard.location)}{what} or leave args= out and pass dynamic=True")
        fault.decision = (number, found)
        return fault


def check_options(target: str | None, dynamic: Dynamic, has_aux: bool) -> None:
    """Refuse what code for all sizes cannot do.

    Raises
    ------
    ArgumentError
        If ``target`` is not NumPy, or ``dynamic`` or ``has_aux`` is wanted.
    """
    if target not in (None, "numpy", "auto"):
        raise ArgumentError(
            f"args= compiles for all sizes, which only target='numpy' can; leave args= out for {target!r}"
        )
    if has_aux:
        raise ArgumentError("has_aux=True is for functions that are compiled when they are called; leave args= out")
    if dynamic is True:
        raise ArgumentError("dynamic=True traces again where a branch goes another way, args= never does; choose one")
