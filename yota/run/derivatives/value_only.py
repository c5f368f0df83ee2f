"""Functions compiled for their value alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yota.ir.tape import Tape
from yota.run.arguments import Arguments
from yota.run.derivatives.calling import Derivative
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.gradient_layout import Layout
from yota.run.options import Dynamic
from yota.run.scalar_code import short_value
from yota.run.specialise import Gradient, Target
from yota.tracing.record import Recording
from yota.tracing.results import ResultForm, parted


class Values(Differentiated):
    """``function`` with compiled code for its value, for each combination of argument types.

    uncopied: whether results that are arguments are these themselves.
    """

    values = 0

    def __init__(
        self, function: Callable[..., Any], target: Target, *, dynamic: Dynamic = "auto", uncopied: bool = False
    ) -> None:
        super().__init__(function, (), target, dynamic=dynamic)
        self.uncopied, self.options = uncopied, (uncopied,)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the value on the tape of a running trace."""
        return self.given(*args, **kwargs)

    def recorded(
        self, function: Callable[..., Any], arguments: Arguments, layout: Layout, forms: list[ResultForm], **how: Any
    ) -> Recording:
        """A recording of all parts of the value."""
        exact = self.target.strict
        return super().recorded(parted(function, forms), arguments, layout, forms, exact=exact, **how)

    def gradient(self, function: Callable[..., Any], arguments: Arguments, layout: Layout, target: Target) -> Gradient:
        """The tape to compile."""
        found = super().gradient(function, arguments, layout, target)
        return found.without_given(len(arguments.leaves)) if self.uncopied else found

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """The tape of the value."""
        return Gradient.of(recorded, recorded.tape, (), forms)

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile."""
        return short_value(gradient.tape, target)

    def result(self, gradient: Gradient, layout: Layout, outputs: Sequence[Any]) -> Any:
        """The value in the form in which the function returns it."""
        assert gradient.aux is not None
        return gradient.aux.filled(outputs)


class Value(Derivative):
    """The compiled value of a function; a result that is an argument is that argument itself."""

    def __init__(self, function: Callable[..., Any], target: Target, recipe: Any) -> None:
        super().__init__(Values(function, target, uncopied=True), recipe, "value", direct=True)
        self.title = self.journal.name = f"value of {self.__name__}"
