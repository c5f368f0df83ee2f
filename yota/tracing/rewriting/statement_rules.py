"""What rewritten statements and other expressions do: names, attributes and items, contexts, texts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from yota.errors import YotaError
from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.recording_forms import attribute as attribute_of
from yota.tracing.rewriting.call_rules import call, descriptor, ready, set_by_class, special
from yota.tracing.rewriting.effects import enters, is_own, made, writes
from yota.tracing.rewriting.operator_rules import iterate
from yota.tracing.rewriting.rewritten import RULES, rule
from yota.tracing.traced_text import joined, texts_in
from yota.tracing.views import UNREAD

RULES["made"] = made
_CONVERSIONS: dict[int, Any] = {-1: lambda value: value, ord("s"): str, ord("r"): repr, ord("a"): ascii}


@rule("named")
def named(value: Any, name: str) -> Any:
    """``value``; the variable of the tape that holds it has the user's name for it, unless it has one."""
    if is_tracer(value):
        trace = current()
        # A view that nobody has read yet may never be, as all windows of an array of which some are taken.
        if trace is not None and value._trace is trace and value._variable != UNREAD:
            variable = value._current()
            if trace.builder.definition(variable) is not None:
                trace.builder.names.setdefault(variable, name)
    return value


@rule("outside")
def outside(value: Any) -> Any:
    """``value``, which is about to be assigned to a variable that is not the function's own."""
    writes(object())
    return value


@rule("attribute")
def attribute(value: Any, name: str) -> Any:
    """``value.name``; a property or another descriptor of a class of the user's runs from its source."""
    getter = descriptor(value, name, "__get__")
    if isinstance(getter, FunctionType):
        return call(getter, (value,), {})
    if getter is not None and (name not in getattr(value, "__dict__", ()) or descriptor(value, name, "__set__")):
        return call(getter, (value, type(value)), {})
    ready(value)
    found = attribute_of(value, name)
    if name == "__dict__" and is_own(value):
        made(found)
    return found


@rule("set_attribute")
def set_attribute(value: Any, receiver: Any, name: str) -> None:
    """``receiver.name = value``."""
    named(value, name)
    if set_by_class(receiver, name, value):
        return
    trace = current()
    if trace is not None and is_tracer(receiver):
        trace.hold()
    ready(receiver)
    writes(receiver)
    setattr(receiver, name, value)


@rule("delete_attribute")
def delete_attribute(receiver: Any, name: str) -> None:
    """``del receiver.name``."""
    writes(receiver)
    delattr(receiver, name)


@rule("set_item")
def set_item(value: Any, receiver: Any, index: Any, whole: Any = None, name: str = "") -> None:
    """``receiver[index] = value``; the array that this leaves in a variable keeps its name."""
    own = special(receiver, "__setitem__")
    ready(receiver)
    if own is None:
        writes(receiver, traced=value)
        receiver[index] = value
    else:
        call(own, (index, value), {})
    if name and is_tracer(receiver):
        named(whole, name)


@rule("delete_item")
def delete_item(receiver: Any, index: Any) -> None:
    """``del receiver[index]``."""
    writes(receiver)
    del receiver[index]


@rule("unpacked")
def unpacked(value: Any) -> Any:
    """What ``a, b = value`` takes apart."""
    return value if type(value) in (tuple, list) else iterate(value)


@rule("matched")
def matched(value: Any) -> Any:
    """``value``, which is matched against sequences; a traced array, which Python would not take apart, is refused."""
    if is_tracer(value) and value.ndim:
        raise value._trace.refuse("a traced array is matched as a sequence.", "Write `match tuple(x):`.")
    return value


@rule("decorate")
def decorate(decorator: Any) -> Callable[[Any], Any]:
    """What stands for a decorator."""
    return lambda function: call(decorator, (function,), {})


@rule("joined")
def joined_texts(*parts: str) -> Any:
    """A text with values in it."""
    return joined("".join(parts), texts_in(list(parts)))


@rule("formatted")
def formatted(value: Any, conversion: int, specification: str) -> Any:
    """One value in such a text."""
    ready(value)
    converted: Any = _CONVERSIONS[conversion](value)
    return joined(format(converted, specification), texts_in([converted, specification]))


_OF_VALUES = (ZeroDivisionError, OverflowError, FloatingPointError, ValueError, RuntimeWarning)
"""Exceptions by which operations tell of the values of their operands."""


@rule("tried")
class Tried:
    """The body of a ``try`` statement, which catches exceptions of these ``kinds``; of all if they are not known."""

    __slots__ = ("_trace", "_warned")

    def __init__(self, kinds: Any) -> None:
        caught = [BaseException] if kinds is None else [*_classes(kinds)]
        self._trace = current() if any(issubclass(each, kind) for each in _OF_VALUES for kind in caught) else None
        self._warned = bool({Warning, RuntimeWarning} & {*caught})

    def __enter__(self) -> None:
        if self._trace is not None:
            self._trace.tried += 1
            self._trace.warned += self._warned

    def __exit__(self, *fault: object) -> None:
        if self._trace is not None:
            self._trace.tried -= 1
            self._trace.warned -= self._warned


def _classes(kinds: Any) -> Iterator[type]:
    for each in kinds:
        if isinstance(each, type):
            yield each
        elif isinstance(each, tuple):
            yield from _classes(each)


@rule("managed")
class Managed:
    """A context of the user's, which may be one of a class that runs from its source."""

    __slots__ = ("_context", "_leave", "_tried")

    def __init__(self, context: Any) -> None:
        self._context = context
        self._tried = Tried(vars(context)["_exceptions"] if isinstance(context, contextlib.suppress) else ())

    def __enter__(self) -> Any:
        context = self._context
        if hasattr(context, "gen") and (trace := current()) is not None:
            trace.hold()  # a generator of the user's that contextlib runs
        ready(context)
        if special(context, "__enter__") is None:
            enters(context)
        self._leave = _method(context, "__exit__")
        found = _method(context, "__enter__")()
        self._tried.__enter__()
        return found

    def __exit__(self, kind: Any, fault: Any, traceback: Any) -> bool:
        self._tried.__exit__()
        # Without tracing there is nothing to suppress.
        return bool(self._leave(kind, fault, traceback)) and not isinstance(fault, YotaError)


def _method(context: Any, name: str) -> Any:
    own = special(context, name)
    if own is not None:
        return lambda *args: call(own, args, {})
    method = getattr(type(context), name, None)
    if method is None:
        raise TypeError(f"'{type(context).__name__}' object does not support the context manager protocol")
    return lambda *args: method(context, *args)
