"""Statements that catch exceptions and clean up: try and with."""

from __future__ import annotations

import ast
import sys
from typing import Any

from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.assignment import assign
from yota.tracing.interpreter.calls import call, ready, special
from yota.tracing.interpreter.effects import enters
from yota.tracing.interpreter.tables import Running, block, evaluate, execute
from yota.tracing.state import current


@block(ast.Try)
def _try(activation: Activation, part: ast.Try) -> Running:
    try:
        completion = yield from _guarded(activation, part)
    finally:
        # What the last block returns or raises takes the place of what happened before.
        last = yield from execute(activation, part.finalbody)
        if last is not None:
            return last  # noqa: B012
    return completion


def _guarded(activation: Activation, part: ast.Try) -> Running:
    try:
        completion = yield from execute(activation, part.body)
    except BaseException as fault:
        handler = _handler(activation, part, fault)
        if handler is None:
            raise
        return (yield from _handled(activation, handler, fault))
    if completion is not None:
        return completion
    return (yield from execute(activation, part.orelse))


def _handler(activation: Activation, part: ast.Try, fault: BaseException) -> ast.ExceptHandler | None:
    for handler in part.handlers:
        if handler.type is None or isinstance(fault, evaluate(activation, handler.type)):
            return handler
    return None


def _handled(activation: Activation, handler: ast.ExceptHandler, fault: BaseException) -> Running:
    if handler.name is None:
        return (yield from execute(activation, handler.body))
    activation.store(handler.name, fault)
    try:
        return (yield from execute(activation, handler.body))
    finally:
        activation.function().variables.pop(handler.name, None)


@block(ast.With)
def _with(activation: Activation, part: ast.With) -> Running:
    return (yield from _managed(activation, part.items, part.body))


def _managed(activation: Activation, items: list[ast.withitem], body: list[ast.stmt]) -> Running:
    if not items:
        return (yield from execute(activation, body))
    item = items[0]
    context = evaluate(activation, item.context_expr)
    activation.part = item.context_expr
    if hasattr(context, "gen") and (trace := current()) is not None:
        trace.hold()  # a generator of the user's that contextlib runs
    ready(context)
    if special(context, "__enter__") is None:
        enters(context)
    leave = _special(context, "__exit__")
    value = _special(context, "__enter__")()
    completion = None
    try:
        if item.optional_vars is not None:
            assign(activation, item.optional_vars, value)
        completion = yield from _managed(activation, items[1:], body)
    except BaseException:
        if not leave(*sys.exc_info()):
            raise
        return None
    leave(None, None, None)
    return completion


def _special(context: Any, name: str) -> Any:
    own = special(context, name)
    if own is not None:
        return lambda *args: call(own, args, {})
    method = getattr(type(context), name, None)
    if method is None:
        raise TypeError(f"'{type(context).__name__}' object does not support the context context protocol")
    return lambda *args: method(context, *args)
