"""Calls of compiled derivatives with minimal overhead: dispatch on the argument types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from yota.compilation.compiled import CLEARED, Compiled
from yota.derivatives.differentiated import Differentiated
from yota.derivatives.entry import MISSING
from yota.derivatives.prepared import Prepared
from yota.ir.callables import Recipe
from yota.runtime.cache import Table
from yota.runtime.dispatch import offer, quick, withdraw
from yota.tracing.state import current
from yota.tracing.tracebacks import left_out, users_frames

_MOST_DIRECT = 256


def caller(form: Differentiated, recipe: Recipe, what: str) -> Callable[..., Any]:
    """A function that calls ``form``, or records the call inside a trace.

    recipe: the call that creates this function, for pickling; its first argument is the original function.
    what: description of its result.
    """
    found: Callable[..., Any] = Derivative(form, recipe, what, direct=form.target.name == "c").front
    return found


class Derivative(Compiled):
    """The compiled functions of one derivative.

    direct: whether compiled dispatch is tried before Python code, if there is a compiler.
    direct: entries by argument types.
    """

    def __init__(self, form: Differentiated, recipe: Recipe, what: str, *, direct: bool = False) -> None:
        super().__init__(recipe, recipe[1][0], what, journal=form.journal)
        self.form = form
        self.latest: Any = None
        self.direct = Table(_MOST_DIRECT)
        self.front = quick(self) if direct else self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The derivative at these arguments."""
        self.calls += 1
        latest = self.latest
        if latest is not None and not kwargs:
            found = latest(args)
            if found is not MISSING:
                return found
        with users_frames:
            return self.make(args, kwargs)

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles again."""
        self.latest = None
        self.direct.clear()
        if self.front is not self:
            withdraw(self.front)
        self.form.forget(CLEARED)

    def make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Look up the compiled code for these argument types, or compile it, and call it."""
        key = None if kwargs else kinds(args)
        known = self.direct.get(key)
        if known is not None and known is not self.latest:
            found = known(args)
            if found is not MISSING:
                self.latest = known
                return found
        if current() is not None:
            return self.form.traced(args, kwargs)
        prepared, function, positions, leaves = self.form.prepare(args, kwargs)
        before = prepared.state()
        result, _ = prepared(function, positions, leaves)
        # While another thread compiles, the entry is not created.
        if key is not None and (lock := self.form.table.lock).take():
            try:
                # Newly compiled code may be called only once.
                settled = prepared.calls and prepared.is_current() and prepared.state() == before
                self.latest = prepared.entry(args, self.form.hidden) if settled else None
                self._keep(key, prepared, args)
            finally:
                lock.release()
        prepared.calls += 1
        return result

    def _keep(self, key: Any, prepared: Prepared, args: tuple[Any, ...]) -> None:
        if self.latest is None:
            self.direct.pop(key, None)
            return
        self.direct.insert(key, self.latest)
        if self.front is not self:
            offer(self.front, key, prepared.form(args))


class Slope(Compiled):
    """The gradient part of a value-and-gradient function, with the auxiliary result if there is one."""

    def __init__(self, recipe: Recipe, both: Any) -> None:
        super().__init__(recipe, recipe[1][0], "gradient", both, journal=both.journal)
        self._has_aux = recipe[2]["has_aux"]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The gradient."""
        self.calls += 1
        try:
            value, slope = self._call(*args, **kwargs)
        except Exception as fault:
            left_out(fault)
            raise
        return (slope, value[1]) if self._has_aux else slope

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles again."""
        self._call.clear()


def kinds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Argument types as keys of compiled functions of arrays and numbers."""
    return tuple([(a.dtype, a.shape) if type(a) is np.ndarray else type(a) for a in args])
