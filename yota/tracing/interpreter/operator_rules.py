"""Operators: Python's own, and those that classes of the user's define, which run from their source."""

from __future__ import annotations

import ast
import collections
import inspect
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from yota.tracing.current import current
from yota.tracing.interpreter.builtin import BUILT_IN
from yota.tracing.interpreter.call_rules import call, method_of, ready, special
from yota.tracing.interpreter.effects import IMMUTABLE, made, own_if_new, recorded_if_new, writes
from yota.tracing.methods import is_traced
from yota.tracing.source_lines import is_library_file
from yota.tracing.traced_text import joined, texts_in

_BINARY: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    getattr(ast, kind): (name, vars(operator)[f"__{name}__"], vars(operator)[f"__i{name}__"])
    for kind, name in zip(
        "Add Sub Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift RShift".split(),
        "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split(),
        strict=True,
    )
}
_UNARY: Mapping[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.UAdd: ("__pos__", operator.pos),
    ast.USub: ("__neg__", operator.neg),
    ast.Invert: ("__invert__", operator.invert),
}
_COMPARE: Mapping[type[ast.cmpop], tuple[str, str, Callable[[Any, Any], Any]]] = {
    getattr(ast, kind): (f"__{name}__", f"__{reflected}__", getattr(operator, name))
    for kind, name, reflected in zip(
        "Eq NotEq Lt LtE Gt GtE".split(), "eq ne lt le gt ge".split(), "eq ne gt ge lt le".split(), strict=True
    )
}

_CONCATENATORS = (type(np.r_), type(np.c_))
"""Of objects of NumPy's, those whose items are made in Python of what is in the brackets."""


def binary(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """``left + right`` and the like."""
    name, python, _ = _BINARY[kind]
    trace = current()
    texts = 0 if trace is None else len(trace.texts)
    found = _either(f"__{name}__", f"__r{name}__", python, left, right)
    found = recorded_if_new(found)
    if trace is not None:
        own_if_new(found)
        if kind is ast.Mod and isinstance(left, str):
            return joined(found, [*texts_in(right), *trace.texts[texts:]])
    return found


def in_place(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """What ``left += right`` leaves in the place of ``left``."""
    name, _, python = _BINARY[kind]
    own = special(left, f"__i{name}__")
    if own is not None:
        found = call(own, (right,), {})
        return binary(kind, left, right) if found is NotImplemented else found
    if _is_users(left, f"__{name}__") or _is_users(right, f"__r{name}__"):
        return binary(kind, left, right)
    ready(left, right)
    if not isinstance(left, IMMUTABLE):
        writes(left)
    return python(left, right)


def _is_users(value: Any, name: str) -> bool:
    return method_of(type(value), name) is not None


def _either(name: str, reflected: str, python: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The operator of one of the two operands, where that is written in Python; else Python's own way."""
    if not (_is_users(left, name) or _is_users(right, reflected)):
        ready(left, right)
        return python(left, right)
    attempts = [(left, name, right), (right, reflected, left)]
    overrides = method_of(type(right), reflected) is not method_of(type(left), reflected)
    if type(right) is not type(left) and issubclass(type(right), type(left)) and overrides:
        attempts.reverse()
    for one, method, other in attempts:
        own: Any = special(one, method)
        python_method = getattr(type(one), method, None)
        if own is not None:
            found = call(own, (other,), {})
        else:
            found = NotImplemented if python_method is None else python_method(one, other)
        if found is not NotImplemented:
            return found
    return python(left, right)  # its error, or its comparison by identity


def unary(kind: type[ast.unaryop], value: Any) -> Any:
    """``-value`` and the like."""
    name, python = _UNARY[kind]
    own = special(value, name)
    ready(value)
    found = python(value) if own is None else call(own, (), {})
    return recorded_if_new(found)


def compare(kind: type[ast.cmpop], left: Any, right: Any) -> Any:
    """``left < right`` and the like."""
    if kind is ast.Is:
        return left is right
    if kind is ast.IsNot:
        return left is not right
    if kind in (ast.In, ast.NotIn):
        own = special(right, "__contains__")
        ready(left, right)
        found = (left in right) if own is None else truth(call(own, (left,), {}))
        return found if kind is ast.In else not found
    name, reflected, python = _COMPARE[kind]
    found = _either(name, reflected, python, left, right)
    return recorded_if_new(found)


def truth(value: Any) -> bool:
    """Whether ``value`` counts as true; of a traced value, a guard."""
    if value is True or value is False:
        return value
    own = special(value, "__bool__")
    ready(value)
    return bool(value) if own is None else bool(call(own, (), {}))


def item(value: Any, index: Any) -> Any:
    """``value[index]``."""
    own = special(value, "__getitem__")
    trace = current()
    if type(value) is np.ndarray and trace is not None and is_traced(index):
        value = trace.traced(value)
    if type(value) in _CONCATENATORS and trace is not None:
        trace.hold()
    ready(value)
    if own is not None:
        return call(own, (index,), {})
    makes = type(value) is collections.defaultdict and index not in value
    found = value[index]
    if makes:
        made(found)
    found = recorded_if_new(found)
    own_if_new(found)
    return found


def set_item(value: Any, index: Any, new: Any) -> None:
    """``value[index] = new``."""
    own = special(value, "__setitem__")
    ready(value)
    if own is None:
        writes(value, traced=new)
        value[index] = new
    else:
        call(own, (index, new), {})


def iterate(value: Any) -> Any:
    """An iterator over ``value``."""
    own = special(value, "__iter__")
    if own is not None:
        value = call(own, (), {})
    ready(value)
    code = getattr(value, "gi_code", None)
    trace = current()
    if code is not None and trace is not None and not is_library_file(code.co_filename):
        trace.hold()
    if special(value, "__next__") is not None:
        return _steps(value)
    found = iter(value)
    if found is value and not inspect.isgenerator(value):
        writes(value)  # what is taken from it is gone
    return found


def _steps(value: Any) -> Any:
    while True:
        own = special(value, "__next__")
        assert own is not None
        try:
            found = call(own, (), {})
        except StopIteration:
            return
        yield found


for _operator, (_, _plain, _changing) in _BINARY.items():
    BUILT_IN[_plain], BUILT_IN[_changing] = partial(binary, _operator), partial(in_place, _operator)
for _sign, (_, _function) in _UNARY.items():
    BUILT_IN[_function] = partial(unary, _sign)
for _comparison, (_, _, _plain) in _COMPARE.items():
    BUILT_IN[_plain] = partial(compare, _comparison)
