"""Calling a primitive that has a rule: positional and keyword arguments bound to the rule's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import RuleError
from yota.ir.primitive import Primitive
from yota.rules import calls
from yota.tracing.methods import is_tracer

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["bind", "hashable"]


def bind(trace: Trace, known: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record ``known(*args, **kwargs)`` by the signature that its rule declares."""
    rule = trace.registry.rules(known.name)[0]
    given = dict(kwargs)
    arguments = list(args)
    for parameter in [each for each in rule.operands if not each.variadic][len(arguments) :]:
        if parameter.name not in given:
            raise TypeError(f"{known.name}() misses the argument {parameter.name!r}")
        arguments.append(given.pop(parameter.name))
    try:
        operands, static = calls.bind(rule, arguments, given)
    except RuleError as fault:
        names = ", ".join(parameter.name for parameter in rule.parameters)
        raise trace.refuse(
            f"the rule of {known.name} does not know this call: {fault}.", f"It takes {names}."
        ) from None
    return trace.apply(known, operands, {name: hashable(trace, value) for name, value in static.items()})


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
