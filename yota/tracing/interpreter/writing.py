"""Whether what becomes of an expression is only printed, logged, or put into an exception's message."""

from __future__ import annotations

import ast

from yota.tracing.interpreter.definition import Definition
from yota.tracing.written import CONVERTERS, WRITERS

__all__ = ["is_written_out"]

_PARTS = (ast.JoinedStr, ast.FormattedValue, ast.Tuple, ast.List, ast.Starred, ast.keyword, ast.BinOp, ast.Raise)


def is_written_out(part: ast.AST, definition: Definition) -> bool:
    """Whether text made where ``part`` stands goes through conversions into a writer or an exception, or is dropped."""
    while True:
        if isinstance(part, ast.Call):
            name = _last_name(part.func)
            if name in WRITERS:
                return True
            above = definition.parents.get(part)
            if isinstance(above, ast.Raise):
                return True
            if name not in CONVERTERS:
                return False
        elif not isinstance(part, _PARTS):
            return False
        above = _above(part, definition)
        if above is None or isinstance(above, (ast.Expr, ast.Raise)):
            return above is not None
        if isinstance(above, ast.Attribute):
            above = definition.parents.get(above)
        if above is None:
            return False
        part = above


def _above(part: ast.AST, definition: Definition) -> ast.AST | None:
    """What an expression is a part of, leaving out a choice that may give its value as it is."""
    above = definition.parents.get(part)
    while isinstance(above, ast.IfExp) and part is not above.test:
        part, above = above, definition.parents.get(above)
    return above


def _last_name(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None
