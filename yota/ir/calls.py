"""Recorded calls: a function by its dotted name, and its arguments with placeholders for operands."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.callables import original
from yota.ir.types import Record


@dataclass(frozen=True, slots=True)
class Place:
    """Placeholder of an operand among the arguments of a call."""

    operand: int


@dataclass(slots=True, unsafe_hash=True)
class Items(Record):
    """A list or tuple among the arguments of a call."""

    kind: type
    items: tuple[Any, ...]


@dataclass(slots=True, unsafe_hash=True)
class Form(Record):
    """A call with placeholders for operands.

    path: dotted name of the function, e.g. ``"numpy.add.reduceat"``.
    arguments, keywords: each a `Place`, an `Items`, or a plain value.
    part: the number of the result, for a function with several results; else None.
    writes: whether the function writes into operand 0 and returns nothing; the result is then a copy of that array.
    view: whether the result is a view of an operand.
    """

    path: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    part: int | None = None
    writes: bool = False
    view: bool = False

    def __repr__(self) -> str:
        given = [_shown(value) for value in self.arguments]
        given += [f"{name}={_shown(value)}" for name, value in self.keywords]
        return f"{self.path}({', '.join(given)})" + ("" if self.part is None else f"[{self.part}]")


def _shown(value: Any) -> str:
    if isinstance(value, Place):
        return f"%{value.operand}"
    if isinstance(value, Items):
        inner = ", ".join(map(_shown, value.items))
        return f"[{inner}]" if value.kind is list else f"({inner},)"
    return repr(value)


def resolve(path: str) -> Any:
    """The function of a dotted name, in its original form during a trace.

    >>> import numpy
    >>> resolve("numpy.add.reduceat") == numpy.add.reduceat
    True
    """
    names = path.split(".")
    for count in range(len(names) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(names[:count]))
        except ImportError:
            continue
        return functools.reduce(getattr, names[count:], found)
    raise ImportError(f"there is no module for {path}")


def path_of(value: Any) -> str:
    """The dotted name of a function or a class that NumPy, SciPy or yota defines; empty for others.

    >>> import numpy
    >>> path_of(numpy.ndarray), path_of(print)
    ('numpy.ndarray', '')
    """
    path = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    if path.partition(".")[0] in ("numpy", "scipy", "yota"):
        with contextlib.suppress(ImportError, AttributeError):
            found = original(resolve(path))
            return path if found is value or inspect.unwrap(found) is value else ""
    return ""


def call(*operands: Any, form: Form) -> Any:
    """Call the function with ``operands``."""

    def filled(value: Any) -> Any:
        if isinstance(value, Place):
            return operands[value.operand]
        if isinstance(value, Items):
            return value.kind(map(filled, value.items))
        return value

    if form.writes:
        operands = (np.array(operands[0]), *operands[1:])
    result = resolve(form.path)(*map(filled, form.arguments), **{name: filled(value) for name, value in form.keywords})
    if form.writes:
        return operands[0]
    return result if form.part is None else result[form.part]
