"""Formats generated Python: each statement by itself, as ruff does it; comments and long strings stay as they are."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator

from yota.emit.python.expression_layout import (
    COMMA,
    OPERATORS,
    Choice,
    Document,
    Preferred,
    UnprintableError,
    arguments_of,
    block,
    display,
    expression,
    flattened,
    joined,
    lay_out,
    level_of,
    operand_level,
    rigid,
    sign_level,
)
from yota.emit.python.function_plan import Line


def statement(tree: ast.stmt) -> Document:
    """Document of one simple statement, or of the header of a compound one."""
    if isinstance(tree, ast.Assign) and len(tree.targets) == 1:
        return (_value(tree.targets[0]), " = ", _assigned(tree.value))
    if isinstance(tree, ast.AugAssign):
        return (_value(tree.target), f" {OPERATORS[type(tree.op)][0]}= ", _value(tree.value))
    if isinstance(tree, ast.AnnAssign) and tree.value is not None:
        return (_value(tree.target), ": ", ast.unparse(tree.annotation), " = ", _assigned(tree.value))
    if isinstance(tree, ast.Return) and tree.value is not None:
        return ("return ", _value(tree.value))
    if isinstance(tree, ast.Raise) and tree.exc is not None and tree.cause is None:
        return ("raise ", _value(tree.exc))
    if isinstance(tree, ast.Expr):
        return _value(tree.value)
    if isinstance(tree, ast.If):
        return ("if ", _value(tree.test), ":")
    if isinstance(tree, ast.For):
        return ("for ", _value(tree.target), " in ", _value(tree.iter), ":")
    if isinstance(tree, ast.FunctionDef):
        return _definition(tree)
    raise UnprintableError(type(tree).__name__)


def _assigned(tree: ast.expr) -> Document:
    return display(tree) if isinstance(tree, ast.Tuple) else _value(tree)


def _definition(tree: ast.FunctionDef) -> Document:
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or arguments.kwonlyargs:
        raise UnprintableError("parameters")
    plain = len(arguments.args) - len(arguments.defaults)
    parts: list[Document] = []
    for number, argument in enumerate(arguments.args):
        hint = "" if argument.annotation is None else (": ", expression(argument.annotation))
        default: Document = ""
        if number >= plain:
            default = (" = " if hint else "=", expression(arguments.defaults[number - plain]))
        parts.append((argument.arg, hint, default))
    returns = "" if tree.returns is None else f" -> {ast.unparse(tree.returns)}"
    listing = block("(", (*parts, COMMA), ")") if len(parts) == 1 else arguments_of(parts)
    return (f"def {tree.name}", listing, returns, ":")


def _value(tree: ast.expr) -> Document:
    """An expression that ends a statement: in parentheses of its own only if it needs them to be broken."""
    if isinstance(tree, ast.Tuple) and tree.elts:
        if len(tree.elts) == 1:
            return display(tree)
        return _in_brackets((joined([expression(item) for item in tree.elts]), COMMA))
    content = expression(tree)
    if not isinstance(tree, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp)):
        return content
    if isinstance(tree, ast.UnaryOp) and _bracketed(tree.operand):
        return content
    inside = _in_brackets(content)
    return Preferred(rigid(tree), inside) if _may_stand_bare(tree) else inside


def _in_brackets(content: Document) -> Document:
    """``content`` in parentheses if it is broken."""
    return block(Choice("", "("), content, Choice("", ")"))


def _bracketed(tree: ast.expr) -> bool:
    """Whether an expression ends in brackets that hold something; those of an index do not count."""
    if isinstance(tree, ast.Call):
        return bool(tree.args or tree.keywords)
    return isinstance(tree, (ast.List, ast.Tuple)) and bool(tree.elts)


def _may_stand_bare(tree: ast.expr) -> bool:
    """Whether breaking inside the brackets at either end will do: there must be one weakest operator only."""
    if isinstance(tree, ast.BinOp):
        level = OPERATORS[type(tree.op)][1]
        count = len(flattened(tree, level)) // 2
        return count == 1 and (_begins_bracketed(tree) or _ends_bracketed(tree))
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _begins_bracketed(tree.left) or _ends_bracketed(tree.comparators[0])
    chain = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not) and isinstance(tree.operand, ast.BinOp)
    return isinstance(tree, ast.UnaryOp) and not chain and _ends_bracketed(tree.operand)


def _begins_bracketed(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return level_of(tree.left) < operand_level(tree, 0) or _begins_bracketed(tree.left)
    return isinstance(tree, (ast.List, ast.Tuple))


def _ends_bracketed(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return level_of(tree.right) < operand_level(tree, 1) or _ends_bracketed(tree.right)
    if isinstance(tree, ast.UnaryOp):
        return level_of(tree.operand) < sign_level(tree) or _ends_bracketed(tree.operand)
    return _bracketed(tree)


WIDTH = 88
"""What ruff and black take when nothing else is said."""
LONGEST = 100
"""Columns of a line in a plan."""

_WORDS = ("else", "try", "except", "finally", "with", "class", "import", "from", "@", "pass")


def logical_lines(text: str) -> Iterator[tuple[int, int]]:
    r"""First and last line (from one) of each statement, comment on a line of its own, or blank line.

    >>> list(logical_lines("x = (\n    1\n)\n\n# c\n"))
    [(1, 3), (4, 4), (5, 5)]
    """
    first: int | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = token.type
        if kind in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        if kind == tokenize.NEWLINE:
            yield (token.start[0] if first is None else first), token.end[0]
            first = None
        elif first is None and kind == tokenize.NL:
            yield token.start[0], token.start[0]
        elif first is None and kind != tokenize.COMMENT:
            first = token.start[0]


def formatted(text: str, width: int = WIDTH) -> str:
    """``text`` with its statements laid out in lines of at most ``width`` columns where that is possible."""
    lines = text.split("\n")
    return "".join(f"{_formatted(lines[first - 1 : last], width)}\n" for first, last in logical_lines(text))


def _formatted(lines: list[str], width: int) -> str:
    raw = "\n".join(line.rstrip() for line in lines)
    code = raw.lstrip()
    if not code or code.startswith("#") or '"""' in code or (code.startswith(_WORDS) and len(raw) <= width):
        return raw
    indent = len(raw) - len(code)
    try:
        (tree,) = ast.parse(code + " pass" if code.endswith(":") else code).body
        return lay_out(statement(tree), indent, width)
    except (RecursionError, SyntaxError, UnprintableError):
        return raw


def wrapped(lines: Iterable[str], indent: int) -> tuple[str, ...]:
    """``lines`` of a plan, broken where they are too long when indented by ``indent``."""
    found: list[str] = []
    for line in lines:
        pieces = _formatted([line], LONGEST - indent).split("\n") if len(line) > LONGEST - indent else [line]
        found += [Line(piece, line.variables) for piece in pieces] if isinstance(line, Line) else pieces
    return tuple(found)
