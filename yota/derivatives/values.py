"""A function compiled for its value alone, for each kind of arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from yota.compilation.arguments import Arguments
from yota.compilation.scalar_code import short_value
from yota.compilation.specialise import Gradient, Specialisation, Target
from yota.derivatives.calling import Derivative
from yota.derivatives.differentiated import Differentiated, Prepared
from yota.ir.tape import Tape
from yota.rules.registry import registry
from yota.runtime.dispatch import quick
from yota.tracing.record import record
from yota.tracing.results import ResultForm, parted

__all__ = ["Value", "Values"]


class Values(Differentiated):
    """``function`` with compiled code for its value, for each kind of arguments met so far."""

    def __init__(self, function: Callable[..., Any], target: Target) -> None:
        super().__init__(function, (), target, dynamic="auto")

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for arguments like ``args``."""
        return _Prepared(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value inside of a running trace, recorded onto it."""
        return self.given(*args, **kwargs)


class _Prepared(Prepared):
    """The compiled value for one kind of arguments."""

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape to compile."""
        forms: list[ResultForm] = []
        recorded = record(
            parted(function, forms),
            arguments.leaves,
            arguments.rebuild,
            registry=registry(),
            live=True,
            exact=self.owner.target.strict,
            around=self.owner.captured.surroundings(arguments.values),
            statics=arguments.statics,
        )
        found = Gradient.of(recorded, recorded.tape, ())
        # A number or an array is its own form, and is kept for other processes.
        return found if forms[-1].parts is None else replace(found, aux=forms[-1])

    def compiled_tape(self, gradient: Gradient, target: Target) -> Tape:
        """What is compiled."""
        return short_value(gradient.tape, target)

    def result(self, chosen: Specialisation, outputs: Sequence[Any]) -> Any:
        """What the caller gets."""
        form = chosen.gradient.aux
        return outputs[0] if form is None else form.filled(outputs)


class Value(Derivative):
    """The compiled value of a function.

    Parameters
    ----------
    function
        The function.
    target
        What to generate code for.
    recipe
        See `Derived`.
    """

    def __init__(self, function: Callable[..., Any], target: Target, recipe: Any) -> None:
        super().__init__(Values(function, target), recipe, "value")
        self.title = self.journal.name = f"value of {self.__name__}"
        self.front = quick(self)
