"""From Python's syntax trees to the expressions of the rule language."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yota.errors import RuleError
from yota.ir.primitive import BINARY
from yota.rules.language.model import Adjoint, Call, Expression, Item, Literal, Name, Spread
from yota.rules.language.rule_text import Source

CONSTANTS = {"pi": math.pi, "E": math.e, "oo": math.inf}
"""Names of numbers."""
OPERATORS = {each.node: name for name, each in BINARY.items()}
_BITS = {ast.BitAnd: "logical_and", ast.BitOr: "logical_or", ast.BitXor: "logical_xor"}
_ALIASES = {"abs": "absolute", "conj": "conjugate", "pow": "power", "mod": "remainder"}
"""Short names that NumPy has for functions too."""
_DEPTH = 50
_SIZE = 500
_INTEGER = 2**53
_TEXT = 200
_INSTEAD: dict[type[ast.AST], tuple[str, str]] = {
    ast.IfExp: ("a conditional expression", "where(condition, a, b)"),
    ast.BoolOp: ("`and` or `or`", "logical_and(a, b) or logical_or(a, b)"),
    ast.Attribute: ("a name with a dot", "exp(x)"),
    ast.Lambda: ("a lambda", "the expression itself"),
    ast.JoinedStr: ("an f-string", "the expression itself"),
    ast.NamedExpr: ("a walrus assignment", "the expression itself, as often as it is needed"),
    ast.ListComp: ("a comprehension", "d[xs[i]] = ..., which stands for every i"),
    ast.GeneratorExp: ("a comprehension", "d[xs[i]] = ..., which stands for every i"),
    ast.SetComp: ("a comprehension", "d[xs[i]] = ..., which stands for every i"),
    ast.DictComp: ("a comprehension", "d[xs[i]] = ..., which stands for every i"),
    ast.List: ("a list", "a tuple: (a, b)"),
    ast.Dict: ("a dict", "keywords: f(x, axis=0)"),
    ast.Set: ("a set", "a tuple: (a, b)"),
    ast.Slice: ("a slice", "getitem(x, index=...)"),
    ast.Await: ("await", "the expression itself"),
    ast.Yield: ("yield", "the expression itself"),
}


@dataclass(slots=True)
class Scope:
    """The names that a body may use: all, variadic ones, the index of ``d[xs[i]]``, and locals with what they are."""

    names: frozenset[str] = frozenset()
    variadic: frozenset[str] = frozenset()
    loop: str | None = None
    parts: Mapping[str, Expression] = field(default_factory=dict)


@dataclass(slots=True)
class ExpressionReader:
    """Reads expressions of one rule; everything outside the language is refused with its place."""

    source: Source
    scope: Scope = field(default_factory=Scope)
    size: int = 0
    most_parts: int = _SIZE
    most_depth: int = _DEPTH

    def read(self, tree: ast.AST) -> Expression:
        """``tree`` as an expression."""
        self.size = 0
        return self._read(tree, 0)

    def _read(self, tree: ast.AST, depth: int) -> Expression:
        part = self.scope.parts.get(tree.id) if isinstance(tree, ast.Name) else None
        size, below = (1, 0) if part is None else _extent(part)
        self.size += size
        if depth + below > self.most_depth or self.size > self.most_parts:
            deep = depth + below > self.most_depth
            limit = f"more than {self.most_depth} levels" if deep else f"more than {self.most_parts} parts"
            raise self.source.fault(
                tree, "the expression is too large", found=limit, write="a second function for a part of it"
            )
        if part is not None:
            return part
        reader = _READERS.get(type(tree))
        if reader is None:
            raise self._refuse(tree)
        return self.source.mark(getattr(self, reader)(tree, depth + 1), tree)  # type: ignore[no-any-return]

    def _refuse(self, tree: ast.AST) -> RuleError:
        what, write = _INSTEAD.get(type(tree), (f"`{type(tree).__name__}`", "numbers, names, operators and calls"))
        text = self.source.excerpt
        if isinstance(tree, ast.IfExp):
            write = f"where({text(tree.test)}, {text(tree.body)}, {text(tree.orelse)})"
        elif isinstance(tree, ast.BoolOp):
            name = "logical_and" if isinstance(tree.op, ast.And) else "logical_or"
            write = f"{name}({text(tree.values[0])}, {text(tree.values[1])})"
        elif isinstance(tree, ast.Attribute):
            write = tree.attr if not tree.attr.startswith("_") else "the name of a function or parameter"
        elif isinstance(tree, ast.Constant):
            what = f"a number or string of type {type(tree.value).__name__}"
        return self.source.fault(tree, f"{what} is not part of the rule language", write=write)

    def _constant(self, tree: Any, depth: int) -> Expression:
        value = tree.value
        if value is None or isinstance(value, bool):
            return Literal(value)
        if isinstance(value, str):
            if len(value) > _TEXT or not value.isascii():
                what, found = "the string is too long or not ASCII", f"{len(value)} characters"
                raise self.source.fault(tree, what, found=found, write="'ij,jk->ik'")
            return Literal(value)
        if isinstance(value, (int, float, complex)):
            if isinstance(value, int) and abs(value) > _INTEGER:
                raise self.source.fault(tree, "the integer is larger than 2**53", write="a float, such as 1e20")
            if not isinstance(value, int) and not math.isfinite(abs(value)):
                raise self.source.fault(tree, "the number overflows", write="oo, if infinity is meant")
            return Literal(value)
        if value is Ellipsis:
            raise self.source.fault(
                tree, "the right-hand side is missing", found="...", write="the derivative, or 0 where it is zero"
            )
        raise self._refuse(tree)

    def _name(self, tree: Any, depth: int) -> Expression:
        if tree.id not in self.scope.names and tree.id in CONSTANTS:
            return Literal(CONSTANTS[tree.id])
        return Name(tree.id)

    def _unary(self, tree: Any, depth: int) -> Expression:
        if isinstance(tree.op, ast.USub):
            operand = self._read(tree.operand, depth)
            if isinstance(operand, Literal) and isinstance(operand.value, (int, float, complex)):
                return Literal(-operand.value)
            return Call("negative", (operand,))
        if isinstance(tree.op, ast.UAdd):
            return Call("positive", (self._read(tree.operand, depth),))
        what = "`not` and `~` are not part of the rule language"
        raise self.source.fault(tree, what, write=f"logical_not({self.source.excerpt(tree.operand)})")

    def _binary(self, tree: Any, depth: int) -> Expression:
        function = OPERATORS.get(type(tree.op))
        if function is None:
            name = _BITS.get(type(tree.op), "f")
            what = "this operator is not part of the rule language"
            write = f"{name}({self.source.excerpt(tree.left)}, {self.source.excerpt(tree.right)})"
            raise self.source.fault(tree, what, write=write)
        return Call(function, (self._read(tree.left, depth), self._read(tree.right, depth)))

    def _compare(self, tree: Any, depth: int) -> Expression:
        function = OPERATORS.get(type(tree.ops[0]))
        if len(tree.ops) > 1 or function is None:
            what = "a comparison has two sides and one of == != < <= > >="
            write = self._split(tree) if function else f"{self.source.excerpt(tree.left)} == ..."
            raise self.source.fault(tree, what, write=write)
        return Call(function, (self._read(tree.left, depth), self._read(tree.comparators[0], depth)))

    def _split(self, tree: ast.Compare) -> str:
        """A chain of comparisons as a conjunction of its first two."""
        sides = [self.source.excerpt(each) for each in (tree.left, *tree.comparators[:2])]
        signs = [BINARY[OPERATORS.get(type(op), "equal")].sign for op in tree.ops[:2]]
        return f"logical_and({sides[0]} {signs[0]} {sides[1]}, {sides[1]} {signs[1]} {sides[2]})"

    def _call(self, tree: Any, depth: int) -> Expression:
        if not isinstance(tree.func, ast.Name):
            raise self._refuse(tree.func)
        keywords = []
        for keyword in tree.keywords:
            if keyword.arg is None:
                what = "`**` among arguments is not part of the rule language"
                write = "each keyword by name: f(x, axis=axis)"
                raise self.source.fault(keyword.value, what, found=self.source.excerpt(tree), write=write)
            keywords.append((keyword.arg, self._read(keyword.value, depth)))
        name = _ALIASES.get(tree.func.id, tree.func.id)
        return Call(name, tuple(self._read(each, depth) for each in tree.args), tuple(keywords))

    def _starred(self, tree: Any, depth: int) -> Expression:
        if isinstance(tree.value, ast.Name) and tree.value.id in self.scope.variadic:
            return Spread(tree.value.id)
        raise self.source.fault(tree, "`*` goes before a variadic parameter only", write="f(*xs)")

    def _subscript(self, tree: Any, depth: int) -> Expression:
        if isinstance(tree.value, ast.Name) and isinstance(tree.slice, ast.Name):
            if tree.value.id == "d":
                return Adjoint(tree.slice.id)
            if tree.value.id in self.scope.variadic and tree.slice.id == self.scope.loop:
                return Item(tree.value.id, tree.slice.id)
        raise self.source.fault(
            tree, "only d[y], and xs[i] for a variadic parameter, have brackets", write="d[y], or getitem(x, index=...)"
        )

    def _tuple(self, tree: Any, depth: int) -> Expression:
        items = tuple(self._read(each, depth) for each in tree.elts)
        if all(isinstance(each, Literal) for each in items):
            return Literal(tuple(each.value for each in items))  # type: ignore[union-attr]
        return Call("tuple", items)


def _extent(expression: Expression) -> tuple[int, int]:
    """How many parts an expression has, and how many levels."""
    inside = [_extent(each) for each in expression.inside] if isinstance(expression, Call) else []
    return 1 + sum(size for size, _ in inside), 1 + max((depth for _, depth in inside), default=0)


_READERS: dict[type[ast.AST], str] = {
    ast.Constant: "_constant",
    ast.Name: "_name",
    ast.UnaryOp: "_unary",
    ast.BinOp: "_binary",
    ast.Compare: "_compare",
    ast.Call: "_call",
    ast.Starred: "_starred",
    ast.Subscript: "_subscript",
    ast.Tuple: "_tuple",
}
