"""A function with compiled code for each combination of argument types."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

# These imports register recorded forms of solvers, and attach methods to tapes.
import yota.solvers
import yota.tapes  # noqa: F401
from yota.compilation.arguments import function_of, key_of, positional, sort_arguments
from yota.compilation.branches import Dynamic, check_dynamic
from yota.compilation.compiled import CHANGED, Journal
from yota.compilation.layout import Wrt, checked, layout_of
from yota.compilation.specialise import Target, differentiate, with_aux
from yota.derivatives.inside import inside
from yota.derivatives.prepared import Prepared, shaped
from yota.ir.callables import Derived, name_of
from yota.runtime.cache import Table
from yota.tracing.results import ResultForm
from yota.watching.captured import Captured

__all__ = ["Differentiated", "with_receiver"]


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

    Parameters
    ----------
    function
        The user's function.
    wrt
        Arguments to differentiate by: a position, a name, a tuple of them, or None for every argument that has a
        derivative.
    target
        Target of the generated code.
    dynamic
        Whether to trace again when a branch changes; see `yota.compilation.branches`.
    has_aux
        Whether the function returns ``(value, aux)``.

    Attributes
    ----------
    options
        Further options that the code depends on.
    """

    options: tuple[Any, ...] = ()

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
        function, args = positional(self.function, (*self.hidden, *args), kwargs)
        leaves: list[Any] = []
        try:
            key = tuple([key_of(argument, leaves) for argument in args])
        except RecursionError:
            sort_arguments(function, args)  # raises an error that names the argument
            raise
        if function is not self.function:
            key = (function.names, *key)  # type: ignore[attr-defined]
        return key, function, args, leaves

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for argument types like those of ``args``."""
        return Prepared(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Record value and gradients on the tape of a running trace."""
        call = inside(self.function, (*self.hidden, *args), kwargs)
        layout = layout_of(call.function, self.wrt, len(self.hidden), call.plain)
        forms: list[ResultForm] = []
        recorded = (replace(call, function=with_aux(call.function, forms)) if self.has_aux else call).record()
        gradient = differentiate(recorded, call.plain, layout.wanted, call.trace.registry, forms)
        return shaped(gradient, layout, call.inline(gradient.tape, recorded.outer))
