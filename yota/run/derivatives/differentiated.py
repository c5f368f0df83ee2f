"""A function with compiled code for each combination of argument types."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import yota.tape_methods  # noqa: F401  (it attaches methods to tapes)
from yota.errors import ArgumentError
from yota.ir.callables import Derived, name_of
from yota.rules.registry import registry
from yota.run.arguments import Arguments, function_of, key_of, positional, sort_arguments
from yota.run.compiled import CHANGED, Journal
from yota.run.derivatives.prepared import Prepared
from yota.run.gradient_layout import Layout, Wrt, checked, layout_of
from yota.run.machine.cache import Table
from yota.run.options import Dynamic, check_dynamic
from yota.run.progress import stage
from yota.run.specialise import Gradient, Target, has_code, rolled
from yota.tracing.captured.captured import Captured

# Code that is read from the private cache runs without tracing and differentiating, so it does not load them.
if TYPE_CHECKING:
    from yota.ir.tape import Tape
    from yota.tracing.record import Recording
    from yota.tracing.results import ResultForm
    from yota.transform.rolling.periods import Worth

Forms: TypeAlias = "Sequence[ResultForm]"


def with_receiver(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The plain function of a callable, and the arguments that its bound form supplies.

    The receiver of a method is an ordinary argument, so that each call reads its fields.
    """
    if isinstance(function, types.MethodType):
        return function.__func__, (function.__self__,)
    if isinstance(function, functools.partial) and not function.keywords:
        inner, hidden = with_receiver(function.func)
        return inner, (*hidden, *function.args)
    plain = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, functools.partial, type, Derived)
    if isinstance(function, plain) or not isinstance(vars(type(function)).get("__call__"), types.FunctionType):
        return function, ()
    return type(function).__call__, (function,)


