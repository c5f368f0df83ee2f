"""Functions of SciPy that call the function they are given: recorded where that gives traced values."""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

from yota.tracing.current import entered
from yota.tracing.forms import Trace, current, is_traced, is_tracer, np
from yota.tracing.methods import transformed
from yota.tracing.scipy.moving_branches import Branches


class _Traced(Exception):
    """A function that compiled code calls gave a traced value."""


class _Probing(threading.local):
    """Whether a function runs in this thread to see whether it gives traced values."""

    is_on = False


_probing = _Probing()
around: contextvars.ContextVar[tuple[int, ...]] = contextvars.ContextVar("around", default=())
"""The shape of the nodes of integrals around a call, where these are evaluated at once: limits may be arrays then."""


def calling(original: Callable[..., Any], form: Callable[..., Any]) -> Any:
    """``original``, which calls its first argument, as what ``form`` records if that gives traced values."""
    first = next(iter(inspect.signature(original).parameters), "")

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        if not args and first in keywords:
            args = (keywords.pop(first),)
        if trace is None or not args or not callable(args[0]):
            return original(*args, **keywords)
        function, args = args[0], args[1:]
        held: list[Any] = []
        inside((args, tuple(keywords.values())), held.append)
        takes_arrays = around.get() and any(map(np.ndim, args[:2]))
        if not takes_arrays and not is_traced([*args, *keywords.values(), *held]):
            given, named = inside((args, tuple(keywords.values())), functools.partial(_if_called, trace))
            # What SciPy's function calls in turn leaves it to that function to be recorded.
            is_outermost, _probing.is_on = not _probing.is_on, True
            branches = Branches(trace)
            try:
                probe = _plain(trace, function, branches)
                found = original(probe, *given, **dict(zip(keywords, named, strict=True)))
                if branches.vary():
                    raise trace.refuse(
                        f"what {original.__name__} calls gives plain numbers, and chooses them by a traced value.",
                        "Split the range at that value, or write the function of it with NumPy's functions.",
                    )
                return found
            except _Traced:
                if not is_outermost:
                    raise
            finally:
                _probing.is_on = not is_outermost
        return form(trace, function, *args, **keywords)

    return call


def inside(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` after ``change`` of what dicts and SciPy's constraints hold, also in lists and tuples."""
    if type(value) in (list, tuple):
        return type(value)([inside(each, change) for each in value])
    if type(value) is dict:
        return {name: change(each) for name, each in value.items()}
    if not hasattr(value, "lb"):
        return value
    found = copy.copy(value)
    vars(found).update({name: change(each) for name, each in vars(value).items()})
    return found


def _if_called(trace: Trace, value: Any) -> Any:
    return _plain(trace, value) if callable(value) else value


def _plain(trace: Trace, function: Callable[..., Any], branches: Branches | None = None) -> Callable[..., Any]:
    """``function`` with plain values in the place of traced constants that it gives; ``branches`` note its calls."""

    def untraced(value: Any) -> Any:
        # Another function that is called back may run in a trace of its own.
        if (current() or trace).varies(value):
            raise _Traced
        return value._value() if is_tracer(value) else value

    @functools.wraps(function, assigned=(), updated=())
    def call(*args: Any, **keywords: Any) -> Any:
        if branches is not None:
            branches.calls.append(len(trace.builder.guards))
        return transformed(function(*args, **keywords), untraced)

    return call


def concrete_function(trace: Trace, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with concrete results, whatever traced values it uses; nothing of it is recorded."""

    def call(*args: Any) -> Any:
        inner = Trace(trace.builder.name, trace.registry)
        inner.intercepted, inner.hold, inner.reads = trace.intercepted, trace.hold, trace.reads
        with entered(inner):
            found = function(*args)
            return found._value() if is_tracer(found) else found

    return call
