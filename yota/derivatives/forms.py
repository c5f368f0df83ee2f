"""Cache of compiled forms by function, which all derivatives of one kind share."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar

import numpy as np

from yota.derivatives.differentiated import Differentiated, with_receiver
from yota.ir.callables import Derived
from yota.marks import mark_of
from yota.rules.registry import registry
from yota.runtime.cache import Table
from yota.settings import settings
from yota.tracing.location import is_library_file, is_own_file
from yota.tracing.places import content
from yota.watching.captured import Captured

MOST_BYTES = 1 << 28
"""Largest total size of captured arrays that the cached forms, except the latest, keep alive."""


class _Form(Protocol):
    captured: Captured

    def take_over(self, other: Any) -> None: ...


_Made = TypeVar("_Made", bound=_Form)
_known = Table(most=128)
"""Cached forms in order of last use."""


def shared(function: Callable[..., Any], make: Callable[[], _Made], *options: Hashable) -> _Made:
    """The form that ``make`` creates for ``function``, or the cached one.

    A lambda inside a loop is a new function in each iteration. It gets a form of its own, with the compiled code of
    a form with the same code and the same captured data.

    make: creates a form.
    *options: options that the form depends on.
    """
    plain, hidden = with_receiver(function)
    # Marks distinguish 1 from True: a refused option must not match an accepted one.
    key = (mark_of(options), registry().revision, settings.revision, _sameness(plain), tuple(map(_place, hidden)))
    try:
        found = _known.pop(key, None)
    except TypeError:  # an option, or an object that is called, has no hash
        return make()
    if found is None or found[0] is not plain:
        made = make()
        if found is not None and made.captured.agrees(found[1].captured):
            made.take_over(found[1])
        found = plain, made
    _keep(key, found)
    form: _Made = found[1]
    return form


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
    """The identity of a bound argument; None for numbers and arrays, which each call reads."""
    return None if isinstance(value, (int, float, complex, np.ndarray)) else id(value)
