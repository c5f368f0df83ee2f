"""Simple statements, definitions, and those that choose and repeat."""

from __future__ import annotations

import ast
import importlib
import sys
from typing import Any

from yota.structures import package_of
from yota.tracing.interpreter import operators
from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.assignment import assign
from yota.tracing.interpreter.expressions import decorated, function_of, is_true
from yota.tracing.interpreter.tables import Completion, Running, block, evaluate, execute, executes

_BREAK, _CONTINUE = Completion("break"), Completion("continue")


@executes(ast.Expr)
def _expression(activation: Activation, part: ast.Expr) -> None:
    evaluate(activation, part.value)


@executes(ast.Return)
def _return(activation: Activation, part: ast.Return) -> Completion:
    return Completion("return", None if part.value is None else evaluate(activation, part.value))


@executes(ast.Pass, ast.Global, ast.Nonlocal)
def _nothing(activation: Activation, part: ast.stmt) -> None:
    return None


@executes(ast.Break)
def _break(activation: Activation, part: ast.Break) -> Completion:
    return _BREAK


@executes(ast.Continue)
def _continue(activation: Activation, part: ast.Continue) -> Completion:
    return _CONTINUE


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
    while is_true(activation, part.test):
        completion = yield from execute(activation, part.body)
        if completion is not None and completion.kind != "continue":
            return None if completion.kind == "break" else completion
    return (yield from execute(activation, part.orelse))


@block(ast.For)
def _for(activation: Activation, part: ast.For) -> Running:
    values = evaluate(activation, part.iter)
    activation.part = part.iter
    iterator = operators.iterate(values)
    while True:
        activation.part = part.iter
        try:
            value = next(iterator)
        except StopIteration:
            break
        assign(activation, part.target, value)
        completion = yield from execute(activation, part.body)
        if completion is not None and completion.kind != "continue":
            return None if completion.kind == "break" else completion
    return (yield from execute(activation, part.orelse))


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
