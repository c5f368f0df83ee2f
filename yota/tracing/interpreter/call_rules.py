"""What a call does: which functions run from their source, which are recorded, and which are called as they are."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, MethodDescriptorType, MethodType
from typing import Any

import numpy as np

from yota.errors import YotaError
from yota.structures import package_of
from yota.tracing.array_protocols import follows, overriding
from yota.tracing.captures import copied, frozen
from yota.tracing.creation import CREATION
from yota.tracing.current import current
from yota.tracing.interpreter import interpreted_bodies as functions
from yota.tracing.interpreter.builtin import BUILT_IN
from yota.tracing.interpreter.definition import is_readable
from yota.tracing.interpreter.effects import is_done, made, own_if_new, recorded_if_new
from yota.tracing.interpreter.interpreted_bodies import initialise, is_generated, reading
from yota.tracing.library_calls import library_call_of
from yota.tracing.methods import is_traced, is_tracer, transformed
from yota.tracing.namespace import recorders
from yota.tracing.source_lines import is_library_file, raised_at
from yota.tracing.subclassed import Subclassed
from yota.tracing.trace import Trace
from yota.tracing.traced_text import followed
from yota.tracing.tracer import Tracer

_VECTORIZE: Any = inspect.unwrap(np.vectorize)
_DISPATCHING: Any = type(np.sum)
"""The type of NumPy's functions that other kinds of arrays can take over; lists do not."""
_TAKE_FUNCTIONS = (map, filter, sorted, min, max, iter, functools.reduce)
"""Of Python's own functions, those that call what they are given."""