class Differentiated:
    """``function`` with compiled value-and-gradient code for each combination of argument types.

    wrt: arguments to differentiate by: a position, a name, a tuple of them, or None for every argument that has a
        derivative.
    dynamic: whether to trace again when a branch changes; see `yota.run.options`.
    has_aux: whether the function returns ``(value, aux)``.
    options: further options that the code depends on.
    """

    options: tuple[Any, ...] = ()
    values = 1
    """Number of outputs that are values and not derivatives."""
    merges = True
    """Whether recordings that differ in constants share a tape."""

    def __init__(
        self, function: Callable[..., Any], wrt: Wrt, target: Target, *, dynamic: Dynamic, has_aux: bool = False
    ) -> None:
        self.given = function_of(function)
        self.function, self.hidden = with_receiver(self.given)
        self.wrt = checked(wrt)
        self.target = target
        check_dynamic(dynamic)
        self.dynamic, self.has_aux = dynamic, has_aux
        self.captured = Captured(self.function, self.given)
        self.table = Table()
        self.journal = Journal(f"grad of {name_of(self.function)}", target.name)

    def take_over(self, other: Differentiated) -> None:
        """Use the compiled code of another function with the same code and the same captured data."""
        self.captured.adopt(other.captured)
        self.journal = other.journal
        for key, prepared in list(other.table.items()):
            self.table.insert(key, prepared.owned_by(self))

    def bound(self, given: Callable[..., Any]) -> Differentiated:
        """The same form for another callable of the function, with other bound arguments of the same types."""
        _, hidden = with_receiver(given)
        if all(one is other for one, other in zip(hidden, self.hidden, strict=True)):
            return self
        found = copy.copy(self)
        found.given, found.hidden = given, hidden
        return found

    def forget(self, why: str = CHANGED) -> None:
        """Drop all compiled code, and take the present captured state as the reference."""
        # The order matters: another thread must not find outdated code together with the new reference state.
        self.captured.changes += 1
        self.table.clear()
        function, hidden = with_receiver(self.given)
        if function is self.function:
            self.captured.settle()
        else:
            self.function, self.hidden, self.captured = function, hidden, Captured(function, self.given)
        self.journal.parts.clear()
        self.journal.forget(why)

    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Prepared, Callable[..., Any], tuple[Any, ...], list[Any]]:
        """The compiled form for a call, the call with its arguments by position, and their leaves."""
        # The order matters: `forget` empties the table before it changes the reference state.
        unchanged = self.captured.state.holds()
        key, function, positions, leaves = self._called(args, kwargs)
        prepared = self.table.get(key) if unchanged else None
        if prepared is None:
            # Code that two threads compile at once could rely on captured data of different moments.
            with self.table.lock:
                if self.captured.changed():
                    self.forget()
                key, function, positions, leaves = self._called(args, kwargs)
                prepared = self.table.get(key)
                if prepared is None:
                    prepared = self.compiled(function, positions)
                    self.table.insert(key, prepared)
        return prepared, function, positions, leaves

    def _called(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, Callable[..., Any], tuple[Any, ...], list[Any]]:
        """The key of the argument types, the call with its arguments by position, and their leaves."""
        function, args = self.positional(args, kwargs)
        leaves: list[Any] = []
        try:
            key = tuple([key_of(argument, leaves) for argument in args])
        except RecursionError:
            sort_arguments(function, args)  # raises an error that names the argument
            raise
        if function is not self.function:
            key = (function.names, *key)  # type: ignore[attr-defined]
        return key, function, args, leaves

    def positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function and all arguments of a call by position."""
        return positional(self.function, (*self.hidden, *args), kwargs)

    def named(self, arguments: Arguments) -> Arguments:
        """The arguments by the names that listings and generated code have."""
        return arguments

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for argument types like those of ``args``."""
        return Prepared(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the result on the tape of a running trace."""
        from yota.run.derivatives.inside import inside

        call = inside(*self.positional(args, kwargs))
        layout = layout_of(call.function, self.wrt, len(self.hidden), call.plain)
        forms: list[ResultForm] = []
        how: dict[str, Any] = {"registry": call.trace.registry, "rolls": call.trace.rolls}
        recorded = rolled(self.recorded(call.function, call.plain, layout, forms, **how))
        gradient = self.derived(recorded, call.plain, layout, forms)
        return self.result(gradient, layout, call.inline(gradient.tape, recorded.outer))

    # -- the transformation, which each kind of derivative replaces -----------------------------------------------

    def gradient(self, function: Callable[..., Any], arguments: Arguments, layout: Layout, target: Target) -> Gradient:
        """The tape to compile; a strict ``target`` traces the function again, call by call, for the value."""
        forms: list[ResultForm] = []

        def recorded(**how: bool) -> Recording:
            generators = self.captured.generators(arguments.values)
            how = {"live": True, "generators": generators, "statics": arguments.statics, **how}  # type: ignore[dict-item]
            found = self.recorded(function, arguments, layout, forms, registry=registry(), **{"rolls": True, **how})
            return rolled(found, self.worth(target))

        first = recorded()
        found = self.derived(first, arguments, layout, forms, target)
        if first.rolls and target.name == "cuda" and not has_code(found.tape, target):
            first = recorded(rolls=False)
            found = self.derived(first, arguments, layout, forms, target)
        if target.strict and self.values:
            return found.valued(recorded(exact=True))
        mergeable = self.merges and not (found.aux or found.rows or found.relied)
        return replace(found, recorded=first) if mergeable else found

    def worth(self, target: Target) -> Worth | None:
        """Lengths from which ops that repeat become a loop, if they are not the usual ones."""
        from yota.transform.rolling import roll

        compiled = target.name == "c" and target.effort == "quick" and not target.strict
        return roll.COMPILED if compiled else None

    def recorded(
        self, function: Callable[..., Any], arguments: Arguments, layout: Layout, forms: list[ResultForm], **how: Any
    ) -> Recording:
        """A recording of the function; ``forms`` receives the form of its auxiliary result."""
        from yota.run.derivatives.inside import record

        function = _with_aux(function, forms) if self.has_aux else function
        return record(function, arguments.leaves, arguments.rebuild, **how)

    def derived(
        self, recorded: Recording, arguments: Arguments, layout: Layout, forms: Forms = (), target: Target | None = None
    ) -> Gradient:
        """A recorded tape with its derivatives, of arrays also if they are zero; the target is None inside a trace."""
        from yota.transform.reverse.backward import gradient_tape, zeros_like

        stage("differentiating")
        tape = recorded.tape
        variables = [tape.inputs[leaf].variable for leaf in layout.wanted]
        found = gradient_tape(replace(tape, outputs=tape.outputs[:1]) if forms else tape, variables, registry())
        builder = found.tape.builder()
        outputs, leaves = list(tape.outputs), []
        for leaf, variable, adjoint in zip(layout.wanted, variables, found.variables, strict=True):
            if adjoint is None and arguments.leaves[leaf].path:
                continue
            outputs.append(zeros_like(builder, variable) if adjoint is None else adjoint)
            leaves.append(leaf)
        return Gradient.of(recorded, builder.finish(outputs), leaves, forms)

    def shortened(self, gradient: Gradient, target: Target, first: Target) -> Tape:
        """The tape to compile, after the passes of its target; ``first`` is that of `derived`."""
        from yota.run.scalar_code import short_gradient

        return short_gradient(gradient.tape, gradient.leaves, registry(), target, gradient.values)

    def result(self, gradient: Gradient, layout: Layout, outputs: Sequence[Any]) -> Any:
        """The caller's result from the outputs of the tape: value and gradients."""
        values = gradient.values
        value = outputs[0] if gradient.aux is None else (outputs[0], gradient.aux.filled(outputs[1:values]))
        return value, layout.shaped(gradient.leaves, outputs[values:])


def _with_aux(function: Callable[..., Any], forms: list[ResultForm]) -> Callable[..., Any]:
    """``function``, which returns (value, aux), with a flat result; it appends the form of ``aux``."""
    from yota.tracing.results import taken_apart

    name = name_of(function)

    def flat(*values: Any) -> Any:
        result = function(*values)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            what = f"{len(result)} values" if isinstance(result, (tuple, list)) else f"a {result.__class__.__name__}"
            raise ArgumentError(f"has_aux=True is for a function that returns (value, aux), and {name} returned {what}")
        found = [result[0]]
        forms.append(taken_apart(name, result[1], found, (bool, int)))
        return tuple(found)

    flat.__name__ = name
    return flat
