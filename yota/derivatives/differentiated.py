"""A function with its compiled code for each kind of arguments, which is found or made for a call."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

# Tapes get their methods there.
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
    """A plain function, and the arguments that its bound form supplies.

    The receiver of a method is an argument like any other, so that its fields are read at each call.
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
        Whether to trace again when a branch goes another way; see `yota.compilation.branches`.
    has_aux
        Whether the function returns something beside the value.

    Attributes
    ----------
    options
        What the code depends on besides.
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
        """Take the compiled code of a form of another function, of the same code, that captured the same."""
        self.captured.adopt(other.captured)
        self.journal = other.journal
        for key, prepared in list(other.table.items()):
            self.table.insert(key, prepared.owned_by(self))

    def bound(self, given: Callable[..., Any]) -> Differentiated:
        """The same form for a callable of the same function, which supplies other arguments of the same kinds."""
        _, hidden = with_receiver(given)
        if all(one is other for one, other in zip(hidden, self.hidden, strict=True)):
            return self
        found = copy.copy(self)
        found.given, found.hidden = given, hidden
        return found

    def forget(self, why: str = CHANGED) -> None:
        """Drop everything that was compiled, and let the present state of what the function reads count."""
        # In this order: another thread must not find what is outdated beside a state that says that nothing changed.
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
        """The compiled form for a call; the call with its arguments by position; and their leaves."""
        # In this order: who forgets empties the table before another state counts.
        unchanged = self.captured.state.holds()
        key, function, positions, leaves = self._called(args, kwargs)
        prepared = self.table.get(key) if unchanged else None
        if prepared is None:
            # What two threads compiled at a time could rely on what the function read at different moments.
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
        """What tells the kinds of the arguments apart; the call with its arguments by position; and their leaves."""
        function, args = positional(self.function, (*self.hidden, *args), kwargs)
        leaves: list[Any] = []
        try:
            key = tuple([key_of(argument, leaves) for argument in args])
        except RecursionError:
            sort_arguments(function, args)  # says which argument contains itself
            raise
        if function is not self.function:
            key = (function.names, *key)  # type: ignore[attr-defined]
        return key, function, args, leaves

    def compiled(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Prepared:
        """The compiled form for arguments like ``args``."""
        return Prepared(self, function, args)

    def traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Value and gradients inside of a running trace, recorded onto it."""
        call = inside(self.function, (*self.hidden, *args), kwargs)
        layout = layout_of(call.function, self.wrt, len(self.hidden), call.plain)
        forms: list[ResultForm] = []
        recorded = (replace(call, function=with_aux(call.function, forms)) if self.has_aux else call).record()
        gradient = differentiate(recorded, call.plain, layout.wanted, call.trace.registry, forms)
        return shaped(gradient, layout, call.inline(gradient.tape, recorded.outer))
