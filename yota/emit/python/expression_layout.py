"""Python expressions as documents that know where they may be broken, laid out the way ruff does it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Choice:
    """What stands in a group that fits, and in one that is broken; a line break if nothing else is said."""

    flat: str = ""
    broken: str = "\n"


@dataclass(frozen=True, slots=True)
class Group:
    """Breaks at all of its own places, or at none if it fits."""

    content: Document


@dataclass(frozen=True, slots=True)
class Indented:
    """Lines that begin inside are set in by four more columns."""

    content: Document


@dataclass(frozen=True, slots=True)
class Preferred:
    """``content``, broken inside if need be, if its first line fits; else ``other``."""

    content: Document
    other: Document


Document: TypeAlias = "str | Choice | Group | Indented | Preferred | tuple[Document, ...]"
_Pending: TypeAlias = "tuple[int, bool, Document]"

SPACE, COMMA = Choice(" "), Choice("", ",")
"""A space where a line may end, and a comma that stands only ahead of a line break."""


def joined(parts: Sequence[Document], separator: Document = (",", SPACE)) -> Document:
    """``parts`` with ``separator`` between them."""
    return tuple(each for part in parts for each in (separator, part))[1:]


def block(opening: str | Choice, content: Document, closing: str | Choice) -> Document:
    """``content`` in brackets, on lines of its own if it does not fit."""
    return Group((opening, Indented((Choice(), content)), Choice(), closing))


def lay_out(document: Document, indent: int, width: int) -> str:
    """Text of ``document``, whose first line begins at column ``indent``."""
    out, column = [" " * indent], indent
    pending: list[_Pending] = [(indent, True, document)]
    while pending:
        depth, broken, item = pending.pop()
        if isinstance(item, Choice):
            item = item.broken if broken else item.flat
        if isinstance(item, str):
            out.append("\n" + " " * depth if item == "\n" else item)
            column = depth if item == "\n" else column + len(item)
        elif isinstance(item, Preferred):
            forms = (depth, False, item.content), (depth, True, item.content)
            fitting = (form for form in forms if _fits(width - column, form, pending))
            pending.append(next(fitting, (depth, broken, item.other)))
        elif isinstance(item, Group):
            whole = not broken or _fits(width - column, (depth, False, item.content), pending)
            pending.append((depth, not whole, item.content))
        elif isinstance(item, Indented):
            pending.append((depth + 4, broken, item.content))
        else:
            pending.extend((depth, broken, part) for part in reversed(item))
    return "".join(out)


def _fits(room: int, item: _Pending, rest: Sequence[_Pending]) -> bool:
    """Whether everything up to the next line break that is taken fits into ``room`` columns."""
    items, later = [item], iter(reversed(rest))
    while room >= 0:
        found = items.pop() if items else next(later, None)
        if found is None:
            return True
        depth, broken, document = found
        if isinstance(document, Choice):
            document = document.broken if broken else document.flat
        if document == "\n":
            return True
        if isinstance(document, str):
            room -= len(document)
        elif isinstance(document, tuple):
            items.extend((depth, broken, part) for part in reversed(document))
        else:
            # What follows the measured part may still break wherever it can.
            items.append((depth, broken, document.content))
    return False


_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5, 12, 13, 20

OPERATORS: dict[type[ast.AST], tuple[str, int]] = {
    ast.Or: ("or", _OR),
    ast.And: ("and", _AND),
    ast.Not: ("not ", _NOT),
    ast.Eq: ("==", _COMPARISON),
    ast.NotEq: ("!=", _COMPARISON),
    ast.Lt: ("<", _COMPARISON),
    ast.LtE: ("<=", _COMPARISON),
    ast.Gt: (">", _COMPARISON),
    ast.GtE: (">=", _COMPARISON),
    ast.Is: ("is", _COMPARISON),
    ast.IsNot: ("is not", _COMPARISON),
    ast.In: ("in", _COMPARISON),
    ast.NotIn: ("not in", _COMPARISON),
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
    ast.USub: ("-", _SIGN),
    ast.UAdd: ("+", _SIGN),
    ast.Invert: ("~", _SIGN),
    ast.Pow: ("**", _POWER),
}
"""Python's operators, and how tightly they bind."""


