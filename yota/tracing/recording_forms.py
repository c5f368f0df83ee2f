"""What records in the place of built-in functions, and of objects that hold functions: methods, tuples, partials."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from yota.ir.callables import original
from yota.tracing.creation import CREATION
from yota.tracing.current import current, paused
from yota.tracing.methods import is_traced, is_tracer


class _Kind(type):
    """Makes `Type` behave as `type`, but for traced values."""

    def __call__(cls, *args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords and is_tracer(args[0]):
            return args[0].__class__
        return type(*args, **keywords)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, other: Any) -> bool:
        return issubclass(other, type)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is type

    def __hash__(cls) -> int:
        return hash(type)


class Type(type, metaclass=_Kind):
    """Stands for `type` where a function says ``type(x) is np.ndarray``, which no class can answer for itself."""


def is_instance(value: Any, kinds: Any) -> bool:
    """Stands for `isinstance`: a traced number is no `Iterable`, as the class of what stands for it is."""
    kinds = tuple(map(original, kinds)) if isinstance(kinds, tuple) else original(kinds)
    return isinstance(_shown(value), kinds)


def has_attribute(value: Any, name: str) -> bool:
    """Stands for `hasattr`: a traced number has no length, as the class of what stands for it has."""
    return hasattr(_shown(value), name)


def attribute(value: Any, name: str, *default: Any) -> Any:
    """Stands for `getattr`, which finds the attributes of the plain value."""
    shown = _shown(value)
    if shown is value or not hasattr(shown, name) or name == "__array_priority__":
        return getattr(shown, name, *default)
    if not hasattr(type(value), name):
        raise value._trace.refuse(f"{name} is an attribute of plain values alone.", "Use NumPy's functions.")
    return getattr(value, name)


def _shown(value: Any) -> Any:
    """The plain value that a traced one stands for."""
    return value._value() if is_tracer(value) and value._plain() is value else value


BUILT_IN_FORMS: Mapping[str, Any] = {
    "type": Type,
    "isinstance": is_instance,
    "hasattr": has_attribute,
    "getattr": attribute,
}
"""Recording forms of built-in functions, by name in the namespaces of traced code."""

LONGEST = 200
"""Items of a container that are looked at: tables of data are longer than those of functions."""
_DEEPEST = 8
"""Functions in tuples in tuples: how deep they are looked for."""


def recording_form(forms: Mapping[int, Any], value: Any, depth: int = 0) -> Any:
    """What records in the place of ``value`` by ``forms``; ``value`` itself if it holds no function that does."""
    known = forms.get(id(value))
    if known is not None:
        return known
    make = REBUILT.get(type(value))
    if make is None and not issubclass(type(value), tuple):
        return value
    if make is None and hasattr(value, "_make"):
        make = _of_tuple
    if make is None or depth > _DEEPEST:
        return value
    return make(value, lambda each: recording_form(forms, each, depth + 1))


def _of_partial(value: Any, form: Callable[[Any], Any]) -> Any:
    parts = [value.func, *value.args, *value.keywords.values()]
    forms = list(map(form, parts))
    if all(map(operator.is_, parts, forms)):
        return value
    function, *given = forms[: 1 + len(value.args)]
    named = dict(zip(value.keywords, forms[1 + len(value.args) :], strict=True))
    return functools.partial(function, *given, **named)


def _of_function(value: Any, form: Callable[[Any], Any]) -> Any:
    """A static or a bound method."""
    found = form(value.__func__)
    if found is value.__func__:
        return value
    return staticmethod(found) if isinstance(value, staticmethod) else types.MethodType(found, value.__self__)


def _of_tuple(value: Any, form: Callable[[Any], Any]) -> Any:
    if type(value) is tuple and len(value) > LONGEST:
        return value
    forms = list(map(form, value))
    return value if all(map(operator.is_, value, forms)) else getattr(value, "_make", tuple)(forms)


def _of_cache(value: Any, form: Callable[[Any], Any]) -> Any:
    """A cached function that is not asked for its cache with traced values: it would keep them."""
    inner = form(value.__wrapped__)

    @functools.wraps(value)
    def call(*args: Any, **keywords: Any) -> Any:
        if current() is not None and is_traced([*args, *keywords.values()]):
            return inner(*args, **keywords)
        with paused():
            return value(*args, **keywords)

    for name in ("cache_info", "cache_clear", "cache_parameters"):
        setattr(call, name, getattr(value, name))
    call.__wrapped__ = inner
    return call


def _of_vectorized(value: Any, form: Callable[[Any], Any]) -> Any:
    """A function that `numpy.vectorize` made of another: on traced values it calls that for each element."""
    inner = form(value.pyfunc)
    if value.signature or value.excluded:
        return value

    @functools.wraps(value)
    def call(*args: Any, **keywords: Any) -> Any:
        trace = current()
        return (value if trace is None else CREATION["vectorize"](trace, inner, value.otypes))(*args, **keywords)

    return call


REBUILT: dict[type, Callable[[Any, Callable[[Any], Any]], Any]] = {
    functools.partial: _of_partial,
    staticmethod: _of_function,
    types.MethodType: _of_function,
    tuple: _of_tuple,
    functools._lru_cache_wrapper: _of_cache,
    np.vectorize: _of_vectorized,
}
"""By type, how an object that holds functions is rebuilt with recording ones."""
