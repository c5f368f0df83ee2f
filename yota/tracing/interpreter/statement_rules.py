"""Statements and definitions: those that are simple, that choose and repeat, that catch exceptions and clean up."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from yota.errors import YotaError
from yota.structures import package_of
from yota.tracing.current import current
from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import (
    Activation,
    Completion,
    Running,
    Stopped,
    block,
    evaluate,
    execute,
    executes,
)
from yota.tracing.interpreter.assignment import assign
from yota.tracing.interpreter.call_rules import call, ready, special
from yota.tracing.interpreter.effects import enters
from yota.tracing.interpreter.expression_rules import attribute, decorated, function_of, is_true
from yota.tracing.interpreter.while_loops import Exit, exit_of, is_left, is_looped
from yota.tracing.methods import is_tracer


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
        try:
            completion = yield from execute(activation, part.body)
        except Stopped as stopped:
            raise stopped.fault from None
    except BaseException as fault:
        handler = _handler(activation, part, fault)
        if handler is None and isinstance(fault, StopIteration):
            raise Stopped(fault) from None
        if handler is None:
            raise
        return (yield from _handled(activation, handler, fault))
    if completion is not None:
        return completion
    return (yield from execute(activation, part.orelse))


def _handler(activation: Activation, part: ast.Try, fault: BaseException) -> ast.ExceptHandler | None:
    if isinstance(fault, YotaError):
        return None  # without tracing there is nothing to catch
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
    except BaseException as fault:
        met = fault.fault if isinstance(fault, Stopped) else fault
        if not leave(type(met), met, met.__traceback__) or isinstance(fault, YotaError):
            raise
        return None
    leave(None, None, None)
    return completion


block(ast.With)(lambda activation, part: _managed(activation, part.items, part.body))


def _special(context: Any, name: str) -> Any:
    own = special(context, name)
    if own is not None:
        return lambda *args: call(own, args, {})
    method = getattr(type(context), name, None)
    if method is None:
        raise TypeError(f"'{type(context).__name__}' object does not support the context context protocol")
    return lambda *args: method(context, *args)


_TRIED = 2
"""Number of trips before which a loop by values may begin: what is tested may be a constant in the first one."""
_BREAK, _CONTINUE = Completion("break"), Completion("continue")
_EXHAUSTED = Completion("exhausted")
"""How a trip of a ``for`` ends that was the last."""


@executes(ast.Expr)
def _expression(activation: Activation, part: ast.Expr) -> None:
    evaluate(activation, part.value)


@executes(ast.Return)
def _return(activation: Activation, part: ast.Return) -> Completion:
    return Completion("return", None if part.value is None else evaluate(activation, part.value))


executes(ast.Pass, ast.Global, ast.Nonlocal)(lambda activation, part: None)
executes(ast.Break)(lambda activation, part: _BREAK)
executes(ast.Continue)(lambda activation, part: _CONTINUE)


@executes(ast.Assert)
def _assert(activation: Activation, part: ast.Assert) -> None:
    if is_true(activation, part.test):
        return
    message = [] if part.msg is None else [evaluate(activation, part.msg)]
    activation.part = part
    raise AssertionError(*message)


@executes(ast.Raise)
def _raise(activation: Activation, part: ast.Raise) -> None:
    if part.exc is None:
        activation.part = part
        if sys.exc_info()[1] is None:
            raise RuntimeError("No active exception to reraise")
        raise  # noqa: PLE0704  (that which the interpreted handler is handling)
    fault = evaluate(activation, part.exc)
    cause = None if part.cause is None else evaluate(activation, part.cause)
    activation.part = part
    if part.cause is None:
        raise fault
    raise fault from cause


@executes(ast.FunctionDef)
def _function(activation: Activation, part: ast.FunctionDef) -> None:
    decorated(activation, part, lambda: function_of(activation, part))


@executes(ast.Import)
def _import(activation: Activation, part: ast.Import) -> None:
    for alias in part.names:
        found = importlib.import_module(alias.name)
        root = package_of(alias.name)
        activation.store(alias.asname or root, found if alias.asname else sys.modules[root])


@executes(ast.ImportFrom)
def _import_from(activation: Activation, part: ast.ImportFrom) -> None:
    package = activation.globals.get("__package__") or ""
    name = "." * part.level + (part.module or "")
    module = importlib.import_module(name, package)
    for alias in part.names:
        if not hasattr(module, alias.name):
            try:
                importlib.import_module(f"{module.__name__}.{alias.name}")
            except ModuleNotFoundError:
                raise ImportError(f"cannot import name {alias.name!r} from {module.__name__!r}") from None
        activation.store(alias.asname or alias.name, getattr(module, alias.name))


@block(ast.If)
def _if(activation: Activation, part: ast.If) -> Running:
    chosen = part.body if is_true(activation, part.test) else part.orelse
    return (yield from execute(activation, chosen))


@block(ast.While)
def _while(activation: Activation, part: ast.While) -> Running:
    if is_looped(activation, part):
        return None
    trips, exit = 0, exit_of(part)
    while is_true(activation, part.test):
        completion = yield from _trip(activation, part, exit if trips < _TRIED else None)
        if completion is not None and completion.kind != "continue":
            return None if completion.kind == "break" else completion
        trips += 1
        # What is tested may be a constant ahead of the first trip, as the error of a first guess.
        if trips == 1 and is_looped(activation, part):
            return None
    return (yield from execute(activation, part.orelse))


@block(ast.For)
def _for(activation: Activation, part: ast.For) -> Running:
    values = evaluate(activation, part.iter)
    activation.part = part.iter
    iterator = operators.iterate(values)
    trips, exit = 0, exit_of(part, values)
    while True:
        activation.part = part.iter
        try:
            value = next(iterator)
        except StopIteration:
            break
        assign(activation, part.target, value)
        completion = yield from _trip(activation, part, exit if trips < _TRIED else None)
        if completion is _EXHAUSTED:
            break
        if completion is not None and completion.kind != "continue":
            return None if completion.kind == "break" else completion
        trips += 1
    return (yield from execute(activation, part.orelse))


def _trip(activation: Activation, part: ast.For | ast.While, exit: Exit | None) -> Running:
    """Execute one trip; or, where the rest was recorded as a loop up to its exit, what follows the last one's test."""
    if exit is None:
        return (yield from execute(activation, part.body))
    yield from execute(activation, exit.before)
    if not is_left(activation, exit):
        return (yield from execute(activation, [exit.leaving, *exit.after]))
    if exit.numbers is None or is_true(activation, exit.leaving.test):
        return (yield from execute(activation, exit.leaving.body))
    yield from execute(activation, exit.after)
    return _EXHAUSTED


