"""Whether code that is running is within a loop that can be recorded as one, by its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FrameType

from yota.tracing.rewriting.definition import Definition, definition_of_code
from yota.tracing.rewriting.expression_rewriting import is_of_all
from yota.tracing.rewriting.loop_rewriting import LEAVING
from yota.tracing.source_lines import users


def is_in_loop(frame: FrameType | None) -> bool:
    """Whether a frame of the user's, or what called it, is in a loop over a range that only computes.

    False as well if some of that may write outside of itself.
    """
    found = False
    for each in users(frame, inside=True):
        definition = definition_of_code(each.f_code, each.f_globals)
        if definition is not None:
            if any(map(_may_write, ast.walk(definition.tree))):
                return False
            found = found or any(map(_only_computes, _around(definition, each.f_lineno)))
    return found


def _around(definition: Definition, line: int) -> Iterator[ast.AST]:
    """Loops and expressions around a line."""
    for part in ast.walk(definition.tree):
        if isinstance(part, (ast.For, ast.Call)) and part.lineno <= line <= (part.end_lineno or 0):
            yield part


def _only_computes(part: ast.AST) -> bool:
    """Whether trips may be recorded as one: they go on to the end, and assign to names alone."""
    if isinstance(part, ast.Call):
        return is_of_all(part)
    assert isinstance(part, ast.For)
    over = part.iter
    is_range = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range"
    within = [*ast.walk(part)]
    return (
        is_range
        and isinstance(part.target, ast.Name)
        and not any(isinstance(each, LEAVING) or (_is_stored_in(each) and not _is_of_name(each)) for each in within)
    )


def _is_stored_in(part: ast.AST) -> bool:
    return isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store)


def _is_of_name(part: ast.AST) -> bool:
    return isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name)


def _may_write(part: ast.AST) -> bool:
    """Whether a statement may write what is not the function's own, and would not write the same once more."""
    if isinstance(part, ast.Expr) and isinstance(part.value, ast.Call):
        return not (isinstance(part.value.func, ast.Name) and part.value.func.id == "print")
    if isinstance(part, (ast.Global, ast.Nonlocal)):
        return True
    return isinstance(part, ast.AugAssign) and _is_stored_in(part.target)
