"""Calls that Python makes itself: what they are given, and what their errors mean."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from yota.errors import YotaError
from yota.tracing.array_protocols import follows
from yota.tracing.captures import copied, frozen
from yota.tracing.creation import CREATION
from yota.tracing.current import current
from yota.tracing.library_calls import library_call_of
from yota.tracing.methods import is_traced, is_tracer, transformed
from yota.tracing.namespace import prepared
from yota.tracing.patching import ABSENT, content
from yota.tracing.rewriting.builtin import BUILT_IN
from yota.tracing.rewriting.definition import is_marked, is_readable
from yota.tracing.rewriting.effects import is_done, own_if_new, recorded_if_new
from yota.tracing.rewriting.rewritten import standing_for
from yota.tracing.source_lines import is_library_file, raised_at
from yota.tracing.trace import Trace
from yota.tracing.traced_text import followed

_DISPATCHING: Any = type(np.sum)
"""The type of NumPy's functions that other kinds of arrays can take over; lists do not."""
_TAKE_FUNCTIONS = (map, filter, sorted, min, max, iter, functools.reduce)
"""Of Python's own functions, those that call what they are given."""


def form_of(function: Any) -> Callable[..., Any] | None:
    """What records a call of ``function``; None if it is called as it is."""
    trace = current()
    recorded = None if trace is None else _built_in().get(id(function)) or prepared().forms.get(id(function))
    if recorded is None or trace is None:
        return None
    form = getattr(recorded, "form", None)
    if form is not None:
        return functools.partial(form, trace)
    if getattr(function, "__module__", None) not in ("builtins", "math", "cmath"):
        trace.hold()  # what it is recorded as may be written in terms of NumPy's creation functions
    return recorded


@functools.cache
def _built_in() -> dict[int, Callable[..., Any]]:
    """The recorded forms of built-in functions by identity; operators are known once the rules are loaded."""
    return {id(each): form for each, form in BUILT_IN.items()}


def _ufunc_operand(trace: Trace, value: Any) -> Any:
    """A list or tuple that holds traced values, as the array that a ufunc would make of it."""
    return CREATION["array"](trace, value) if type(value) in (list, tuple) and is_traced(value) else value


def as_operand(value: Any, other: Any) -> Any:
    """``value`` for an operator whose ``other`` operand may be an array of NumPy's."""
    trace = current() if isinstance(other, np.ndarray) else None
    return value if trace is None else _ufunc_operand(trace, value)


def _are_numbers(value: Any) -> bool:
    """Whether a list holds numbers, or lists of numbers: NumPy's functions take it as an array."""
    if type(value) not in (list, tuple):
        return False
    return all(_are_numbers(each) if type(each) in (list, tuple) else not np.ndim(each) for each in value)


def natively(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Let Python call ``function``; functions of the user's among the arguments run from their source all the same."""
    if any(function is each for each in _TAKE_FUNCTIONS):
        args = tuple(each if (form := form_of(each)) is None else form for each in args)
    if _takes_functions(function):
        args = tuple(map(taken, args))
        keywords = {name: taken(value) for name, value in keywords.items()}
    trace = current()
    if trace is None:
        return function(*args, **keywords)
    if type(function) is np.ufunc or type(getattr(function, "__self__", None)) is np.ufunc:
        args = tuple(_ufunc_operand(trace, each) for each in args)
    elif type(function) is _DISPATCHING:
        args = tuple(_ufunc_operand(trace, each) if _are_numbers(each) else each for each in args)
    if is_done(function, args, keywords):
        return None
    if not _is_safe(trace, function):
        trace.hold()
    texts = len(trace.texts)
    try:
        found = function(*args, **keywords)
    except (ArithmeticError, StopIteration):
        raise  # as NumPy raises it for values, and as an iterator ends
    except Exception as fault:  # noqa: BLE001  (whatever the function raises for traced values)
        if trace.deep and is_traced([*args, *keywords.values()]) and not trace.varies((*args, *keywords.values())):
            # Compiled code that wants plain arrays, and writes none of them.
            return function(*_read_only(args), **_read_only(dict(keywords)))
        raise _explained(trace, function, args, keywords, fault) from fault.__cause__
    found = recorded_if_new(found)
    own_if_new(found)
    return followed(trace, function, args, keywords, texts, found)


def _explained(
    trace: Trace, function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], fault: Exception
) -> Exception:
    """The error of a call, or, where plain values raise none, that it cannot take traced ones."""
    if isinstance(fault, YotaError) or not is_traced([*args, *keywords.values()]) or raised_at(fault) is not None:
        return fault
    try:
        with np.errstate(all="ignore"):
            function(*_plain(args), **_plain(dict(keywords)))
    except Exception as other:  # noqa: BLE001  (whatever the function raises is its user's)
        return other
    found = library_call_of(function, args, keywords)
    return trace.refuse(
        f"a traced value is given to {found.name}, which {found.kind()} ({type(fault).__name__}: {fault}).",
        f"Use NumPy's functions, or do it outside of the function. {found.advice()}",
    )


