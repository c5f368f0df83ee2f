"""What stands for functions, and for what is made of them, while a trace runs: partial ones, tuples, caches, `type`."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

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
    return isinstance(value._value() if is_tracer(value) and value._plain() is value else value, kinds)


STANDING: Mapping[str, Any] = {"type": Type, "isinstance": is_instance}
"""What stands for built-in functions in the namespaces of traced code."""
_LONGEST = 200
"""Items of a tuple that are looked at."""
_DEEPEST = 8
"""Functions in tuples in tuples: how deep they are looked for."""


def form(forms: Mapping[int, Any], value: Any, depth: int = 0) -> Any:
    """What records in the place of ``value``; ``value`` itself if it holds no function that does.

    forms: what records, by the identity of the function it stands for.
    depth: in how many others it is.
    """
    known = forms.get(id(value))
    if known is not None:
        return known
    make = _HOLDERS.get(type(value))
    if make is None and isinstance(value, tuple) and hasattr(value, "_make"):
        make = _of_tuple
    if make is None or depth > _DEEPEST:
        return value
    return make(value, lambda each: form(forms, each, depth + 1))


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
    if type(value) is tuple and len(value) > _LONGEST:
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


_HOLDERS: dict[type, Callable[[Any, Callable[[Any], Any]], Any]] = {
    functools.partial: _of_partial,
    staticmethod: _of_function,
    types.MethodType: _of_function,
    tuple: _of_tuple,
    functools._lru_cache_wrapper: _of_cache,
    np.vectorize: _of_vectorized,
}
"""By type, how a value is made anew with functions that record in the places of those that it holds."""
