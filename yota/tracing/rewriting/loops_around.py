"""Whether code that is running is within a loop that can be recorded as one, by its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from yota.tracing.methods import is_tracer
from yota.tracing.rewriting.branch_rewriting import LEAVING, is_stored_in, nested
from yota.tracing.rewriting.definition import Definition, definition_of_code
from yota.tracing.rewriting.expression_rewriting import is_of_all
from yota.tracing.rewriting.loop_rewriting import exit_of, is_of_items, is_of_names
from yota.tracing.source_lines import users


def is_in_loop(frame: FrameType | None) -> bool:
    """Whether a frame of the user's, or what called it, is in a loop that only computes.

    False as well if some of that may write outside of itself.
    """
    found = False
    for each in users(frame, inside=True):
        definition = definition_of_code(each.f_code, each.f_globals)
        if definition is not None:
            variables = each.f_locals
            if any(_may_write(part, variables) for part in ast.walk(definition.tree)):
                return False
            found = found or any(map(_only_computes, _around(definition, each.f_lineno)))
    return found


def _around(definition: Definition, line: int) -> Iterator[ast.AST]:
    """Loops and expressions around a line."""
    for part in ast.walk(definition.tree):
        if isinstance(part, (ast.For, ast.While, ast.Call)) and part.lineno <= line <= (part.end_lineno or 0):
            yield part


def _only_computes(part: ast.AST) -> bool:
    """Whether trips may be recorded as one: they assign to names and elements, and go on to one end."""
    if isinstance(part, ast.Call):
        return is_of_all(part)
    assert isinstance(part, (ast.For, ast.While))
    leaving = exit_of(part)
    statements = [each for each in nested(part.body, ast.Continue) if each is not leaving]
    within = [*ast.walk(ast.Module(statements, []))]
    may_loop = isinstance(part, ast.While) or (is_of_names(part.target) and _may_have_numbers(part.iter))
    return may_loop and not any(
        isinstance(each, LEAVING) or (is_stored_in(each) and not _is_of_name(each)) for each in within
    )


def _may_have_numbers(over: ast.expr) -> bool:
    """Whether what a loop runs over may be a range or an array, or several side by side."""
    if is_of_items(over):
        return all(map(_may_have_numbers, over.args))  # type: ignore[attr-defined]
    if isinstance(over, ast.Call):
        return isinstance(over.func, ast.Name) and over.func.id == "range"
    return isinstance(over, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant))


def _is_of_name(part: ast.AST) -> bool:
    return isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)


def _may_write(part: ast.AST, variables: Mapping[str, Any]) -> bool:
    """Whether a statement may write what is not the function's own, and would not write the same once more."""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        called = part.value
        prints = isinstance(called.func, ast.Name) and called.func.id == "print"
        return not (prints or any(each.arg == "out" and _is_traced(each.value, variables) for each in called.keywords))
    if isinstance(part, (ast.Global, ast.Nonlocal)):
        return True
    if not (isinstance(part, ast.AugAssign) and is_stored_in(part.target)):
        return False
    return not (isinstance(part.target, ast.Subscript) and _is_traced(part.target.value, variables))


def _is_traced(part: ast.expr, variables: Mapping[str, Any]) -> bool:
    return isinstance(part, ast.Name) and is_tracer(variables.get(part.id))
