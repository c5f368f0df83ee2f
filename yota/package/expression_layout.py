"""Python expressions as documents that are laid out the way ruff does it."""

from __future__ import annotations

import ast

from yota.package.documents import Broken, Document, Group, Line, block, joined

_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5, 12, 13, 20

BINARY: dict[type[ast.AST], tuple[str, int]] = {
    ast.BitOr: ("|", 6),
    ast.BitXor: ("^", 7),
    ast.BitAnd: ("&", 8),
    ast.LShift: ("<<", 9),
    ast.RShift: (">>", 9),
    ast.Add: ("+", 10),
    ast.Sub: ("-", 10),
    ast.Mult: ("*", 11),
    ast.Div: ("/", 11),
    ast.FloorDiv: ("//", 11),
    ast.Mod: ("%", 11),
    ast.MatMult: ("@", 11),
    ast.Pow: ("**", _POWER),
}
_COMPARE: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
_UNARY: dict[type[ast.AST], str] = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not "}


class UnprintableError(Exception):
    """The syntax is none that generated code has."""


def rigid(tree: ast.expr) -> Document:
    """An operation that does not break at its operators."""
    simple = isinstance(tree, (ast.BinOp, ast.UnaryOp)) or (isinstance(tree, ast.Compare) and len(tree.ops) == 1)
    return _signed(tree, " ", whole=True) if simple else expression(tree)


def _signed(tree: ast.expr, gap: Document, *, whole: bool = False) -> Document:
    """Operands with the signs of Python's operators between them, each after a ``gap``."""

    def operand(part: ast.expr, level: int) -> Document:
        if level_of(part) < level:
            return block("(", expression(part), ")")
        return rigid(part) if whole else expression(part)

    if isinstance(tree, ast.BinOp):
        parts = flattened(tree, BINARY[type(tree.op)][1])
        return tuple(
            operand(part, operand_level(tree, number))
            if not isinstance(part, str)
            else part
            if _hugs(parts, number)
            else (gap, part, " ")
            for number, part in enumerate(parts)
        )
    if isinstance(tree, ast.Compare):
        signs = zip(tree.ops, tree.comparators, strict=True)
        others = ((gap, _COMPARE[type(sign)], " ", operand(right, _COMPARISON + 1)) for sign, right in signs)
        return (operand(tree.left, _COMPARISON + 1), *others)
    assert isinstance(tree, ast.UnaryOp)
    return (_UNARY[type(tree.op)], operand(tree.operand, sign_level(tree)))


def flattened(tree: ast.BinOp, level: int) -> list[ast.expr | str]:
    """Operands and signs of a chain of operators that bind equally."""
    sign, own = BINARY[type(tree.op)]
    if own != level:
        return [tree]
    if level == _POWER:
        right = tree.right
        return [tree.left, sign, *(flattened(right, level) if isinstance(right, ast.BinOp) else [right])]
    left = tree.left
    head: list[ast.expr | str] = (
        flattened(left, level) if isinstance(left, ast.BinOp) and BINARY[type(left.op)][1] == level else [left]
    )
    return [*head, sign, tree.right]


def operand_level(tree: ast.BinOp, number: int) -> int:
    """How tightly an operand must bind to stand without parentheses."""
    level = BINARY[type(tree.op)][1]
    if level == _POWER:
        return _SIGN if number == len(flattened(tree, level)) - 1 else _ATOM
    return level if number == 0 else level + 1


def sign_level(tree: ast.UnaryOp) -> int:
    """How tightly the operand of a sign must bind to stand without parentheses."""
    # Powers bind tighter than signs, but are easier to read in parentheses.
    return _NOT if isinstance(tree.op, ast.Not) else _ATOM if isinstance(tree.operand, ast.BinOp) else _SIGN


def _hugs(parts: list[ast.expr | str], number: int) -> bool:
    """Whether the sign at ``number`` stands without spaces."""
    around = parts[number - 1], parts[number + 1]
    return parts[number] == "**" and all(not isinstance(part, str) and _simple(part) for part in around)


def _simple(tree: ast.expr) -> bool:
    if isinstance(tree, ast.UnaryOp):
        return not isinstance(tree.op, ast.Not) and _simple(tree.operand)
    if isinstance(tree, ast.Attribute):
        return _simple(tree.value)
    return isinstance(tree, ast.Name) or (isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)))


