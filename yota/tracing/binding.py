"""Calling a primitive that has a rule: positional and keyword arguments bound to the rule's signature."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import RuleError
from yota.ir.primitive import Primitive
from yota.rules import statics
from yota.rules.model import Literal, Parameter, Rule
from yota.tracing.methods import is_tracer

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


def bind(trace: Trace, known: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record ``known(*args, **kwargs)`` by the signature that its rule declares."""
    rule = trace.registry.rules(known.name)[0]
    fixed = [each for each in rule.operands if not each.variadic]
    absent = [each for each in fixed[len(args) :] if each.name not in kwargs]
    if any(each.default is None for each in absent):
        raise TypeError(f"{known.name}() misses the argument {absent[0].name!r}")
    if absent and rule.target is not None:
        _refuse_other_defaults(trace, rule, known.function, absent)
    try:
        operands, static = statics.bind(rule, list(args), kwargs)
    except RuleError as fault:
        names = ", ".join(parameter.name for parameter in rule.parameters)
        raise trace.refuse(
            f"the rule of {known.name} does not know this call: {fault}.", f"It takes {names}."
        ) from None
    return trace.apply(known, operands, {name: hashable(trace, value) for name, value in static.items()})


def _refuse_other_defaults(trace: Trace, rule: Rule, function: Any, absent: Sequence[Parameter]) -> None:
    """Refuse a call that leaves out operands whose defaults are others in the function than in its rule."""
    for parameter in absent:
        assert isinstance(parameter.default, Literal)
        try:
            own = inspect.signature(function).parameters[parameter.name].default
        except (TypeError, ValueError, KeyError):
            continue
        if not (isinstance(own, (int, float)) and own == parameter.default.value):
            raise trace.refuse(
                f"{rule.target} has {parameter.name}={own!r} by default, and its rule ({rule.file}:{rule.line}) "
                f"{parameter.default.value!r}.",
                f"Write the function's own default into the rule, or pass {parameter.name}.",
            )


def hashable(trace: Trace, value: Any) -> Any:
    """A static value that can be part of an op."""
    if is_tracer(value):
        if value.dtype.kind in "iub" and not value.ndim:
            return int(value)
        raise trace.refuse("a traced value is given where a static keyword is expected.", "Pass a plain number.")
    if isinstance(value, (list, tuple)):
        return tuple(hashable(trace, item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return tuple(hashable(trace, item) for item in value.tolist())
    hash(value)
    return value
