"""Making a user's plain Python function a primitive while a trace runs: every name bound to it records."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from yota.ir.primitive import Primitive
from yota.tracing.binding import bind, hashable
from yota.tracing.kinds import Namespace
from yota.tracing.methods import is_traced
from yota.tracing.state import current

__all__ = ["interceptions", "opaque", "recorded"]


def opaque(function: Callable[..., Any]) -> Primitive:
    """A primitive for a function that no rule describes; it can be recorded, not differentiated."""
    module = getattr(function, "__module__", "") or ""
    name = getattr(function, "__name__", type(function).__name__)
    return Primitive(name, f"{module}.{name}", False, function)


def interceptions(known: Iterable[Primitive], function: Callable[..., Any]) -> list[tuple[Any, str, Any]]:
    """``(owner, name, recording function)`` for every binding of the functions that ``known`` stand for.

    Looked through are the modules that are loaded and the closure of the traced ``function``.
    """
    wrappers = {id(primitive.function): recorded(primitive) for primitive in known}
    if not wrappers:
        return []
    found: list[tuple[Any, str, Any]] = []
    for module in list(sys.modules.values()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if id(value) in wrappers:
                found.append((module, name, wrappers[id(value)]))
    namespace = getattr(function, "__globals__", {})
    home = sys.modules.get(namespace.get("__name__", ""))
    if home is None or vars(home) is not namespace:
        owner = Namespace(namespace)
        found += [
            (owner, name, wrappers[id(value)]) for name, value in list(namespace.items()) if id(value) in wrappers
        ]
    for cell in getattr(function, "__closure__", None) or ():
        if id(_content(cell)) in wrappers:
            found.append((cell, "cell_contents", wrappers[id(cell.cell_contents)]))
    return found


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def recorded(known: Primitive) -> Callable[..., Any]:
    """A function that computes ``known`` on plain values, and records it as one op on traced ones."""
    original = known.function

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if trace is None or not (any(map(is_traced, args)) or any(map(is_traced, keywords.values()))):
            return original(*args, **keywords)
        if trace.registry.knows(known.name):
            return bind(trace, known, args, keywords)
        return trace.apply(known, args, {name: hashable(trace, value) for name, value in keywords.items()})

    return call
