"""Calls of compiled derivatives: one cached form for each function, and dispatch on the argument types."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import numpy as np

from yota.ir.callables import Derived, Recipe
from yota.marks import MISSING, mark_of
from yota.rules.registry import registry
from yota.run.compiled import CLEARED, Compiled
from yota.run.derivatives.differentiated import Differentiated, with_receiver
from yota.run.derivatives.prepared import Prepared
from yota.run.machine.c_dispatch import offer, prepare, quick, withdraw
from yota.run.machine.cache import Table
from yota.settings import settings
from yota.tracing.captured.captured import Captured
from yota.tracing.current import current
from yota.tracing.patching import content
from yota.tracing.source_lines import is_library_file, is_own_file, users_frames

MOST_BYTES = 1 << 28
"""Largest total size of captured arrays that the cached forms, except the latest, keep alive."""

READ_EACH_CALL = (int, float, complex, np.ndarray)
"""Types of bound arguments that compiled code takes like arguments."""


class _Form(Protocol):
    @property
    def captured(self) -> Captured: ...

    def take_over(self, other: Any) -> None: ...


_Made = TypeVar("_Made", bound=_Form)
_known = Table(most=128)
"""Cached forms in order of last use."""


def shared(function: Callable[..., Any], make: Callable[[], _Made], *options: Hashable) -> _Made:
    """The form that ``make`` creates for ``function``, or the cached one.

    A lambda inside a loop is a new function in each iteration. It gets a form of its own, with the compiled code of
    a form with the same code and the same captured data.

    *options: options that the form depends on.
    """
    plain, hidden = with_receiver(function)
    # Marks distinguish 1 from True: a refused option must not match an accepted one.
    key = (mark_of(options), registry().revision, settings.revision, _sameness(plain), tuple(map(_place, hidden)))
    try:
        found = _known.pop(key, None)
    except TypeError:  # an option, or an object that is called, has no hash
        return make()
    if found is not None and found[0] is plain:
        _known.insert(key, found)
        form: _Made = found[1]
        return form
    made = make()
    if found is not None and made.captured.agrees(found[1].captured):
        made.take_over(found[1])
    _keep(key, (plain, made))
    return made


def form_of(
    kind: Callable[..., Differentiated], function: Callable[..., Any], *options: Hashable, **named: Hashable
) -> Differentiated:
    """The cached form of class ``kind``, bound to the arguments that ``function`` supplies to its plain function."""
    return shared(function, lambda: kind(function, *options, **named), kind, *options, *named.items()).bound(function)


def _keep(key: Any, found: tuple[Any, Any]) -> None:
    """Add a form as the latest, and drop the oldest forms if they keep too much memory alive."""
    with _known.lock:
        left = MOST_BYTES
        for each, (_, form) in reversed(list(_known.items())):
            left -= form.captured.nbytes
            if left < 0:
                _known.pop(each, None)
        _known.insert(key, found)


def _sameness(function: Any) -> Any:
    """A key that is equal for functions that differ only in captured data or bound arguments."""
    if isinstance(function, functools.partial):
        return _sameness(function.func), len(function.args), tuple(function.keywords)
    if isinstance(function, types.MethodType):
        return _sameness(function.__func__), id(function.__self__)
    if isinstance(function, Derived):
        make, (made_of, *rest), options = function.recipe
        return make, _sameness(made_of), mark_of((*rest, *options.items()))
    code = getattr(function, "__code__", None)
    if code is None or (
        is_library_file(code.co_filename) and not is_own_file(code.co_filename)
    ):  # yota does not track what decorators of libraries captured
        return function
    held = [content(cell) for cell in getattr(function, "__closure__", None) or ()]
    return code, tuple(each.__code__ for each in held if type(each) is types.FunctionType)


def _place(value: Any) -> int | None:
    """The identity of a bound argument; None for what each call reads."""
    return None if isinstance(value, READ_EACH_CALL) else id(value)


_MOST_DIRECT = 256
_OFTEN = 1000
"""Number of calls from which on a dispatcher in C pays off."""


def caller(form: Differentiated, recipe: Recipe, what: str, kind: Any = None) -> Callable[..., Any]:
    """A function that calls ``form``, or records the call inside a trace; a pickle of it holds its ``recipe``."""
    found: Callable[..., Any] = (kind or Derivative)(form, recipe, what, direct=form.target.name == "c").front
    return found


class Derivative(Compiled):
    """The compiled functions of one derivative.

    direct: entries by argument types; the parameter says whether a dispatcher in C is compiled if there is none yet.
    """

    def __init__(self, form: Differentiated, recipe: Recipe, what: str, *, direct: bool = False) -> None:
        super().__init__(recipe, recipe[1][0], what, journal=form.journal)
        self.form = form
        self.latest: Any = None
        self.direct = Table(_MOST_DIRECT)
        self.front: Any = quick(self, build=direct)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """The derivative at these arguments."""
        self.calls += 1
        latest = self.latest
        if latest is not None and not kwargs:
            found = latest(*args)
            if found is not MISSING:
                if not self.calls % _OFTEN:
                    prepare()
                return found
        with users_frames:
            return self.make(args, kwargs)

    @staticmethod
    def part(result: Any) -> Any:
        """What is returned of a result of the form."""
        return result

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
            found = known(*args)
            if found is not MISSING:
                self.latest = known
                return found
        if current() is not None:
            return self.part(self.form.traced(args, kwargs))
        prepared, function, positions, leaves = self.form.prepare(args, kwargs)
        before = prepared.state()
        result, _ = prepared(function, positions, leaves)
        # While another thread compiles, the entry is not created.
        if key is not None and (lock := self.form.table.lock).take():
            try:
                # Newly compiled code may be called only once, unless a thread is to compile it again.
                often = prepared.calls or self.form.target.name == "auto"
                settled = often and prepared.is_current() and prepared.state() == before
                self.latest = prepared.entry(args, self.form.hidden, self.part) if settled else None
                self._keep(key, prepared, args)
            finally:
                lock.release()
        prepared.calls += 1
        return self.part(result)

    def _keep(self, key: Any, prepared: Prepared, args: tuple[Any, ...]) -> None:
        if self.latest is None:
            self.direct.pop(key, None)
            return
        self.direct.insert(key, self.latest)
        if self.front is not self:
            from yota.run.derivatives.call_entry import by_entry, kinds_of

            offer(self.front, tuple(kinds_of(args)), prepared.form(args, self.part) or by_entry(self.latest, args))


class Slope(Derivative):
    """The gradient part of a value and gradient."""

    @staticmethod
    def part(result: Any) -> Any:
        """The gradient."""
        return result[1]


class SlopeWithAux(Derivative):
    """The gradient and the auxiliary result of a value and gradient."""

    @staticmethod
    def part(result: Any) -> Any:
        """The gradient and the auxiliary result."""
        (_, aux), slope = result
        return slope, aux


def kinds(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Argument types as keys of compiled functions of arrays and numbers."""
    return tuple(
        [(a.dtype, a.shape) if type(a) is np.ndarray else (int, a) if type(a) is int else type(a) for a in args]
    )
