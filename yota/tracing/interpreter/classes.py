"""Class statements inside of an interpreted function: Python makes the class, its methods run from their source."""

from __future__ import annotations
import __future__

import ast
import types
from typing import Any

from yota.tracing.interpreter.activation import Activation
from yota.tracing.interpreter.definition import define
from yota.tracing.interpreter.expressions import decorated
from yota.tracing.interpreter.tables import evaluate, execute, executes


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
