"""Assignment to names, attributes, elements, and lists of them."""

from __future__ import annotations

import ast
from typing import Any

from yota.tracing.current import current
from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.call_rules import call, ready
from yota.tracing.interpreter.effects import writes
from yota.tracing.interpreter.expression_rules import attribute
from yota.tracing.interpreter.syntax_trees import is_readable
from yota.tracing.interpreter.tables import evaluate, executes
from yota.tracing.methods import is_tracer


def assign(activation: Activation, target: ast.expr, value: Any) -> None:
    """``target = value``."""
    if isinstance(target, ast.Name):
        activation.store(target.id, value)
    elif isinstance(target, ast.Attribute):
        _set_attribute(activation, target, evaluate(activation, target.value), value)
    elif isinstance(target, ast.Subscript):
        array, index = evaluate(activation, target.value), evaluate(activation, target.slice)
        _set_item(activation, target, array, index, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        activation.part = target
        _unpack(activation, target.elts, value)
    else:
        raise activation.refuse(target, "this target is not known to the interpreter of source.")


def _set_attribute(activation: Activation, target: ast.Attribute, receiver: Any, value: Any) -> None:
    name = activation.definition.mangled(target.attr)
    activation.called(name, value)
    activation.part = target
    for base in type(receiver).__mro__:
        found = vars(base).get(name)
        if isinstance(found, property) and is_readable(found.fset):
            call(found.fset, (receiver, value), {})
            return
    trace = current()
    if trace is not None and is_tracer(receiver):
        trace.hold()
    ready(receiver)
    writes(receiver)
    setattr(receiver, name, value)


def _set_item(activation: Activation, target: ast.Subscript, array: Any, index: Any, value: Any) -> None:
    activation.part = activation.definition.parents.get(target, target)
    operators.set_item(array, index, value)
    _name_written(activation, target, array)


def _name_written(activation: Activation, target: ast.expr, array: Any) -> None:
    """The array that a write into a part of it leaves keeps its name."""
    while isinstance(target, (ast.Subscript, ast.Attribute)):
        target = target.value
    if isinstance(target, ast.Name) and is_tracer(array):
        activation.called(target.id, activation.load(target.id))


def _unpack(activation: Activation, targets: list[ast.expr], value: Any) -> None:
    values = list(operators.iterate(value))
    starred = [place for place, each in enumerate(targets) if isinstance(each, ast.Starred)]
    if not starred:
        if len(values) != len(targets):
            many = "not enough" if len(values) < len(targets) else "too many"
            got = f", got {len(values)}" if len(values) < len(targets) else ""
            raise ValueError(f"{many} values to unpack (expected {len(targets)}{got})")
        pairs = list(zip(targets, values, strict=True))
    else:
        place, after = starred[0], len(targets) - starred[0] - 1
        if len(values) < place + after:
            raise ValueError(f"not enough values to unpack (expected at least {place + after}, got {len(values)})")
        end = len(values) - after
        star = targets[place]
        assert isinstance(star, ast.Starred)
        pairs = [
            *zip(targets[:place], values[:place], strict=True),
            (star.value, values[place:end]),
            *zip(targets[place + 1 :], values[end:], strict=True),
        ]
    for target, each in pairs:
        assign(activation, target, each)


@executes(ast.Assign)
def _assign(activation: Activation, part: ast.Assign) -> None:
    value = evaluate(activation, part.value)
    for target in part.targets:
        assign(activation, target, value)


@executes(ast.AnnAssign)
def _annotated(activation: Activation, part: ast.AnnAssign) -> None:
    if part.value is not None:
        assign(activation, part.target, evaluate(activation, part.value))


@executes(ast.AugAssign)
def _augmented(activation: Activation, part: ast.AugAssign) -> None:
    target = part.target
    if isinstance(target, ast.Name):
        old = activation.load(target.id)
    elif isinstance(target, ast.Attribute):
        receiver = evaluate(activation, target.value)
        old = attribute(receiver, activation.definition.mangled(target.attr))
    else:
        receiver, index = evaluate(activation, target.value), evaluate(activation, target.slice)
        activation.part = target
        old = operators.item(receiver, index)
    value = evaluate(activation, part.value)
    activation.part = part
    found = operators.in_place(type(part.op), old, value)
    if isinstance(target, ast.Name):
        activation.store(target.id, found)
    elif isinstance(target, ast.Attribute):
        _set_attribute(activation, target, receiver, found)
    else:
        _set_item(activation, target, receiver, index, found)


@executes(ast.Delete)
def _delete(activation: Activation, part: ast.Delete) -> None:
    for target in part.targets:
        _remove(activation, target)


def _remove(activation: Activation, target: ast.expr) -> None:
    if isinstance(target, ast.Name):
        activation.delete(target.id)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            _remove(activation, each)
    elif isinstance(target, ast.Attribute):
        receiver = evaluate(activation, target.value)
        writes(receiver)
        delattr(receiver, activation.definition.mangled(target.attr))
    elif isinstance(target, ast.Subscript):
        array, index = evaluate(activation, target.value), evaluate(activation, target.slice)
        writes(array)
        del array[index]
