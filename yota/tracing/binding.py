"""Calling a primitive that has a rule: positional and keyword arguments bound to the rule's signature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from yota.ir.primitive import Primitive
from yota.tracing.methods import is_tracer

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["bind", "hashable"]


def bind(trace: Trace, known: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record ``known(*args, **kwargs)`` by the signature that its rule declares."""
    rule = trace.registry.rules(known.name)[0]
    operands: list[Any] = []
    static: dict[str, Any] = {}
    rest = list(args)
    given = dict(kwargs)
    for parameter in rule.operands:
        if parameter.variadic:
            operands += rest
            rest = []
        elif rest:
            operands.append(rest.pop(0))
        elif parameter.name in given:
            operands.append(given.pop(parameter.name))
        else:
            raise TypeError(f"{known.name}() misses the argument {parameter.name!r}")
    for parameter in rule.keywords:
        if rest:
            static[parameter.name] = hashable(trace, rest.pop(0))
        elif parameter.name in given:
            static[parameter.name] = hashable(trace, given.pop(parameter.name))
        elif parameter.default is not None:
            static[parameter.name] = getattr(parameter.default, "value", None)
    if rest or given:
        extra = ", ".join([*map(repr, rest), *given])
        raise trace.refuse(
            f"{known.name} was called with {extra}, which its rule does not know.",
            f"Rule parameters: {', '.join(parameter.name for parameter in rule.parameters)}.",
        )
    return trace.apply(known, operands, static)


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