def _plain(value: Any) -> Any:
    """Arguments with a value of its own in the place of each traced one."""
    return transformed(value, lambda each: copied(each._value()) if is_tracer(each) else each)


def _read_only(value: Any) -> Any:
    """Arguments with the value itself in the place of each traced constant, which nobody may write."""
    return transformed(value, lambda each: frozen(each._value()) if is_tracer(each) else each)


@follows
def taken(value: Any) -> Any:
    """A function of the user's as one that runs from its source; anything else as it is."""
    if is_readable(value):
        return standing_for(value)
    if type(value) is MethodType and is_readable(value.__func__):
        return functools.partial(standing_for(value.__func__), value.__self__)  # type: ignore[arg-type]
    if isinstance(value, functools.partial) and is_readable(value.func):
        return functools.partial(standing_for(value.func), *value.args, **value.keywords)  # type: ignore[arg-type]
    return value


def _takes_functions(function: Any) -> bool:
    """Whether something calls functions that it is given, rather than keeping them or looking at them."""
    if any(function is each for each in _TAKE_FUNCTIONS):
        return True
    if isinstance(function, type):
        return function.__module__ not in ("builtins", "functools")
    code = getattr(function, "__code__", None) or getattr(getattr(function, "__func__", None), "__code__", None)
    return (code is not None and is_library_file(code.co_filename)) or isinstance(function, np.ufunc)


def _is_safe(trace: Trace, function: Any) -> bool:
    """Whether nothing that a library writes in Python can meet traced values in the call."""
    owner = getattr(function, "__self__", None)
    if type(function) is MethodType and is_tracer(owner):
        function = getattr(np, function.__name__, None)
    if isinstance(function, np.ufunc) or (function is not None and trace.registry.find(function) is not None):
        return True
    return type(function).__name__ == "builtin_function_or_method" and (
        owner is None or inspect.ismodule(owner) or type(owner) in (list, dict, str, set, tuple)
    )


_MOST_FOLLOWED = 4
"""Such functions that call one another: how many are followed."""


def reading(function: FunctionType, form: Callable[[Any], Any], depth: int = 0) -> FunctionType:
    """``function`` with ``form`` applied to the functions that it calls by its global variables and closure."""
    code = function.__code__
    if (is_library_file(code.co_filename) and not code.co_filename.startswith("<")) or is_marked(function):
        return function

    def of(value: Any) -> Any:
        found = form(value)
        if found is value and type(value) is FunctionType and depth < _MOST_FOLLOWED:
            return reading(value, form, depth + 1)
        return found

    found = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    cells = [(cell, content(cell)) for cell in function.__closure__ or ()]
    forms = {name: of(value) for name, value in found.items()}
    inner = [cell if (new := of(held)) is held or held is ABSENT else CellType(new) for cell, held in cells]
    if all(forms[name] is value for name, value in found.items()) and all(
        one is cell for one, (cell, _) in zip(inner, cells, strict=True)
    ):
        return function
    made = FunctionType(
        code, {**function.__globals__, **forms}, function.__name__, function.__defaults__, tuple(inner) or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
