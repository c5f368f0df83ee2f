"""Functions compiled for their value alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from yota.compilation.arguments import Arguments
from yota.compilation.branches import Dynamic
from yota.compilation.scalar_code import short_value
from yota.compilation.specialise import Gradient, Specialisation, Target, rolled
from yota.derivatives.calling import Derivative
from yota.derivatives.differentiated import Differentiated
from yota.derivatives.prepared import Prepared
from yota.ir.tape import Tape
from yota.rules.registry import registry
from yota.tracing.record import record
from yota.tracing.results import ResultForm, parted

__all__ = ["Value", "Values"]


class Values(Differentiated):
    """``function`` with compiled code for its value, for each combination of argument types."""

    def __init__(self, function: Callable[..., Any], target: Target, *, dynamic: Dynamic = "auto") -> None:
        super().__init__(function, (), target, dynamic=dynamic)

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for argument types like those of ``args``."""
        return _Prepared(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the value on the tape of a running trace."""
        return self.given(*args, **kwargs)

    def recorded(self, function: Callable[..., Any], arguments: Arguments, target: Target) -> Gradient:
        """The tape of the value, with its form."""
        forms: list[ResultForm] = []
        recorded = rolled(
            record(
                parted(function, forms),
                arguments.leaves,
                arguments.rebuild,
                registry=registry(),
                live=True,
                exact=target.strict,
                around=self.captured.surroundings(arguments.values),
                statics=arguments.statics,
            ),
            target,
        )
        return replace(Gradient.of(recorded, recorded.tape, ()), aux=forms[-1])

    def shortened(self, tape: Tape, target: Target) -> Tape:
        """The tape to compile."""
        return short_value(tape, target)


class _Prepared(Prepared):
    """The compiled value for one combination of argument types."""

    owner: Values

    def gradient(self, function: Callable[..., Any], arguments: Arguments) -> Gradient:
        """The tape to compile."""
        return self.owner.recorded(function, arguments, self.target)

    def compiled_tape(self, gradient: Gradient, target: Target) -> Tape:
        """The tape to compile."""
        return self.owner.shortened(gradient.tape, target)

    def result(self, chosen: Specialisation, outputs: Sequence[Any]) -> Any:
        """The caller's result."""
        return filled(chosen.gradient, outputs)


def filled(gradient: Gradient, outputs: Sequence[Any]) -> Any:
    """The results of a function in the form in which it returns them."""
    assert gradient.aux is not None
    return gradient.aux.filled(outputs)


class Value(Derivative):
    """The compiled value of a function.

    Parameters
    ----------
    function
        The function.
    target
        Target of the generated code.
    recipe
        See `Derived`.
    """

    def __init__(self, function: Callable[..., Any], target: Target, recipe: Any) -> None:
        super().__init__(Values(function, target), recipe, "value", direct=True)
        self.title = self.journal.name = f"value of {self.__name__}"
