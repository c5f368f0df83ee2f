"""Comprehensions and generator expressions, each with variables of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from yota.tracing.interpreter import operators
from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.assignment import assign
from yota.tracing.interpreter.definition import define
from yota.tracing.interpreter.effects import made
from yota.tracing.interpreter.expressions import is_true
from yota.tracing.interpreter.tables import evaluate, evaluates


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
