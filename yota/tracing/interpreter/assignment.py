"""What binds names: assignments, comprehensions, generator expressions and classes."""

from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Iterator, Sequence
from typing import Any

from yota.tracing.current import current
from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import Activation, evaluate, evaluates, execute, executes
from yota.tracing.interpreter.call_rules import call, ready
from yota.tracing.interpreter.definition import define, is_readable
from yota.tracing.interpreter.effects import made, writes
from yota.tracing.interpreter.expression_rules import attribute, decorated, is_true
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
    star = next((place for place, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    least = len(targets) - (star is not None)
    if len(values) < least:
        at_least = "" if star is None else "at least "
        raise ValueError(f"not enough values to unpack (expected {at_least}{least}, got {len(values)})")
    if star is None and len(values) > least:
        raise ValueError(f"too many values to unpack (expected {least})")
    if star is not None:
        end = len(values) - (least - star)
        values[star:end] = [values[star:end]]
    for target, each in zip(targets, values, strict=True):
        assign(activation, target.value if isinstance(target, ast.Starred) else target, each)


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


evaluates(ast.ListComp)(lambda activation, part: made(list(_elements(activation, part, part.elt))))
evaluates(ast.SetComp)(lambda activation, part: made(set(_elements(activation, part, part.elt))))
evaluates(ast.GeneratorExp)(lambda activation, part: _elements(activation, part, part.elt))


@evaluates(ast.DictComp)
def _dict(activation: Activation, part: ast.DictComp) -> Any:
    return made(dict(_elements(activation, part, ast.Tuple([part.key, part.value], ast.Load()))))


def _elements(activation: Activation, part: Any, element: ast.expr) -> Iterator[Any]:
    """The elements; what the first loop runs over is evaluated at once, as Python does."""
    within = activation.definition
    definition = define(part, within.filename, within.qualified, within.owner)
    if any(loop.is_async for loop in part.generators):
        raise activation.refuse(part, "an asynchronous comprehension is not known to the interpreter of source.")
    inner = Activation(definition, activation.globals, activation.cells, activation)
    first = evaluate(activation, part.generators[0].iter)
    activation.part = part.generators[0].iter
    return _looped(inner, part.generators, operators.iterate(first), element)


def _looped(
    activation: Activation, loops: Sequence[ast.comprehension], values: Any, element: ast.expr
) -> Iterator[Any]:
    loop, rest = loops[0], loops[1:]
    for value in values:
        assign(activation, loop.target, value)
        if not all(is_true(activation, test) for test in loop.ifs):
            continue
        if not rest:
            yield evaluate(activation, element)
            continue
        following = evaluate(activation, rest[0].iter)
        activation.part = rest[0].iter
        yield from _looped(activation, rest, operators.iterate(following), element)


@executes(ast.ClassDef)
def _class(activation: Activation, part: ast.ClassDef) -> None:
    decorated(activation, part, lambda: _made(activation, part))


def _made(activation: Activation, part: ast.ClassDef) -> Any:
    within = activation.definition
    definition = define(part, within.filename, f"{within.qualified}.<locals>.{part.name}", part.name)
    inner = Activation(definition, activation.globals, activation.cells, activation)
    bases = tuple(evaluate(activation, each) for each in part.bases)
    keywords = {each.arg: evaluate(activation, each.value) for each in part.keywords if each.arg is not None}

    def body(names: dict[str, Any]) -> None:
        inner.variables = names
        names["__module__"] = activation.globals.get("__name__")
        names["__qualname__"] = definition.qualified
        documentation = ast.get_docstring(part)
        if documentation is not None:
            names["__doc__"] = documentation
        for statement in part.body:
            _annotate(inner, statement)
            for _ in execute(inner, [statement]):
                raise activation.refuse(statement, "a `yield` in the body of a class is no Python.")

    activation.part = part
    made: Any = types.new_class(part.name, bases, keywords, body)
    # Methods find their class here, as ``super()`` asks for it.
    inner.variables = {"__class__": made}
    return made


def _annotate(activation: Activation, statement: ast.stmt) -> None:
    """Note the type of a field, which classes such as dataclasses look at."""
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        return
    postponed = activation.globals.get("annotations") is __future__.annotations
    kind = ast.unparse(statement.annotation) if postponed else evaluate(activation, statement.annotation)
    activation.variables.setdefault("__annotations__", {})[statement.target.id] = kind
