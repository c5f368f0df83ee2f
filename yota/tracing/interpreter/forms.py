"""The recorded forms of libraries' functions, found by the functions themselves rather than put in their places."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.interpreter.builtin import BUILT_IN
from yota.tracing.namespace import replacements
from yota.tracing.state import current

__all__ = ["form_of"]


def form_of(function: Any) -> Callable[..., Any] | None:
    """What records a call of ``function``; None if it is called as it is."""
    trace = current()
    if trace is None:
        return None
    found = _forms(len(sys.modules)).get(id(function))
    if found is None:
        return None
    form = getattr(found[1], "form", None)
    if form is not None:
        return functools.partial(form, trace)
    if function.__module__ not in ("builtins", "math", "cmath"):
        trace.hold()  # what it is recorded as may be written in terms of NumPy's creation functions
    recorded: Callable[..., Any] = found[1]
    return recorded


@functools.lru_cache(4)
def _forms(modules: int) -> dict[int, tuple[Any, Any]]:
    """By identity, functions with what records them; more are known when more modules are loaded."""
    found: dict[int, tuple[Any, Any]] = {id(each): (each, form) for each, form in BUILT_IN.items()}
    for _, name, form in replacements():
        original = getattr(form, "__wrapped__", None)
        if original is not None and name != "_array_converter":
            found.setdefault(id(original), (original, form))
            found.setdefault(id(form), (form, form))
    return found