def call(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What ``function(*args, **keywords)`` gives."""
    trace = current()
    known = None if trace is None else trace.intercepted.get(id(function))
    if known is not None:
        return known(*args, **keywords)
    form = _form_of(function)
    if form is not None and trace is not None:
        texts, found = len(trace.texts), form(*map(taken, args), **keywords)
        own_if_new(found)
        return found if function in BUILT_IN else followed(trace, form, args, keywords, texts, found)
    if type(function) is FunctionType:
        if is_readable(function):
            return functions.run(function, args, keywords)
        return natively(reading(function, taken), args, keywords)
    if type(function) is MethodType:
        return _method(function, args, keywords)
    if isinstance(function, functools.partial):
        return call(function.func, (*function.args, *args), {**function.keywords, **keywords})
    if isinstance(function, type):
        return _construct(function, args, keywords)
    inner = _inner(function, args, keywords) or _of_array(function, args, keywords)
    if inner is not None:
        return call(inner, args, keywords)
    return natively(function, args, keywords)


def _of_array(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What records a method of NumPy's arrays by itself, as ``np.ndarray.view(x)`` and ``super().__array_ufunc__``."""
    if type(function) is MethodDescriptorType and function.__objclass__ is np.ndarray and args and is_tracer(args[0]):
        plain = args[0]._plain() is args[0]
        return getattr(Tracer if plain else Subclassed, function.__name__, None)
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") != "__array_ufunc__" or not isinstance(owner, np.ndarray) or is_tracer(owner):
        return None
    inputs = args[2:]
    others = (each for each in (*inputs, *keywords.values()) if not is_tracer(each))
    if not is_traced([*inputs, *keywords.values()]) or overriding("__array_ufunc__", others) is not None:
        return None
    return lambda ufunc, method, *inputs, **keywords: getattr(ufunc, method)(*inputs, **keywords)


def _form_of(function: Any) -> Callable[..., Any] | None:
    """What records a call of ``function``; None if it is called as it is."""
    trace = current()
    recorded = None if trace is None else _built_in().get(id(function)) or recorders().get(id(function))
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
    """The recorded forms of built-in functions by identity; operators are known once the interpreter is loaded."""
    return {id(each): form for each, form in BUILT_IN.items()}


def _method(method: MethodType, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    inner: Any = method.__func__
    if type(inner) is not FunctionType:
        return call(inner, (method.__self__, *args), keywords)
    if is_readable(inner):
        return functions.run(inner, (method.__self__, *args), keywords)
    form = _form_of(inner)
    if form is not None:
        return form(method.__self__, *args, **keywords)
    return natively(MethodType(reading(inner, taken), method.__self__), args, keywords)


def _inner(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The function that an object calls which is none itself; None if that is not known."""
    if isinstance(function, functools._lru_cache_wrapper):
        # A cache would keep traced values, or give numbers that were computed before.
        return function.__wrapped__ if is_traced([*args, *keywords.values()]) else None
    if isinstance(function, _VECTORIZE):
        trace = current()
        if trace is None or function.otypes or function.signature or function.excluded:
            return None
        return CREATION["vectorize"](trace, taken(function.pyfunc))
    compiled = inspect.getattr_static(function, "py_func", None)  # a function that Numba compiles
    if is_readable(compiled):
        return compiled
    owner = getattr(function, "__self__", None)
    if type(owner).__name__ == "SuperLU" and function.__name__ == "solve":
        from yota.tracing.scipy.systems import solved_by

        return solved_by(owner)
    own = inspect.getattr_static(type(function), "__call__", None)
    return MethodType(own, function) if type(own) is FunctionType else None


def _construct(kind: type, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """An object of a class; of the user's, by the source of what makes and initialises it."""
    make: Any = kind.__new__
    begin: Any = getattr(kind, "__init__", None)
    is_known = (make is object.__new__, begin is object.__init__)
    readable = (is_known[0] or is_readable(make), is_known[1] or type(begin) is FunctionType)
    if type(kind).__call__ is not type.__call__ or all(is_known) or not all(readable):
        return natively(kind, args, keywords)
    new = made(object.__new__(kind)) if is_known[0] else call(make, (kind, *args), keywords)
    if isinstance(new, kind) and not is_known[1]:
        if is_generated(kind, begin):
            initialise(new, args, keywords, call)
        else:
            call(begin, (new, *args), keywords)
    return new


def special(value: Any, name: str) -> Callable[..., Any] | None:
    """The method of that name, as ``__add__``, of an object of the user's; None where Python may well look for it."""
    found = method_of(type(value), name)
    return None if found is None else MethodType(found, value)


_OTHERS = frozenset((Tracer, bool, int, float, complex, str, list, tuple, dict, np.ndarray, np.float64))
"""Classes that are not the user's, among those of most values."""


def method_of(kind: type, name: str) -> FunctionType | None:
    """The readable function that is a class's method of that name; None if there is none, or it is of another kind."""
    if kind in _OTHERS:
        return None
    for base in kind.__mro__:
        if name in vars(base):
            found = vars(base)[name]
            return found if is_readable(found) else None
    return None


@functools.cache
def _is_users(kind: Any) -> bool:
    """Whether a class comes from neither Python nor the libraries that traced values know."""
    return package_of(kind) not in (*sys.stdlib_module_names, "yota", "numpy", "scipy")


def ready(*values: Any) -> None:
    """Have recording forms in place where Python may run code of the user's classes by itself."""
    trace = current()
    kinds: list[Any] = list(map(type, values))
    if trace is not None and any(map(_is_users, kinds)):
        trace.hold()


def _ufunc_operand(trace: Trace, value: Any) -> Any:
    """A list or tuple that holds traced values, as the array that a ufunc would make of it."""
    return CREATION["array"](trace, value) if type(value) in (list, tuple) and is_traced(value) else value


def _are_numbers(value: Any) -> bool:
    """Whether a list holds numbers, or lists of numbers: NumPy's functions take it as an array."""
    if type(value) not in (list, tuple):
        return False
    return all(_are_numbers(each) if type(each) in (list, tuple) else not np.ndim(each) for each in value)


def natively(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Let Python call ``function``; functions of the user's among the arguments run from their source all the same."""
    if any(function is each for each in _TAKE_FUNCTIONS):
        args = tuple(each if (form := _form_of(each)) is None else form for each in args)
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
        return functions.standing_for(value)
    if type(value) is MethodType and is_readable(value.__func__):
        return functools.partial(functions.standing_for(value.__func__), value.__self__)  # type: ignore[arg-type]
    if isinstance(value, functools.partial) and is_readable(value.func):
        return functools.partial(functions.standing_for(value.func), *value.args, **value.keywords)  # type: ignore[arg-type]
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
