"""Texts of sympy expressions, and files with one ``name = expression`` on each line; parsed and never executed."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yota.errors import ArgumentError, RuleError
from yota.interop.expression_steps import Steps
from yota.interop.programs import Argument, Formula, Program, formula
from yota.rules.language.expressions import CONSTANTS, OPERATORS, ExpressionReader
from yota.rules.language.model import Call, Expression, Literal, Name
from yota.rules.language.rule_text import Source
from yota.rules.loading import read_file

_LONGEST, _PARTS, _DEPTH = 200_000, 20_000, 120
_CONSTANTS = {**CONSTANTS, "I": 1j, "EulerGamma": 0.5772156649015329, "GoldenRatio": (1 + math.sqrt(5)) / 2}
_ALIASES = {
    "Eq": "Equality",
    "Ne": "Unequality",
    "Lt": "StrictLessThan",
    "Le": "LessThan",
    "Gt": "StrictGreaterThan",
    "Ge": "GreaterThan",
    "ln": "log",
}
_BITS = {ast.BitAnd: "logical_and", ast.BitOr: "logical_or", ast.BitXor: "logical_xor"}


def formulas_of(path: Path) -> dict[str, Formula]:
    """The expressions of a file as functions by name.

    An expression may use the names of earlier lines. Symbols are arguments in order of appearance. Symbols with
    indices are arrays; symbols in bounds and indices are integers.

    Raises ArgumentError if a line has another form or an unknown function.
    """
    try:
        return _formulas(path)
    except RuleError as fault:
        raise ArgumentError(str(fault)) from None


def read_text(text: str, steps: Steps, arguments: frozenset[str]) -> tuple[Expression, set[str], set[str]]:
    """The expression of a text, as further ``steps``; its symbols, and those of them that are integers."""
    source = Source(text.strip(), "expression", longest=_LONGEST)
    reader = _Formulas(source, written=steps, arguments=arguments)
    statements = _statements(source)
    if len(statements) != 1 or not isinstance(statements[0], ast.Expr):
        raise ArgumentError(f"{text!r:.60} is no expression")
    tree = statements[0].value
    found: Expression = (
        Call("tuple", tuple(map(reader.read, tree.elts))) if isinstance(tree, ast.Tuple) else reader.read(tree)
    )
    return found, {*reader.symbols}, reader.counted


def _formulas(path: Path) -> dict[str, Formula]:
    source = Source(read_file(path), str(path), longest=_LONGEST)
    found: dict[str, Formula] = {}
    lines: dict[str, ast.expr] = {}
    for statement in _statements(source):
        target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Name):
            what, write = "a line is a name, = and an expression", "energy = x**2/2"
            raise source.fault(statement, what, found=source.excerpt(statement), write=write)
        lines[target.id] = statement.value
        found[target.id] = _formula(source, target.id, lines)
        found[target.id].__module__ = path.stem
    return found


def _statements(source: Source) -> list[ast.stmt]:
    try:
        return ast.parse(source.text, source.file).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as fault:
        line = getattr(fault, "lineno", None) or 1
        raise ArgumentError(f"{source.file}:{line}: this is no expression: {str(fault)[:80]}") from None


def _formula(source: Source, name: str, lines: dict[str, ast.expr]) -> Formula:
    reader = _Formulas(source, lines={each: tree for each, tree in lines.items() if each != name})
    result = reader.read(lines[name])
    trees = (each for tree in lines.values() for each in ast.walk(tree) if isinstance(each, ast.Name))
    places = {
        each.id: (each.lineno, each.col_offset)
        for each in sorted(trees, key=lambda each: (-each.lineno, -each.col_offset))
    }
    ordered = sorted(reader.symbols, key=places.__getitem__)
    arguments = [Argument(each, kind=reader.kind(each)) for each in ordered]
    return formula(Program(name, tuple(arguments), tuple(reader.written.steps), result))


@dataclass(slots=True)
class _Formulas(ExpressionReader):
    """Converts one expression to steps; ``lines`` are the expressions that it may call by name."""

    most_parts: int = _PARTS
    most_depth: int = _DEPTH
    lines: dict[str, ast.expr] = field(default_factory=dict)
    written: Steps = field(default_factory=Steps)
    symbols: dict[str, None] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    arguments: frozenset[str] = frozenset()
    bound: dict[str, Name] = field(default_factory=dict)
    known: dict[str, Expression] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """The kind of a symbol."""
        return "array" if name in self.arrays else "integer" if name in self.counted else "number"

    def _made(self, function: str, *arguments: Expression) -> Expression:
        return self.written.call(function, *arguments)

    def _name(self, tree: Any, depth: int) -> Expression:
        name = tree.id
        if name in self.bound:
            return self.bound[name]
        if name in self.lines:
            if name not in self.known:
                # An index symbol of this expression may have another meaning in the called one.
                bound, self.bound = self.bound, {}
                self.known[name] = self._read(self.lines[name], depth)
                self.bound = bound
            return self.known[name]
        if name not in self.arguments:
            if name in self.written.constants:
                return self.written.constants[name]
            if name in _CONSTANTS:
                return Literal(_CONSTANTS[name])
        self.symbols.setdefault(name)
        return Name(name)

    def _constant(self, tree: Any, depth: int) -> Expression:
        if not isinstance(tree.value, (bool, int, float, complex)):
            raise self._refuse(tree)
        return ExpressionReader._constant(self, tree, depth)

    def _unary(self, tree: Any, depth: int) -> Expression:
        if isinstance(tree.op, ast.Invert):
            return self._made("logical_not", self._read(tree.operand, depth))
        return ExpressionReader._unary(self, tree, depth)

    def _binary(self, tree: Any, depth: int) -> Expression:
        spine = []
        while isinstance(tree, ast.BinOp):
            # The syntax tree of a long sum is deeply nested to the left.
            spine.append(tree)
            tree = tree.left
        found = self._read(tree, depth)
        for each in reversed(spine):
            function = OPERATORS.get(type(each.op)) or _BITS.get(type(each.op))
            if function is None:
                return ExpressionReader._binary(self, each, depth)
            found = self._made(function, found, self._read(each.right, depth))
        return found

    def _call(self, tree: Any, depth: int) -> Expression:
        name = getattr(tree.func, "id", None)
        if name in ("Sum", "Product") and not tree.keywords:
            return self._reduced(tree, "sum" if name == "Sum" else "prod", depth)
        if name == "Piecewise" and not tree.keywords:
            return self._pieces(tree, depth)
        if name is None or tree.keywords:
            raise self._refuse(tree.func if name is None else tree)
        arguments = [self._read(each, depth) for each in tree.args]
        found = self.written.named(_ALIASES.get(name, name), arguments)
        if found is None:
            raise self.source.fault(
                tree,
                f"`{name}` of {len(arguments)} arguments is no function of sympy's that is known here",
                found=self.source.excerpt(tree),
                write="sympy functions that NumPy or SciPy have, such as sin(x), besselj(n, x)",
            )
        return found

    def _pieces(self, tree: Any, depth: int) -> Expression:
        found: Expression = Literal(float("nan"))
        for piece in reversed(tree.args):
            value, condition = self._several(piece, 2)
            if isinstance(condition, ast.Constant) and condition.value is True:
                found = self._read(value, depth)
            else:
                found = self._made("where", self._read(condition, depth), self._read(value, depth), found)
        return found

    def _several(self, tree: ast.expr, count: int) -> list[ast.expr]:
        if isinstance(tree, ast.Tuple) and len(tree.elts) == count:
            return tree.elts
        write = "Piecewise((x, x > 0), (0, True))" if count == 2 else "Sum(x[i], (i, 0, n))"
        raise self.source.fault(tree, "this is no tuple of so many parts", found=self.source.excerpt(tree), write=write)

    def _reduced(self, tree: Any, function: str, depth: int) -> Expression:
        if len(tree.args) < 2:
            raise self.source.fault(
                tree, "a sum has bounds", found=self.source.excerpt(tree), write="Sum(x[i], (i, 0, n))"
            )
        body, *limits = tree.args
        outer, indices = dict(self.bound), []
        # Of several the last is the outermost.
        for limit in reversed(limits):
            symbol, low, high = self._several(limit, 3)
            if not isinstance(symbol, ast.Name):
                raise self._refuse(symbol)
            index = self.written.index(self._whole(low, depth), self._whole(high, depth))
            self.bound[symbol.id] = index
            indices.append(index)
        found = self._read(body, depth)
        for index in reversed(indices):
            found = self.written.over(found, index, function)
        self.bound = outer
        return found

    def _whole(self, tree: ast.expr, depth: int) -> Expression:
        """A bound or an index, whose symbols are integers."""
        names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
        self.counted |= {each for each in names if each not in self.bound}
        return self._read(tree, depth)

    def _subscript(self, tree: Any, depth: int) -> Expression:
        if not isinstance(tree.value, ast.Name) or tree.value.id in (*self.bound, *self.lines):
            raise self.source.fault(
                tree, "brackets follow the name of an array", found=self.source.excerpt(tree), write="x[i] or x[i, j]"
            )
        self.arrays.add(tree.value.id)
        self.symbols.setdefault(tree.value.id)
        parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        return self._made("element", Name(tree.value.id), *(self._whole(each, depth) for each in parts))

    def _tuple(self, tree: Any, depth: int) -> Expression:
        raise self._refuse(tree)
