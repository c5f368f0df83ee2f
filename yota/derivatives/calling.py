"""Calls of compiled derivatives at the least cost: the generated function is found by the types of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from yota.compilation.compiled import CHANGED, CLEARED, Compiled
from yota.derivatives.differentiated import Differentiated
from yota.ir.callables import Recipe
from yota.runtime.dispatch import offer, quick, watch
from yota.tracing.state import current

__all__ = ["Derivative", "Slope", "caller", "kinds"]

_MOST_DIRECT = 256
_ABSENT: Any = object()
_ARRAY = np.ndarray

_Place: TypeAlias = tuple[Callable[[Any], Any], Any, Any]
_Latest: TypeAlias = tuple[Callable[..., Any], Any, Any, tuple[_Place, ...]]


def caller(form: Differentiated, recipe: Recipe, what: str) -> Callable[..., Any]:
    """A function of the arguments that gives what ``form`` gives; inside of a trace it is recorded.

    Parameters
    ----------
    form
        The compiled forms.
    recipe
        The call that makes this function, for a pickle; the first of its arguments is the function that it is made of.
    what
        What it gives.
    """
    found: Callable[..., Any] = Derivative(form, recipe, what).front
    return found


class Derivative(Compiled):
    """The compiled functions of one derivative.

    Attributes
    ----------
    changed
        Whether what the function reads has changed; None if it reads nothing.
    latest
        What was called last with a single array, that array's dtype and shape, and ``(get, key, object)`` for all that
        the function reads: what was compiled holds while each ``get(key)`` is the object. One tuple, so that threads
        never see them mixed.
    direct
        Compiled functions by the types of all arguments.
    """

    def __init__(self, form: Differentiated, recipe: Recipe, what: str) -> None:
        super().__init__(recipe, recipe[1][0], what, journal=form.journal)
        self.form = form
        self.changed = form.captured.changed if form.captured else None
        self.latest: _Latest | None = None
        self.direct: dict[Any, Callable[..., Any]] = {}
        # What tries compiled functions before any Python code runs, if there is such a thing.
        self.front = quick(self) if form.target.name == "c" else self

    # One array is by far the most frequent call: everything else is left to another function.
    def __call__(self, x: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
        """What the form gives for these arguments."""
        known = self.latest
        if known is not None and type(x) is _ARRAY and not rest and not kwargs:
            function, dtype, shape, places = known
            if x.dtype is dtype and x.shape == shape:
                unchanged = False
                try:
                    for get, key, value in places:
                        if get(key) is not value:
                            break
                    else:
                        unchanged = True
                except ValueError:  # a variable of a closure was deleted
                    pass
                if unchanged:
                    return function(x)
        if self.changed is not None and self.changed():
            self.forget()
        return self.make(() if x is _ABSENT else (x, *rest), kwargs)

    def forget(self, why: str = CHANGED) -> None:
        """Drop everything that was compiled."""
        self.latest = None
        self.direct.clear()
        self.form.forget(why)

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles anew."""
        if hasattr(self.front, "forms"):
            self.front.set_forms(())
        self.forget(CLEARED)

    def make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call what was compiled for such arguments, or compile it."""
        if hasattr(self.front, "forms") and self.front.forms:
            watch(self.front, self.form.captured.identities())
        if not kwargs:
            found = self.direct.get(kinds(args))
            if found is not None:
                if len(args) == 1 and type(args[0]) is np.ndarray:
                    self.latest = found, args[0].dtype, args[0].shape, self._watched()
                return found(*args)
        if current() is not None:
            return self.form.traced(args, kwargs)
        prepared, function, positions, leaves = self.form.prepare(args, kwargs)
        result, _ = prepared(function, positions, leaves)
        self.latest = None  # more may be watched from now on
        if self.changed is None and self.form.captured:  # what the function reads shows when it runs
            self.changed = self.form.captured.changed
        if not kwargs and prepared.direct is not None and len(self.direct) < _MOST_DIRECT:
            self.direct[kinds(args)] = prepared.direct
            if hasattr(self.front, "forms") and watch(self.front, self.form.captured.identities()):
                offer(self.front, prepared.direct, args)
        return result

    def _watched(self) -> tuple[_Place, ...]:
        """Variables that must still hold what they held; else one place that tells whether anything changed."""
        if self.changed is None:
            return ()
        places = self.form.captured.held()
        return ((self._has_changed, "", False),) if places is None else places

    def _has_changed(self, _: str) -> bool:
        assert self.changed is not None
        changed = self.changed()
        if changed:
            self.forget()
        return changed


class Slope(Compiled):
    """The gradient, of a function that gives value and gradient."""

    def __init__(self, recipe: Recipe, both: Any) -> None:
        super().__init__(recipe, recipe[1][0], "gradient", both, journal=both.journal)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The gradient."""
        return self._call(*args, **kwargs)[1]

    def clear(self) -> None:
        """Drop all compiled code; the next call compiles anew."""
        self._call.clear()


def kinds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Types of arguments, by which compiled functions that take arrays and numbers are told apart."""
    return tuple([(a.dtype, a.shape) if type(a) is np.ndarray else type(a) for a in args])