@block(ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
def _yielding(activation: Activation, part: Any) -> Running:
    """A statement whose whole value is a ``yield``."""
    if isinstance(part.value, ast.YieldFrom):
        value = yield from evaluate(activation, part.value.value)
    else:
        value = yield None if part.value.value is None else evaluate(activation, part.value.value)
    if isinstance(part, ast.Return):
        return Completion("return", value)
    if isinstance(part, ast.AugAssign):
        raise activation.refuse(part, "a `yield` in an augmented assignment is not known to the interpreter of source.")
    for target in part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]:
        if target is not None:
            assign(activation, target, value)
    return None


_SELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes of which a single positional pattern is matched against the value itself."""


@block(ast.Match)
def _match(activation: Activation, part: ast.Match) -> Running:
    subject = evaluate(activation, part.subject)
    for case in part.cases:
        activation.part = case.pattern
        bound: dict[str, Any] = {}
        if not _fits(activation, case.pattern, subject, bound):
            continue
        for name, value in bound.items():
            activation.store(name, value)
        if case.guard is None or is_true(activation, case.guard):
            return (yield from execute(activation, case.body))
    return None


def _fits(activation: Activation, pattern: ast.pattern, value: Any, bound: dict[str, Any]) -> bool:
    """Whether ``value`` matches; names that the pattern binds are put into ``bound``."""
    if isinstance(pattern, ast.MatchValue):
        return operators.truth(operators.compare(ast.Eq, value, evaluate(activation, pattern.value)))
    if isinstance(pattern, ast.MatchSingleton):
        return value is pattern.value
    if isinstance(pattern, (ast.MatchAs, ast.MatchStar)):
        inner = pattern.pattern if isinstance(pattern, ast.MatchAs) else None
        if inner is not None and not _fits(activation, inner, value, bound):
            return False
        if pattern.name is not None:
            bound[pattern.name] = value
        return True
    if isinstance(pattern, ast.MatchOr):
        return any(_fits(activation, each, value, bound) for each in pattern.patterns)
    if isinstance(pattern, ast.MatchSequence):
        return _fits_sequence(activation, pattern.patterns, value, bound)
    if isinstance(pattern, ast.MatchMapping):
        return _fits_mapping(activation, pattern, value, bound)
    if isinstance(pattern, ast.MatchClass):
        return _fits_class(activation, pattern, value, bound)
    raise activation.refuse(pattern, "this pattern is not known to the interpreter of source.")


def _fits_sequence(activation: Activation, patterns: list[ast.pattern], value: Any, bound: dict[str, Any]) -> bool:
    # An array is no sequence to Python's matching.
    if is_tracer(value) or not isinstance(value, Sequence) or isinstance(value, (str, bytes, bytearray)):
        return False
    values = list(value)
    star = next((place for place, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
    least = len(patterns) - (star is not None)
    if len(values) < least or (star is None and len(values) > least):
        return False
    if star is not None:
        end = len(values) - (least - star)
        values[star:end] = [values[star:end]]
    return all(_fits(activation, each, item, bound) for each, item in zip(patterns, values, strict=True))


def _fits_mapping(activation: Activation, pattern: ast.MatchMapping, value: Any, bound: dict[str, Any]) -> bool:
    if not isinstance(value, Mapping):
        return False
    keys = [evaluate(activation, key) for key in pattern.keys]
    if not all(key in value for key in keys):
        return False
    if not all(_fits(activation, each, value[key], bound) for key, each in zip(keys, pattern.patterns, strict=True)):
        return False
    if pattern.rest is not None:
        bound[pattern.rest] = {key: item for key, item in value.items() if key not in keys}
    return True


def _fits_class(activation: Activation, pattern: ast.MatchClass, value: Any, bound: dict[str, Any]) -> bool:
    kind = evaluate(activation, pattern.cls)
    if not isinstance(value, kind):
        return False
    if kind in _SELF and len(pattern.patterns) == 1:
        return _fits(activation, pattern.patterns[0], value, bound)
    names = [*getattr(kind, "__match_args__", ())[: len(pattern.patterns)], *pattern.kwd_attrs]
    if len(names) != len(pattern.patterns) + len(pattern.kwd_attrs):
        raise TypeError(f"{kind.__name__}() accepts fewer positional sub-patterns")
    every = zip(names, [*pattern.patterns, *pattern.kwd_patterns], strict=True)
    return all(hasattr(value, name) and _fits(activation, each, attribute(value, name), bound) for name, each in every)