def level_of(tree: ast.expr) -> int:
    """How tightly an expression binds."""
    if isinstance(tree, ast.BinOp):
        return BINARY[type(tree.op)][1]
    if isinstance(tree, ast.BoolOp):
        return _OR if isinstance(tree.op, ast.Or) else _AND
    if isinstance(tree, ast.UnaryOp):
        return _NOT if isinstance(tree.op, ast.Not) else _SIGN
    if isinstance(tree, ast.Compare):
        return _COMPARISON
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)) and str(tree.value).startswith("-"):
        return _SIGN
    return _CONDITIONAL if isinstance(tree, ast.IfExp) else _ATOM


def _within(tree: ast.expr, level: int) -> Document:
    """The expression where something that binds at ``level`` is needed."""
    return block("(", expression(tree), ")") if level_of(tree) < level else expression(tree)


def expression(tree: ast.expr) -> Document:
    """Document of an expression inside of brackets."""
    if isinstance(tree, ast.Name):
        return tree.id
    if isinstance(tree, ast.Constant):
        if tree.value is ...:
            return "..."
        return quoted(tree.value) if isinstance(tree.value, str) else repr(tree.value)
    if isinstance(tree, ast.Attribute):
        return (_within(tree.value, _ATOM), f".{tree.attr}")
    if isinstance(tree, ast.Call):
        return (_within(tree.func, _ATOM), _call_arguments(tree))
    if isinstance(tree, ast.Subscript):
        return (_within(tree.value, _ATOM), block("[", _index(tree.slice), "]"))
    if isinstance(tree, (ast.List, ast.Tuple)):
        return display(tree)
    if isinstance(tree, ast.Starred):
        return ("*", _within(tree.value, _ATOM))
    return _operation(tree)


def _operation(tree: ast.expr) -> Document:
    if isinstance(tree, (ast.BinOp, ast.Compare)):
        return Group(_signed(tree, Line(" ")))
    if isinstance(tree, ast.BoolOp):
        word, level = ("or", _OR) if isinstance(tree.op, ast.Or) else ("and", _AND)
        return Group(joined([_within(value, level + 1) for value in tree.values], (Line(" "), word, " ")))
    if isinstance(tree, ast.UnaryOp):
        return _signed(tree, " ")
    if isinstance(tree, ast.IfExp):
        test, other = _within(tree.test, _OR), _within(tree.orelse, _CONDITIONAL)
        return Group((_within(tree.body, _OR), Line(" "), "if ", test, Line(" "), "else ", other))
    raise UnprintableError(type(tree).__name__)


def _call_arguments(tree: ast.Call) -> Document:
    parts = [expression(argument) for argument in tree.args]
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise UnprintableError("**")
        parts.append((f"{keyword.arg}=", expression(keyword.value)))
    return arguments_of(parts) if parts else "()"


def arguments_of(parts: list[Document]) -> Document:
    """Arguments or parameters: first on a line of their own together, then one on each line."""
    return block("(", Group((joined(parts, (",", Line(" "))), Broken(","))), ")")


def display(tree: ast.List | ast.Tuple) -> Document:
    """A list or a tuple in its brackets."""
    opening, closing = ("[", "]") if isinstance(tree, ast.List) else ("(", ")")
    if not tree.elts:
        return opening + closing
    items = joined([expression(item) for item in tree.elts], (",", Line(" ")))
    single = isinstance(tree, ast.Tuple) and len(tree.elts) == 1
    return block(opening, (items, "," if single else Broken(",")), closing)


def _index(tree: ast.expr) -> Document:
    if isinstance(tree, ast.Tuple) and tree.elts:
        items = joined([_entry(item) for item in tree.elts], (",", Line(" ")))
        return (items, "," if len(tree.elts) == 1 else Broken(","))
    return _entry(tree)


def _entry(tree: ast.expr) -> Document:
    if not isinstance(tree, ast.Slice):
        return expression(tree)
    parts = [part for part in (tree.lower, tree.upper, tree.step) if part is not None]
    gap = "" if all(map(_simple, parts)) else " "
    found: list[Document] = [(expression(tree.lower), gap) if tree.lower else "", ":"]
    found.append((gap, expression(tree.upper)) if tree.upper else "")
    if tree.step is not None:
        found.append((gap if tree.upper else "", ":", gap, expression(tree.step)))
    return tuple(found)


def quoted(text: str) -> str:
    """A string literal in double quotes; ASCII only, and harmless whatever the text.

    >>> print(quoted("it's"))
    "it's"
    """
    body = ascii(text)[1:-1]
    body = body.replace("\\'", "'") if ascii(text)[0] == "'" else body
    return f'"{body}"' if '"' not in body else ascii(text)
