"""Which operand decides what an operator or a function gives, where one is an object of another class than NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from yota.structures import package_of
from yota.tracing.captures import computing_plainly
from yota.tracing.methods import ArrayMethods
from yota.tracing.source_lines import caller, is_rewritten

_Form = TypeVar("_Form", bound=Callable[[Any], Any])
_ABSENT: Any = object()
_PLAIN = {np.ndarray, np.float64, float, int}
"""Classes without forms of their own."""


def deferred(ufunc: Any, value: Any, other: Any, operands: tuple[Any, Any]) -> Any:
    """What an operator of a traced ``value`` gives by NumPy's rule if the ``other`` operand decides it; else None."""
    if _is_on_gpu(other):
        return None
    own = getattr(type(other), "__array_ufunc__", _ABSENT)
    if own is None:
        return NotImplemented
    if own not in (_ABSENT, np.ndarray.__array_ufunc__) and not isinstance(other, np.generic):
        # A number of Python's has the other form of the operator come first.
        return ufunc(*operands) if isinstance(value, (np.ndarray, np.generic)) else NotImplemented
    if getattr(other, "__array_priority__", -1.0) <= 0:
        return None
    refuse_computing([other])
    return NotImplemented


def refuse_computing(values: Iterable[Any]) -> None:
    """Refuse arrays that compute in a way of their own and have no protocol for it: their results would be plain."""
    for value in values:
        if issubclass(type(value), np.ndarray):
            computing_plainly(value)


def overriding(protocol: str, values: Iterable[Any]) -> Any:
    """The first of ``values``, none of them traced, whose class has a form of its own of NumPy's ``protocol``."""
    for value in values:
        kind = type(value)
        if kind in _PLAIN:
            continue
        own = None if issubclass(kind, ArrayMethods) or _is_on_gpu(value) else getattr(kind, protocol, None)
        if own is not None and own is not getattr(np.ndarray, protocol):
            return value
    return None


def _is_on_gpu(value: Any) -> bool:
    """Whether ``value`` is an array of CuPy's, which is recorded as NumPy's are."""
    return package_of(type(value)) == "cupy"


_forms: list[Callable[[Any], Any]] = []


def follows(form: _Form) -> _Form:
    """Have ``form`` give what runs a function from its source, where protocols call it."""
    _forms[:] = [form]
    return form


def answered(value: Any, protocol: str, *args: Any, **keywords: Any) -> Any:
    """What ``value``, whose class has a ``protocol`` of its own, answers; NotImplemented leaves it to NumPy to ask."""
    method = getattr(type(value), protocol)
    user = caller(3)
    form = source_form(method) if user is None or is_rewritten(user) else method
    return NotImplemented if form is method else form(value, *args, **keywords)


def source_form(function: Any) -> Any:
    """What runs a function of the user's from its source; the function itself where there is none."""
    return _forms[0](function) if _forms else function
