"""Values of expressions that generated Python code is made of: of sizes, and of constant arrays."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
}
_NAMES = {"np": np, "math": math, "float": float, "complex": complex}


def evaluated(text: str, size: Mapping[str, Any]) -> Any:
    """What an expression gives at one size.

    >>> evaluated("np.full((N, 2), N * (N - 1) // 2)", {"N": 3})
    array([[3, 3],
           [3, 3],
           [3, 3]])
    """
    return _value(parsed(text), size)


@functools.lru_cache(4096)
def parsed(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    return ast.parse(text, mode="eval").body


def _value(tree: ast.expr, size: Mapping[str, Any]) -> Any:
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        return size[tree.id] if tree.id in size else _NAMES[tree.id]
    if isinstance(tree, ast.BinOp):
        return _OPERATORS[type(tree.op)](_value(tree.left, size), _value(tree.right, size))
    if isinstance(tree, ast.UnaryOp):
        return _OPERATORS[type(tree.op)](_value(tree.operand, size))
    if isinstance(tree, ast.Compare):
        return _OPERATORS[type(tree.ops[0])](_value(tree.left, size), _value(tree.comparators[0], size))
    if isinstance(tree, ast.Attribute):
        return getattr(_value(tree.value, size), tree.attr)
    if isinstance(tree, ast.Call):
        keywords = {each.arg: _value(each.value, size) for each in tree.keywords if each.arg}
        return _value(tree.func, size)(*(_value(each, size) for each in tree.args), **keywords)
    if isinstance(tree, ast.Subscript):
        return _value(tree.value, size)[_value(tree.slice, size)]
    if isinstance(tree, (ast.Tuple, ast.List)):
        items = [_value(each, size) for each in tree.elts]
        return items if isinstance(tree, ast.List) else tuple(items)
    if isinstance(tree, ast.Slice):
        return slice(*(each and _value(each, size) for each in (tree.lower, tree.upper, tree.step)))
    raise TypeError(f"{ast.unparse(tree)} is no expression of sizes")
