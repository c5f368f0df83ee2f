"""Functions compiled for their value alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.run.arguments import Arguments
from yota.run.derivatives.calling import Derivative
from yota.run.derivatives.differentiated import Differentiated, Forms
from yota.run.derivatives.prepared import sole_ufunc
from yota.run.gradient_layout import Layout
from yota.run.options import Dynamic
from yota.run.scalar_code import short_value
from yota.run.specialise import Gradient, Target
from yota.tracing.record import Recording
from yota.tracing.results import ResultForm, parted


class Values(Differentiated):
    """``function`` with compiled code for its value, for each combination of argument types.

    plain: whether results that are arguments are these themselves, and results for Python numbers are Python numbers.
    """

    values = 0

    def __init__(
        self, function: Callable[..., Any], target: Target, *, dynamic: Dynamic = "auto", plain: bool = False
    ) -> None:
        super().__init__(function, (), target, dynamic=dynamic)
        self.plain, self.options = plain, (plain,)

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
        return found.without_given(len(arguments.leaves)) if self.plain else found

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """The tape of the value."""
        tape = _as_python_numbers(recorded.tape) if self.plain else recorded.tape
        return Gradient.of(recorded, tape, (), forms)

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile."""
        return short_value(gradient.tape, target)

    def result(self, gradient: Gradient, layout: Layout, outputs: Sequence[Any]) -> Any:
        """The value in the form in which the function returns it."""
        assert gradient.aux is not None
        return gradient.aux.filled(outputs)


class Value(Derivative):
    """The compiled value of a function, whose results are as plain as `Values` can make them."""

    def __init__(self, function: Callable[..., Any], target: Target, recipe: Any) -> None:
        super().__init__(Values(function, target, plain=True), recipe, "value", direct=True)
        self.title = self.journal.name = f"value of {self.__name__}"


def _as_python_numbers(tape: Tape) -> Tape:
    """``tape`` with Python floats as results where all inputs are Python numbers, and not a ufunc is called itself."""
    if sole_ufunc(tape) or not all(tape.types[each.variable].weak for each in tape.inputs):
        return tape
    builder = tape.builder()
    number = TensorType(np.dtype(np.float64), (), weak=True)

    def plain(output: int) -> int:
        if tape.types[output] != TensorType(number.dtype):
            return output
        return builder.emit(primitive("astype"), (output,), {"dtype": number.dtype}, number)

    return builder.finish([plain(output) for output in tape.outputs])
