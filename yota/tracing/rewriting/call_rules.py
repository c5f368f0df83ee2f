"""What a call does: which functions run from their source, which are recorded, and which are called as they are."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import Any

import numpy as np

from yota.structures import package_of
from yota.tracing.array_protocols import overriding
from yota.tracing.creation import CREATION
from yota.tracing.current import current
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.rewriting.builtin import BUILT_IN, IN_PLACE
from yota.tracing.rewriting.definition import is_readable
from yota.tracing.rewriting.effects import made, own_if_new
from yota.tracing.rewriting.native_calls import form_of, natively, reading, taken
from yota.tracing.rewriting.rewritten import from_source, rule
from yota.tracing.source_lines import rewritten
from yota.tracing.subclassed import Subclassed
from yota.tracing.traced_text import followed
from yota.tracing.tracer import Tracer

_VECTORIZE: Any = inspect.unwrap(np.vectorize)
_OF_OPERANDS = frozenset("choose clip compress dot max min prod repeat searchsorted sum take".split())
"""Methods of arrays that take operands and write into nothing."""


@rule("call")
def called(function: Any, /, *args: Any, **keywords: Any) -> Any:
    """``function(*args, **keywords)``, as rewritten code calls it."""
    kind = type(function)
    if kind is FunctionType and id(function.__code__) in rewritten:
        return _run(function, args, keywords)
    if (kind is BuiltinFunctionType or kind is type) and (in_place := IN_PLACE.get(function)) is not None:
        return in_place(sys._getframe(1), args)
    return function(*args, **keywords) if current() is None else call(function, args, keywords)


def _run(function: FunctionType, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Call a rewritten function."""
    found = function(*args, **keywords)
    own_if_new(found)
    return found


def call(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """What ``function(*args, **keywords)`` gives."""
    trace = current()
    known = None if trace is None else trace.intercepted.get(id(function))
    if known is not None:
        return known(*args, **keywords)
    form = form_of(function)
    if form is not None and trace is not None:
        texts, found = len(trace.texts), form(*map(taken, args), **keywords)
        own_if_new(found)
        return found if function in BUILT_IN else followed(trace, form, args, keywords, texts, found)
    if type(function) is FunctionType:
        if is_readable(function):
            return _run(from_source(function), args, keywords)
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
    """What records a method of NumPy's arrays called by itself, or a plain array's that takes traced values."""
    if _is_of_values(function) and args and is_tracer(args[0]):
        plain = args[0]._plain() is args[0]
        return getattr(Tracer if plain else Subclassed, function.__name__, None)
    owner = getattr(function, "__self__", None)
    trace, name = current(), getattr(function, "__name__", "")
    if trace and type(owner) is np.ndarray and name in _OF_OPERANDS and is_traced([*args, *keywords.values()]):
        return getattr(trace.traced(owner), name)
    if name != "__array_ufunc__" or not isinstance(owner, np.ndarray) or is_tracer(owner):
        return None
    inputs = args[2:]
    others = (each for each in (*inputs, *keywords.values()) if not is_tracer(each))
    if not is_traced([*inputs, *keywords.values()]) or overriding("__array_ufunc__", others) is not None:
        return None
    return lambda ufunc, method, *inputs, **keywords: getattr(ufunc, method)(*inputs, **keywords)


def _is_of_values(function: Any) -> bool:
    """Whether it is a compiled method of arrays or of float, as found on the class."""
    kinds = (MethodDescriptorType, WrapperDescriptorType)
    return type(function) in kinds and function.__objclass__ in (np.ndarray, float)


def _method(method: MethodType, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    inner: Any = method.__func__
    if type(inner) is not FunctionType:
        return call(inner, (method.__self__, *args), keywords)
    form = form_of(inner)
    if form is not None:
        return form(method.__self__, *args, **keywords)
    if is_readable(inner):
        return _run(from_source(inner), (method.__self__, *args), keywords)
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
    trace = current()
    if trace is not None and type(function).__module__ == "numba.np.ufunc.dufunc":
        return CREATION["vectorize"](trace, taken(function._dispatcher.py_func))
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
    readable = (is_known[0] or make is float.__new__ or is_readable(make), is_known[1] or type(begin) is FunctionType)
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


_OWN = frozenset((*sys.stdlib_module_names, "yota"))
_HEAP = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: compiled classes are not made on the heap, as a rule."""
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


def descriptor(value: Any, name: str, method: str) -> Callable[..., Any] | None:
    """The readable ``method``, as ``__set__``, of the descriptor that is an attribute of ``value``'s class, if any."""
    found: Any = next((vars(base)[name] for base in type(value).__mro__ if name in vars(base)), None)
    if isinstance(found, property):
        function = found.fget if method == "__get__" else found.fset
        return function if is_readable(function) else None
    kind: Any = type(found)
    return special(found, method) if _is_users(kind) else None


def set_by_class(receiver: Any, name: str, value: Any) -> bool:
    """Whether an attribute is a property or another descriptor that a class of the user's sets, as it then has."""
    setter = descriptor(receiver, name, "__set__")
    if setter is not None:
        call(setter, (receiver, value), {})
    return setter is not None


@functools.cache
def _is_users(kind: Any) -> bool:
    """Whether a class comes from neither Python nor the libraries that traced values know."""
    return package_of(kind) not in (*_OWN, "numpy", "scipy")


def ready(*values: Any) -> None:
    """Have recording forms in place where Python may run code of classes of the user's or of libraries by itself."""
    trace = current()
    if trace is not None and any(map(_has_code, map(type, values))):
        trace.hold()


@functools.cache
def _has_code(kind: type) -> bool:
    """Whether a class that is not Python's is written in Python."""
    return bool(kind not in _OTHERS and kind.__flags__ & _HEAP and package_of(kind) not in _OWN)


def is_generated(kind: type, begin: Any) -> bool:
    """Whether ``begin`` is what `dataclasses.dataclass` wrote as the ``__init__`` of a class."""
    owner = next((each for each in kind.__mro__ if vars(each).get("__init__") is begin), None)
    return owner is not None and "__dataclass_fields__" in vars(owner) and begin.__code__.co_filename == "<string>"


def initialise(
    new: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], call: Callable[[Any, Any, Any], Any]
) -> None:
    """Set the fields of ``new``, an object of a dataclass, as the ``__init__`` does that was written for it."""
    kind: Any = type(new)
    bound = inspect.signature(kind.__init__).bind(new, *args, **keywords)
    frozen = kind.__dataclass_params__.frozen
    later = []
    for each in kind.__dataclass_fields__.values():
        sort = each._field_type.name
        if sort == "_FIELD_CLASSVAR":
            continue
        if each.name in bound.arguments:
            value = bound.arguments[each.name]
        elif each.default is not dataclasses.MISSING:
            value = each.default
        elif each.default_factory is not dataclasses.MISSING:
            value = call(each.default_factory, (), {})
        else:
            continue
        if sort == "_FIELD_INITVAR":
            later.append(value)
        elif not set_by_class(new, each.name, value):
            (object.__setattr__ if frozen else setattr)(new, each.name, value)
    if hasattr(kind, "__post_init__"):
        call(kind.__post_init__, (new, *later), {})
