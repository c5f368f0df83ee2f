"""Whole numbers that come from sizes: their Python text in another language."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from yota.emit.c.dialect import C
from yota.emit.language import Language
from yota.ir.extents import UNARY, Spelled
from yota.transform.sizes.evaluation import parsed

_NAMES = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.FloorDiv: "floor_divide", ast.Mod: "remainder"}


class SizeNames(dict[str, str]):
    """What sizes are called in a language."""

    def __init__(self, names: Mapping[str, str], language: Language = C) -> None:
        super().__init__(names)
        self.language = language


def whole(text: str, names: SizeNames) -> Spelled:
    """An int of sizes, which have ``names``.

    >>> whole("(N*(N - 1)) // 2", SizeNames({"N": "N"})), whole("3*N**2 + 1", SizeNames({"N": "n"}))
    ('N * (N - 1) / 2', '3 * n * n + 1')
    """
    return _spelled(parsed(text), names)


def _spelled(tree: ast.expr, names: SizeNames) -> Spelled:
    if isinstance(tree, ast.Name):
        return Spelled(names[tree.id])
    if isinstance(tree, ast.UnaryOp):
        return Spelled(f"-{_spelled(tree.operand, names).within(UNARY + 1)}", UNARY)
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
        assert isinstance(tree.right, ast.Constant)
        product = " * ".join([f"({ast.unparse(tree.left)})"] * int(str(tree.right.value)))
        return _spelled(parsed(product), names)
    if isinstance(tree, ast.BinOp):
        spelling = names.language.spelling(names.language.table["sizes"][_NAMES[type(tree.op)]])
        left, right = _spelled(tree.left, names), _spelled(tree.right, names)
        if isinstance(tree.op, (ast.Add, ast.Mult)) and right.level == spelling.level and not set("/%") & set(right):
            right = Spelled(right)  # the order of additions and of products is free, unless a quotient is rounded
        return spelling.applied([left, right])
    assert isinstance(tree, ast.Constant)
    return Spelled(str(tree.value))
