"""Which functions are recorded as several primitives, and by what."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Form = TypeVar("Form", bound=Callable[..., Any])

IMPLEMENTATIONS: dict[Any, Callable[..., Any]] = {}
"""Recorded forms by NumPy function, or by the name of a method that all ufuncs have; each takes the trace first."""
CHECKED: set[Any] = set()
"""Those of NumPy's functions that are called with plain values first, for the errors that they raise."""
BY_KIND: dict[Any, int] = {}
"""How many arguments are operands, of functions that may become one op that the kinds of all arguments determine."""
OF_COMPLEX: dict[Any, Callable[..., Any]] = {}
"""Of complex numbers, recorded forms by ufunc whose rule is for real ones; each takes the trace first."""
FORMS: dict[tuple[str, str], Callable[..., Any]] = {}
"""Recorded forms by module and name, of functions that do not dispatch; each takes the trace first."""

ALWAYS: set[tuple[str, str]] = set()
"""Those of them that record plain calls too, since what they give takes traced values."""

CALLING: dict[tuple[str, str], Callable[..., Any]] = {}
"""The same, of functions that call their first argument."""

_WAITING: dict[str, list[Callable[[], None]]] = {}
"""By library, what registers forms of its functions."""


def when_loaded(library: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """A decorator for what registers recorded forms of the functions of a library, when that is loaded."""

    def wait(register: Callable[[], None]) -> Callable[[], None]:
        _WAITING.setdefault(library, []).append(register)
        return register

    return wait


def register_loaded() -> None:
    """Register the recorded forms of all libraries that are loaded."""
    for library in [each for each in _WAITING if each in sys.modules]:
        for register in _WAITING.get(library, ()):
            register()
        _WAITING.pop(library, None)


def registering(
    table: dict[Any, Callable[..., Any]], names: Mapping[Any, str], named: bool = False
) -> Callable[[Form], Form]:
    """A decorator that puts a function into ``table`` by the keys of ``names``; if ``named``, it takes names first."""

    def register(function: Form) -> Form:
        table.update({key: functools.partial(function, name) if named else function for key, name in names.items()})
        return function

    return register


def implements(*functions: Any, named: bool = False, checked: bool = False, by_kind: int = 0) -> Callable[[Form], Form]:
    """Register a recorded form of NumPy ``functions``; if ``checked``, NumPy has accepted the arguments.

    by_kind: how many arguments are operands, if what is recorded depends on no element of theirs; see `BY_KIND`.
    """
    CHECKED.update(functions if checked else ())
    BY_KIND.update(dict.fromkeys(functions if by_kind else (), by_kind))
    return registering(IMPLEMENTATIONS, {each: getattr(each, "__name__", "") for each in functions}, named)


def records(module: str, *names: str, always: bool = False, named: bool = False) -> Callable[[Form], Form]:
    """Register the decorated function as the recorded form of functions of ``module``, which do not dispatch.

    ``Class.method`` names a method, ``table.key`` an item of a dictionary. If ``always``, plain calls are recorded too.
    If ``named``, the form takes the name before the trace.
    """
    ALWAYS.update((module, name) for name in names if always)
    return registering(FORMS, {(module, name): name for name in names}, named)


def calls_back(module: str, *names: str, named: bool = False) -> Callable[[Form], Form]:
    """The same for functions that call the function they are given first, which may give traced values."""
    return registering(CALLING, {(module, name): name for name in names}, named)
