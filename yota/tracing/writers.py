"""Functions that write out what they are given, or only make text of it; known as the very objects that they are."""

from __future__ import annotations

import functools
import io
import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.bytecode import UNKNOWN, static_attribute
from yota.tracing.location import is_library_file

_PRINT = print
_TEXT = (str, repr, ascii, format, str.format, str.join, np.array2string, np.array_str, np.array_repr)
_NUMBERS = (float, int, complex, round)
_LEVELS = tuple("debug info warning warn error critical exception log".split())
_WRITERS: dict[str, tuple[str, ...]] = {
    "pprint": ("pprint", "pp"),
    "warnings": ("warn",),
    "_warnings": ("warn",),
    "logging": (*_LEVELS, *(f"{kind}.{name}" for kind in ("Logger", "LoggerAdapter") for name in _LEVELS)),
    "tqdm.std": tuple(
        f"tqdm.{name}" for name in "write set_description set_description_str set_postfix set_postfix_str".split()
    ),
    "rich": ("print",),
    "rich.console": ("Console.print", "Console.log"),
    "click.utils": ("echo",),
    "click.termui": ("secho",),
    "IPython.core.display_functions": ("display",),
}
"""By the module that defines them, functions that write what they are given and keep nothing of it."""


@functools.lru_cache(8)
def _writers(modules: int) -> dict[int, Any]:
    """By identity, those of `_WRITERS` whose modules are loaded; not what somebody else put into their places."""
    found: dict[int, Any] = {}
    for module, names in _WRITERS.items():
        owner = sys.modules.get(module)
        for name in names if owner is not None else ():
            value: Any = functools.reduce(static_attribute, name.split("."), owner)
            if isinstance(value, types.BuiltinFunctionType) or getattr(value, "__globals__", None) is vars(owner):
                found[id(value)] = value
    return found


class Outlets:
    """The standard streams of the time when a trace began: what is written there is out of the function's reach.

    raised: whether the text of a value went into an exception, which whoever catches it may read.
    """

    __slots__ = ("_known", "raised")

    def __init__(self) -> None:
        self._known = sys.stdout, sys.stderr
        self.raised = False

    def __contains__(self, stream: Any) -> bool:
        return any(stream is each for each in self._known) and _is_plain(stream)


def _is_plain(stream: Any) -> bool:
    """Whether a stream writes by code of Python's or of an installed library, rather than by the user's own."""
    write = static_attribute(type(stream), "write")
    return _is_library_code(write) if isinstance(write, types.FunctionType) else write is not UNKNOWN


@dataclass(frozen=True, slots=True)
class Called:
    """What a call calls.

    owner: what the function was looked up on; None for a variable.
    function: the function, not bound.
    keywords: the names of the keywords of the call; None where they are not known.
    """

    owner: Any
    function: Any
    keywords: tuple[str, ...] | None = ()

    @classmethod
    def of(cls, function: Any, keywords: tuple[str, ...] | None) -> Called:
        """A function that may be a bound method."""
        owner = getattr(function, "__self__", None)
        inner = getattr(function, "__func__", None)
        if inner is None and owner is not None and not isinstance(owner, types.ModuleType):
            inner = static_attribute(owner if isinstance(owner, type) else type(owner), function.__name__)
        return cls(owner, function if inner is None or inner is UNKNOWN else inner, keywords)

    def writes(self, outlets: Outlets) -> bool:
        """Whether the call writes out what it is given, and keeps nothing of it."""
        function, owner = self.function, self.owner
        if function is _PRINT:
            return self.keywords is not None and "file" not in self.keywords and sys.stdout in outlets
        if any(function is static_attribute(type(owner), name) for name in ("write", "writelines")):
            if owner in outlets:
                return True
            return isinstance(function, types.MethodDescriptorType) and _is_write_only(owner)
        if id(function) not in _writers(len(sys.modules)):
            return False
        is_logging = getattr(function, "__module__", "") == "logging"
        return not is_logging or _logs_plainly(owner, sys.modules["logging"])

    @property
    def converts(self) -> bool:
        """Whether the call only makes a text or a number of what it is given."""
        return self.makes_text or any(self._original is each for each in _NUMBERS)

    @property
    def makes_text(self) -> bool:
        """Whether the call makes a text."""
        return any(self._original is each for each in _TEXT)

    @property
    def is_exception(self) -> bool:
        """Whether the call makes an exception that holds what it is given, and does no more."""
        kind = self.function
        return (
            isinstance(kind, type)
            and issubclass(kind, BaseException)
            and not isinstance(kind.__init__, types.FunctionType)
            and not isinstance(kind.__new__, types.FunctionType)
        )

    @property
    def _original(self) -> Any:
        """What a recording form that stands in a namespace while a trace runs was put there for."""
        code = getattr(self.function, "__code__", None)
        if code is not None and is_library_file(code.co_filename):
            return getattr(self.function, "__wrapped__", self.function)
        return self.function


def _is_write_only(stream: Any) -> bool:
    if not isinstance(stream, io.IOBase) or stream.closed:
        return False
    return not stream.readable()


def _logs_plainly(owner: Any, logging: Any) -> bool:
    """Whether a logger, or the module itself, handles records by code of Python's own."""
    if type(owner) is logging.LoggerAdapter:
        return _logs_plainly(owner.logger, logging)
    if owner is None or owner is logging:
        owner = logging.root
    while owner is not None:
        if type(owner) not in (logging.Logger, logging.RootLogger) or owner.filters:
            return False
        if not all(_is_library_object(each) and not each.filters for each in owner.handlers):
            return False
        if not all(each.formatter is None or _is_library_object(each.formatter) for each in owner.handlers):
            return False
        owner = owner.parent if owner.propagate else None
    return True


def _is_library_object(value: Any) -> bool:
    """Whether all methods of an object are code of Python's or of an installed library."""
    return not vars(value).keys() & {"emit", "format", "handle", "filter"} and all(
        _is_library_code(each)
        for kind in type(value).__mro__
        for each in vars(kind).values()
        if isinstance(each, types.FunctionType)
    )


def _is_library_code(function: types.FunctionType) -> bool:
    name = function.__code__.co_filename
    return is_library_file(name) or "-packages" in name
