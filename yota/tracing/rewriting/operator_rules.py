"""Operators: Python's own, and those that classes of the user's define, which run from their source."""

from __future__ import annotations

import collections
import inspect
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from yota.tracing.current import current
from yota.tracing.methods import is_traced
from yota.tracing.rewriting.builtin import BUILT_IN
from yota.tracing.rewriting.call_rules import call, method_of, ready, special
from yota.tracing.rewriting.effects import IMMUTABLE, made, own_if_new, recorded_if_new, writes
from yota.tracing.rewriting.native_calls import as_operand
from yota.tracing.rewriting.rewriter import OPERATORS, SIGNS
from yota.tracing.rewriting.rewritten import RULES, rule
from yota.tracing.source_lines import is_library_file, rewritten
from yota.tracing.traced_text import joined, texts_in
from yota.tracing.tracer import Tracer

_REFLECTED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_NUMBERS = frozenset((Tracer, bool, int, float, complex, np.float64))
"""Classes whose operators Python may call at once."""
_CONCATENATORS = (type(np.r_), type(np.c_))
"""Of objects of NumPy's, those whose items are made in Python of what is in the brackets."""


def _binary(name: str, python: Callable[[Any, Any], Any], other: str = "") -> Callable[[Any, Any], Any]:
    """``left + right`` and the like; ``other`` is the comparison with exchanged operands."""
    own, reflected, formats = f"__{name}__", f"__{other or f'r{name}'}__", name == "mod"

    def compute(left: Any, right: Any) -> Any:
        if type(left) in _NUMBERS and type(right) in _NUMBERS:
            return python(left, right)
        trace = current()
        texts = 0 if trace is None else len(trace.texts)
        found = _either(own, reflected, python, left, right)
        found = recorded_if_new(found)
        if trace is not None:
            own_if_new(found)
            if formats and isinstance(left, str):
                return joined(found, [*texts_in(right), *trace.texts[texts:]])
        return found

    return compute


def _in_place(
    name: str, python: Callable[[Any, Any], Any], plainly: Callable[[Any, Any], Any]
) -> Callable[[Any, Any], Any]:
    """What ``left += right`` leaves in the place of ``left``; ``plainly`` computes ``left + right``."""
    own, forward, reflected = f"__i{name}__", f"__{name}__", f"__r{name}__"

    def compute(left: Any, right: Any) -> Any:
        if type(left) in _NUMBERS and type(right) in _NUMBERS:
            return python(left, right)
        method = special(left, own)
        if method is not None:
            found = call(method, (right,), {})
            return plainly(left, right) if found is NotImplemented else found
        if _is_users(left, forward) or _is_users(right, reflected):
            return plainly(left, right)
        ready(left, right)
        if not isinstance(left, IMMUTABLE):
            writes(left)
        return python(left, as_operand(right, left))

    return compute


def _is_users(value: Any, name: str) -> bool:
    return method_of(type(value), name) is not None


def _either(name: str, reflected: str, python: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """The operator of one of the two operands, where that is written in Python; else Python's own way."""
    if not (_is_users(left, name) or _is_users(right, reflected)):
        ready(left, right)
        return python(as_operand(left, right), as_operand(right, left))
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


def _unary(name: str, python: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``-value`` and the like."""
    method = f"__{name}__"

    def compute(value: Any) -> Any:
        if type(value) in _NUMBERS:
            return python(value)
        own = special(value, method)
        ready(value)
        found = python(value) if own is None else call(own, (), {})
        return recorded_if_new(found)

    return compute


@rule("contains")
def contains(left: Any, right: Any) -> bool:
    """``left in right``."""
    own = special(right, "__contains__")
    ready(left, right)
    return (left in right) if own is None else truth(call(own, (left,), {}))


RULES["lacks"] = lambda left, right: not contains(left, right)


@rule("asked")
def asked(value: Any) -> Any:
    """``value``, of which Python is about to ask whether it counts as true."""
    ready(value)
    return value


@rule("truth")
def truth(value: Any) -> bool:
    """Whether ``value`` counts as true; of a traced value, a guard."""
    if value is True or value is False:
        return value
    own = special(value, "__bool__")
    ready(value)
    return bool(value) if own is None else bool(call(own, (), {}))


@rule("item")
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


@rule("iterate")
def iterate(value: Any) -> Any:
    """An iterator over ``value``."""
    own = special(value, "__iter__")
    if own is not None:
        value = call(own, (), {})
    ready(value)
    code = getattr(value, "gi_code", None)
    trace = current()
    if code is not None and trace is not None and id(code) not in rewritten and not is_library_file(code.co_filename):
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


for _name in OPERATORS.values():
    _plain, _changing = vars(operator)[f"__{_name}__"], vars(operator)[f"__i{_name}__"]
    RULES[_name] = BUILT_IN[_plain] = _binary(_name, _plain)
    RULES[f"i{_name}"] = BUILT_IN[_changing] = _in_place(_name, _changing, RULES[_name])
for _name in SIGNS.values():
    RULES[_name] = BUILT_IN[vars(operator)[_name]] = _unary(_name, vars(operator)[_name])
for _name, _other in _REFLECTED.items():
    RULES[_name] = BUILT_IN[vars(operator)[_name]] = _binary(_name, vars(operator)[_name], _other)
