"""A function with its derivative: finds or makes the compiled code for a call, and shapes the results."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.arguments import Arguments, key_of, names_of, positional, sort_arguments
from yota.captured import Captured
from yota.errors import ArgumentError, StaleTapeError
from yota.rules.registry import registry
from yota.runtime.cache import Table
from yota.specialise import Gradient, Specialisation, Target, compile_tape, differentiate, trace_gradient
from yota.tracing.record import record
from yota.tracing.replay import inline
from yota.tracing.state import current
from yota.tracing.tracer import Tracer

__all__ = ["Differentiated", "Prepared", "with_receiver"]

Wrt = int | str | tuple[int | str, ...] | None


def with_receiver(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A plain function, and the arguments that its bound form supplies.

    The receiver of a method is an argument like any other, so that its fields are read at each call.
    """
    if isinstance(function, types.MethodType):
        return function.__func__, (function.__self__,)
    if isinstance(function, functools.partial) and not function.keywords:
        inner, hidden = with_receiver(function.func)
        return inner, (*hidden, *function.args)
    plain = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, functools.partial, type)
    if isinstance(function, plain) or not isinstance(vars(type(function)).get("__call__"), types.FunctionType):
        return function, ()
    return type(function).__call__, (function,)


class Differentiated:
    """``function`` with compiled value-and-gradient code for each kind of arguments met so far.

    Parameters
    ----------
    function
        The user's function.
    wrt
        Which arguments to differentiate by: a position, a name, a tuple of them, or None for every argument
        that has a derivative.
    target
        What to generate.
    dynamic
        Whether to trace again when a branch goes another way.
    """

    def __init__(self, function: Callable[..., Any], wrt: Wrt, target: Target, *, dynamic: bool) -> None:
        if not callable(function):
            raise ArgumentError(f"the first argument must be a function, not a {type(function).__name__}")
        self.function, self.hidden = with_receiver(function)
        self.wrt = wrt
        self.target = target
        self.dynamic = dynamic
        self.captured = Captured(self.function)
        self.table = Table()

    # -- calls -------------------------------------------------------------------------------------------

    def adopt(self, function: Callable[..., Any], captured: Captured) -> None:
        """Stand for another function of the same code that captured the same."""
        self.function, self.captured = function, captured

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, Specialisation]:
        """Value, gradients and the specialisation that computed them."""
        prepared, function, args = self.prepare(args, kwargs)
        return prepared(function, args)

    def prepare(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Prepared, Callable[..., Any], tuple[Any, ...]]:
        """The compiled form for a call, and the call with its arguments by position."""
        function, args = positional(self.function, (*self.hidden, *args), kwargs)
        if self.captured and self.captured.changed():
            self.table.clear()
        key = self._key(args) if function is self.function else None
        prepared = self.table.get(key)
        if prepared is None:
            prepared = Prepared(self, function, args)
            if key is not None:
                self.table.insert(key, prepared)
        return prepared, function, args

    def _key(self, args: tuple[Any, ...]) -> Any:
        try:
            return tuple([key_of(argument) for argument in args])
        except RecursionError:
            sort_arguments(self.function, args)  # says which argument contains itself
            raise

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Value and gradients inside of a running trace, recorded onto it."""
        trace = current()
        assert trace is not None
        function, args = positional(self.function, (*self.hidden, *args), kwargs)
        arguments = sort_arguments(function, args)
        concrete = Arguments(
            tuple(
                type(leaf)(
                    leaf.value._value() if type(leaf.value) is Tracer else leaf.value,
                    leaf.argument,
                    leaf.name,
                    leaf.path,
                )
                for leaf in arguments.leaves
            ),
            arguments.values,
        )
        wanted = self.wanted(function, concrete)
        recorded = record(function, concrete.leaves, concrete.rebuild, registry=trace.registry)
        gradient = differentiate(recorded.tape, concrete, wanted, trace.registry)
        inputs = {
            entry.variable: leaf.value for entry, leaf in zip(gradient.tape.inputs, arguments.leaves, strict=False)
        }
        outputs = inline(gradient.tape, trace, {**inputs, **recorded.outer})
        return outputs[0], self.shaped(concrete, gradient, outputs[1:])

    # -- which leaves, and what the caller gets -------------------------------------------------------------

    def positions(self, function: Callable[..., Any], count: int) -> tuple[int, ...]:
        """Argument positions that ``wrt`` names, the receiver of a method not counted."""
        if self.wrt is None:
            return tuple(range(len(self.hidden), count))
        names = names_of(function, count)
        found = []
        for each in self.wrt if isinstance(self.wrt, tuple) else (self.wrt,):
            if isinstance(each, str):
                if each not in names:
                    raise ArgumentError(f"wrt={each!r} is no argument of {_name(function)}; it has {', '.join(names)}")
                found.append(names.index(each))
            else:
                visible = count - len(self.hidden)
                if not -visible <= each < visible:
                    raise ArgumentError(
                        f"wrt={each} is out of range: {_name(function)} was called with {visible} arguments"
                    )
                found.append(each % visible + len(self.hidden))
        return tuple(found)

    def wanted(self, function: Callable[..., Any], arguments: Arguments) -> tuple[int, ...]:
        """Indices of the leaves to differentiate by.

        Raises
        ------
        ArgumentError
            If an argument that was asked for has no derivative.
        """
        positions = self.positions(function, len(arguments.values))
        wanted = tuple(
            index
            for index, leaf in enumerate(arguments.leaves)
            if leaf.argument in positions and _differentiable(leaf.value)
        )
        found = {arguments.leaves[index].argument for index in wanted}
        missing = [position for position in positions if position not in found]
        if missing and (self.wrt is not None or len(missing) == len(positions)):
            raise _no_derivative(function, arguments, missing[0])
        return wanted

    def shaped(self, arguments: Arguments, gradient: Gradient, adjoints: Sequence[Any]) -> Any:
        """The adjoints as the caller wants them: one for a single ``wrt``, else a tuple by argument."""
        by_argument: dict[int, Any] = {}
        for index, adjoint in zip(gradient.leaves, adjoints, strict=True):
            leaf = arguments.leaves[index]
            if leaf.path:
                by_argument.setdefault(leaf.argument, {})[leaf.path] = adjoint
            else:
                by_argument[leaf.argument] = adjoint
        for leaf in arguments.leaves:
            if leaf.path and _differentiable(leaf.value):
                by_argument.setdefault(leaf.argument, {})
        positions = self.positions(self.function, len(arguments.values))
        if isinstance(self.wrt, (int, str)):
            return by_argument.get(positions[0])
        return tuple(by_argument.get(position) for position in positions)


class Prepared:
    """Compiled value and gradient for one kind of arguments."""

    def __init__(self, owner: Differentiated, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.owner = owner
        self.arguments = sort_arguments(function, args)
        self.wanted = owner.wanted(function, self.arguments)
        self.root = self._specialise(function, self.arguments)

    def _specialise(self, function: Callable[..., Any], arguments: Arguments) -> Specialisation:
        gradient = trace_gradient(function, arguments, self.wanted, registry())
        return Specialisation(gradient, *compile_tape(gradient.tape, self.owner.target))

    @property
    def direct(self) -> Callable[..., Any] | None:
        """The generated function, where the caller's arguments and results are just its own; else None."""
        leaves = self.arguments.leaves
        simple = (
            isinstance(self.owner.wrt, (int, str))
            and not self.owner.hidden
            and len(leaves) == len(self.arguments.values)
            and all(not leaf.path and _exact(leaf.value) for leaf in leaves)
            and not self.root.gradient.tape.guards
        )
        return self.root.call if simple else None

    def __call__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any, Specialisation]:
        """Value, gradients and the specialisation that computed them."""
        arguments = sort_arguments(function, args)
        leaves = [_plain(leaf.value) for leaf in arguments.leaves]
        try:
            chosen, outputs = self.root.run(leaves)
        except StaleTapeError:
            if not self.owner.dynamic:
                raise
            self.root.insert(self._specialise(function, arguments))
            chosen, outputs = self.root.run(leaves)
        value, *adjoints = outputs if isinstance(outputs, tuple) else (outputs,)
        gradient = chosen.gradient
        adjoints = [
            np.asarray(adjoint) if isinstance(arguments.leaves[index].value, np.ndarray) else adjoint
            for index, adjoint in zip(gradient.leaves, adjoints, strict=True)
        ]
        return value, self.owner.shaped(arguments, gradient, adjoints), chosen


def _exact(value: Any) -> bool:
    """Whether generated code may take ``value`` as it is and give its gradient back as it is."""
    return type(value) in (float, complex) or (type(value) is np.ndarray and value.ndim > 0 and value.dtype.isnative)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray) and (type(value) is not np.ndarray or not value.dtype.isnative):
        return np.asarray(value, dtype=value.dtype.newbyteorder("="))
    return value


def _differentiable(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fc"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _no_derivative(function: Callable[..., Any], arguments: Arguments, position: int) -> ArgumentError:
    name = names_of(function, len(arguments.values))[position]
    value = arguments.values[position]
    if isinstance(value, (np.ndarray, np.generic)):
        return ArgumentError(
            f"argument {name} of {_name(function)} has dtype {value.dtype}, which carries no derivative; "
            f"pass {name}.astype(float)"
        )
    if isinstance(value, int):
        return ArgumentError(
            f"argument {name} of {_name(function)} is the int {value!r}, which is static; "
            f"pass {float(value)!r} for a derivative"
        )
    return ArgumentError(
        f"argument {name} of {_name(function)} is a {type(value).__name__} without floating-point values; "
        "there is nothing to differentiate by"
    )