class UnprintableError(Exception):
    """The syntax is none that generated code has."""


def rigid(tree: ast.expr) -> Document:
    """An operation that does not break at its operators."""
    simple = isinstance(tree, (ast.BinOp, ast.UnaryOp)) or (isinstance(tree, ast.Compare) and len(tree.ops) == 1)
    return _signed(tree, " ", whole=True) if simple else expression(tree)


def _signed(tree: ast.expr, gap: Document, *, whole: bool = False) -> Document:
    """Operands with the signs of Python's operators between them, each after a ``gap``."""

    def operand(part: ast.expr, level: int) -> Document:
        return rigid(part) if whole and level_of(part) >= level else _within(part, level)

    if isinstance(tree, ast.BinOp):
        parts = flattened(tree, OPERATORS[type(tree.op)][1])
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
        others = ((gap, OPERATORS[type(sign)][0], " ", operand(right, _COMPARISON + 1)) for sign, right in signs)
        return (operand(tree.left, _COMPARISON + 1), *others)
    assert isinstance(tree, ast.UnaryOp)
    return (OPERATORS[type(tree.op)][0], operand(tree.operand, sign_level(tree)))


def flattened(tree: ast.BinOp, level: int) -> list[ast.expr | str]:
    """Operands and signs of a chain of operators that bind equally."""
    sign, own = OPERATORS[type(tree.op)]
    if own != level:
        return [tree]
    if level == _POWER:
        return [tree.left, sign, *(flattened(tree.right, level) if isinstance(tree.right, ast.BinOp) else [tree.right])]
    return [*(flattened(tree.left, level) if isinstance(tree.left, ast.BinOp) else [tree.left]), sign, tree.right]


def operand_level(tree: ast.BinOp, number: int) -> int:
    """How tightly an operand must bind to stand without parentheses."""
    level = OPERATORS[type(tree.op)][1]
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
    if isinstance(tree, (ast.BinOp, ast.BoolOp, ast.UnaryOp)):
        return OPERATORS[type(tree.op)][1]
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
        return Group(_signed(tree, SPACE))
    if isinstance(tree, ast.BoolOp):
        word, level = OPERATORS[type(tree.op)]
        return Group(joined([_within(value, level + 1) for value in tree.values], (SPACE, word, " ")))
    if isinstance(tree, ast.UnaryOp):
        return _signed(tree, " ")
    if isinstance(tree, ast.IfExp):
        test, other = _within(tree.test, _OR), _within(tree.orelse, _CONDITIONAL)
        return Group((_within(tree.body, _OR), SPACE, "if ", test, SPACE, "else ", other))
    raise UnprintableError(type(tree).__name__)


def _call_arguments(tree: ast.Call) -> Document:
    parts = [expression(argument) for argument in tree.args]
    for keyword in tree.keywords:
        if keyword.arg is None:
            raise UnprintableError("**")
        parts.append((f"{keyword.arg}=", expression(keyword.value)))
    return arguments_of(parts)


def arguments_of(parts: list[Document]) -> Document:
    """Arguments or parameters: first on a line of their own together, then one on each line."""
    return block("(", Group((joined(parts), COMMA)), ")") if parts else "()"


def display(tree: ast.List | ast.Tuple) -> Document:
    """A list or a tuple in its brackets."""
    opening, closing = ("[", "]") if isinstance(tree, ast.List) else ("(", ")")
    if not tree.elts:
        return opening + closing
    return block(opening, _items(tree, [expression(item) for item in tree.elts]), closing)


def _items(tree: ast.List | ast.Tuple, items: list[Document]) -> Document:
    """Entries of a list or tuple; that of a tuple with only one keeps its comma."""
    return (joined(items), "," if isinstance(tree, ast.Tuple) and len(items) == 1 else COMMA)


def _index(tree: ast.expr) -> Document:
    if isinstance(tree, ast.Tuple) and tree.elts:
        return _items(tree, [_entry(item) for item in tree.elts])
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
