"""Python's binary operators with their primitives."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Operator(NamedTuple):
    """An operator: its symbol, its node in syntax trees, and its function."""

    sign: str
    node: type[ast.operator | ast.cmpop]
    function: Callable[[Any, Any], Any]


BINARY: Mapping[str, Operator] = {
    "add": Operator("+", ast.Add, operator.add),
    "subtract": Operator("-", ast.Sub, operator.sub),
    "multiply": Operator("*", ast.Mult, operator.mul),
    "divide": Operator("/", ast.Div, operator.truediv),
    "power": Operator("**", ast.Pow, operator.pow),
    "matmul": Operator("@", ast.MatMult, operator.matmul),
    "remainder": Operator("%", ast.Mod, operator.mod),
    "floor_divide": Operator("//", ast.FloorDiv, operator.floordiv),
    "equal": Operator("==", ast.Eq, operator.eq),
    "not_equal": Operator("!=", ast.NotEq, operator.ne),
    "less": Operator("<", ast.Lt, operator.lt),
    "less_equal": Operator("<=", ast.LtE, operator.le),
    "greater": Operator(">", ast.Gt, operator.gt),
    "greater_equal": Operator(">=", ast.GtE, operator.ge),
}
COMPARISONS = frozenset(name for name, each in BINARY.items() if issubclass(each.node, ast.cmpop))
