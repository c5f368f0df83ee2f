"""Comprehensions, generator expressions and classes inside of an interpreted function: each has its own variables."""

from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Iterator, Sequence
from typing import Any

from yota.tracing.interpreter import operator_rules as operators
from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.assignment import assign
from yota.tracing.interpreter.definition import define
from yota.tracing.interpreter.effects import made
from yota.tracing.interpreter.expression_rules import decorated, is_true
from yota.tracing.interpreter.tables import evaluate, evaluates, execute, executes


@evaluates(ast.ListComp)
def _list(activation: Activation, part: ast.ListComp) -> Any:
    return made(list(_elements(activation, part, part.elt)))


@evaluates(ast.SetComp)
def _set(activation: Activation, part: ast.SetComp) -> Any:
    return made(set(_elements(activation, part, part.elt)))


@evaluates(ast.GeneratorExp)
def _generator(activation: Activation, part: ast.GeneratorExp) -> Any:
    return _elements(activation, part, part.elt)


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
