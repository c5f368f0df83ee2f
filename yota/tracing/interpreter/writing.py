"""Whether what becomes of an expression is only printed or logged."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from yota.tracing.bytecode import UNKNOWN, static_attribute
from yota.tracing.writers import Called, Outlets

if TYPE_CHECKING:
    from yota.tracing.interpreter.activation import Activation

__all__ = ["called", "is_written_out"]

_FORMATS = (ast.JoinedStr, ast.FormattedValue)
_SEQUENCES = (ast.Tuple, ast.List, ast.Starred, ast.keyword)


def is_written_out(activation: Activation, outlets: Outlets) -> bool:
    """Whether what is made of a value where ``activation`` stands only goes into a writer."""
    part, parents, is_text = activation.part, activation.definition.parents, False
    while True:
        above = _above(part, activation)
        if isinstance(part, ast.Call):
            found = called(activation, part, outlets)
            if found is None:
                return False
            if found.writes(outlets):
                return True
            if not found.converts:
                return False
            is_text = is_text or found.makes_text
        elif isinstance(part, _FORMATS) or _formats(part):
            is_text = True
        elif not isinstance(part, _SEQUENCES) and not (
            is_text and isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
        ):
            return False
        if isinstance(above, ast.Attribute):
            above = parents.get(above)
        if above is None or isinstance(above, ast.Expr):
            return above is not None
        part = above


def called(activation: Activation, part: ast.Call, outlets: Outlets) -> Called | None:
    """What a call calls whose arguments are being evaluated; None if its function is not known yet."""
    function = activation.callees.get(part, UNKNOWN)
    if function is UNKNOWN:
        return None
    names = [each.arg for each in part.keywords if _static(activation, each.value) not in outlets]
    keywords = None if None in names else tuple(name for name in names if name is not None)
    return Called.of(function, keywords)


def _static(activation: Activation, part: ast.expr) -> Any:
    """The value of a variable, or of attributes of one, without running code."""
    if isinstance(part, ast.Attribute):
        return static_attribute(_static(activation, part.value), part.attr)
    try:
        return activation.load(part.id) if isinstance(part, ast.Name) else UNKNOWN
    except NameError:
        return UNKNOWN


def _formats(part: ast.AST) -> bool:
    """Whether an expression is the operator % with a text, written in the code, on its left."""
    if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod)):
        return False
    left = part.left
    return isinstance(left, ast.JoinedStr) or (isinstance(left, ast.Constant) and type(left.value) is str)


def _above(part: ast.AST, activation: Activation) -> ast.AST | None:
    """What an expression is a part of, leaving out a choice that may give its value as it is."""
    parents = activation.definition.parents
    above = parents.get(part)
    while isinstance(above, ast.IfExp) and part is not above.test:
        part, above = above, parents.get(above)
    return above
