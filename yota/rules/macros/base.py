"""What macros are made of: how they are registered, and how they write primitives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yota.ir.catalog import primitive
from yota.ir.primitive import Emitter

__all__ = ["REGISTERED", "Handle", "Macro", "Slope", "emit", "macro", "reshaped"]

Handle = Any
"""What an emitter calls a value; parameters with this annotation take values, others take static Python objects."""
Slope = Any
"""A value that may be None: the adjoint of one of several results, of which nobody needs this one."""


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro, with the parameters that take values, those in which it is linear, and values that may be None."""

    function: Callable[..., Any]
    values: frozenset[str]
    linear: frozenset[str]
    optional: frozenset[str]


REGISTERED: dict[str, Macro] = {}
"""Macros by name, of the files that are loaded; `yota.rules.macros.known` has all of them."""


def macro(*linear: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function, which takes an emitter first; it is linear in the parameters named."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        values = frozenset(name for name, kind in function.__annotations__.items() if kind == "Handle")
        optional = frozenset(name for name, kind in function.__annotations__.items() if kind == "Slope")
        REGISTERED[function.__name__.rstrip("_")] = Macro(function, values - {"return"}, frozenset(linear), optional)
        return function

    return register


def emit(emitter: Emitter, name: str, *operands: Handle, **static: Any) -> Handle:
    """Apply the built-in primitive ``name``."""
    return emitter.emit(primitive(name), operands, static)


def reshaped(emitter: Emitter, v: Handle, shape: tuple[int, ...]) -> Handle:
    """``v`` in ``shape``; nothing to do if it has it."""
    return v if emitter.type(v).shape == shape else emit(emitter, "reshape", v, shape=shape)
