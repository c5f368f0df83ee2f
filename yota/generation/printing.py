"""Simple Python statements as documents that are laid out the way ruff does it."""

from __future__ import annotations

import ast

from yota.generation.layout import Broken, Document, Group, Indented, Line, Preferred, block, joined

__all__ = ["UnprintableError", "quoted", "statement"]

_CONDITIONAL, _OR, _AND, _NOT, _COMPARISON, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5, 12, 13, 20

_BINARY: dict[type[ast.AST], tuple[str, int]] = {
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


def statement(tree: ast.stmt) -> Document:
    """Document of one simple statement, or of the header of a compound one.

    Raises
    ------
    UnprintableError
        If it is of a kind that generated code does not have.
    """
    if isinstance(tree, ast.Assign) and len(tree.targets) == 1:
        return (_target(tree.targets[0]), " = ", _assigned(tree.value))
    if isinstance(tree, ast.AugAssign):
        return (_target(tree.target), f" {_BINARY[type(tree.op)][0]}= ", _value(tree.value))
    if isinstance(tree, ast.AnnAssign) and tree.value is not None:
        return (_target(tree.target), ": ", ast.unparse(tree.annotation), " = ", _assigned(tree.value))
    if isinstance(tree, ast.Return) and tree.value is not None:
        return ("return ", _value(tree.value))
    if isinstance(tree, ast.Raise) and tree.exc is not None and tree.cause is None:
        return ("raise ", _value(tree.exc))
    if isinstance(tree, ast.Expr):
        return _value(tree.value)
    if isinstance(tree, ast.If):
        return ("if ", _value(tree.test), ":")
    if isinstance(tree, ast.For):
        return ("for ", _flat(tree.target), " in ", _value(tree.iter), ":")
    if isinstance(tree, ast.FunctionDef):
        return _definition(tree)
    raise UnprintableError(type(tree).__name__)


def _assigned(tree: ast.expr) -> Document:
    return _display(tree) if isinstance(tree, ast.Tuple) else _value(tree)


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
    alone = block("(", (*parts, Broken(",")), ")") if len(parts) == 1 else _arguments(parts)
    listing = alone if parts else "()"
    return (f"def {tree.name}", listing, returns, ":")


def _target(tree: ast.expr) -> Document:
    if isinstance(tree, ast.Tuple):
        return _bare_tuple(tree)
    return expression(tree)


def _value(tree: ast.expr) -> Document:
    """An expression that ends a statement: in parentheses of its own only if it needs them to be broken."""
    if isinstance(tree, ast.Tuple) and tree.elts:
        return _bare_tuple(tree)
    content = expression(tree)
    if not isinstance(tree, (ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.UnaryOp)):
        return content
    if isinstance(tree, ast.UnaryOp) and _bracketed(tree.operand):
        return content
    inside = Group((Broken("("), Indented((Line(), content)), Line(), Broken(")")))
    return Preferred(_rigid(tree), inside) if _may_stand_bare(tree) else inside


def _bare_tuple(tree: ast.Tuple) -> Document:
    items = joined([expression(item) for item in tree.elts], (",", Line(" ")))
    if len(tree.elts) == 1:
        return Group((Broken("("), Indented((Line(), items, ",")), Line(), Broken(")")))
    return Group((Broken("("), Indented((Line(), items, Broken(","))), Line(), Broken(")")))


def _bracketed(tree: ast.expr) -> bool:
    """Whether an expression ends in brackets that hold something; those of an index do not count."""
    if isinstance(tree, ast.Call):
        return bool(tree.args or tree.keywords)
    return isinstance(tree, (ast.List, ast.Tuple)) and bool(tree.elts)


def _may_stand_bare(tree: ast.expr) -> bool:
    """Whether breaking inside the brackets at either end will do: there must be one weakest operator only."""
    if isinstance(tree, ast.BinOp):
        level = _BINARY[type(tree.op)][1]
        count = len(_flattened(tree, level)) // 2
        return count == 1 and (_begins_bracketed(tree) or _ends_bracketed(tree))
    if isinstance(tree, ast.Compare) and len(tree.ops) == 1:
        return _begins_bracketed(tree.left) or _ends_bracketed(tree.comparators[0])
    chain = isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not) and isinstance(tree.operand, ast.BinOp)
    return isinstance(tree, ast.UnaryOp) and not chain and _ends_bracketed(tree.operand)


def _begins_bracketed(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return _level(tree.left) < _operand_level(tree, 0) or _begins_bracketed(tree.left)
    return isinstance(tree, (ast.List, ast.Tuple))


def _ends_bracketed(tree: ast.expr) -> bool:
    if isinstance(tree, ast.BinOp):
        return _level(tree.right) < _operand_level(tree, 1) or _ends_bracketed(tree.right)
    if isinstance(tree, ast.UnaryOp):
        return _level(tree.operand) < _sign_level(tree) or _ends_bracketed(tree.operand)
    return _bracketed(tree)


def _rigid(tree: ast.expr) -> Document:
    """An operation that does not break at its operators."""
    if isinstance(tree, ast.BinOp):
        parts = _flattened(tree, _BINARY[type(tree.op)][1])
        return tuple(
            (" ", part, " ")
            if isinstance(part, str) and not _hugs(parts, number)
            else part
            if isinstance(part, str)
            else _within(part, _operand_level(tree, number), rigid=True)
            for number, part in enumerate(parts)
        )
    if isinstance(tree, ast.Compare):
        right = _within(tree.comparators[0], _COMPARISON + 1, rigid=True)
        return (_within(tree.left, _COMPARISON + 1, rigid=True), f" {_COMPARE[type(tree.ops[0])]} ", right)
    if isinstance(tree, ast.UnaryOp):
        return (_UNARY[type(tree.op)], _within(tree.operand, _sign_level(tree), rigid=True))
    return expression(tree)


def _flattened(tree: ast.BinOp, level: int) -> list[ast.expr | str]:
    """Operands and signs of a chain of operators that bind equally."""
    sign, own = _BINARY[type(tree.op)]
    if own != level:
        return [tree]
    if level == _POWER:
        right = tree.right
        return [tree.left, sign, *(_flattened(right, level) if isinstance(right, ast.BinOp) else [right])]
    left = tree.left
    head: list[ast.expr | str] = (
        _flattened(left, level) if isinstance(left, ast.BinOp) and _BINARY[type(left.op)][1] == level else [left]
    )
    return [*head, sign, tree.right]


def _operand_level(tree: ast.BinOp, number: int) -> int:
    level = _BINARY[type(tree.op)][1]
    if level == _POWER:
        return _SIGN if number == len(_flattened(tree, level)) - 1 else _ATOM
    return level if number == 0 else level + 1


def _sign_level(tree: ast.UnaryOp) -> int:
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


def _flat(tree: ast.expr) -> str:
    return ", ".join(ast.unparse(item) for item in tree.elts) if isinstance(tree, ast.Tuple) else ast.unparse(tree)


def _level(tree: ast.expr) -> int:
    if isinstance(tree, ast.BinOp):
        return _BINARY[type(tree.op)][1]
    if isinstance(tree, ast.BoolOp):
        return _OR if isinstance(tree.op, ast.Or) else _AND
    if isinstance(tree, ast.UnaryOp):
        return _NOT if isinstance(tree.op, ast.Not) else _SIGN
    if isinstance(tree, ast.Compare):
        return _COMPARISON
    if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)) and str(tree.value).startswith("-"):
        return _SIGN
    return _CONDITIONAL if isinstance(tree, ast.IfExp) else _ATOM


def _within(tree: ast.expr, level: int, *, rigid: bool = False) -> Document:
    """The expression where something that binds at ``level`` is needed."""
    if _level(tree) < level:
        return block("(", expression(tree), ")")
    return _rigid(tree) if rigid else expression(tree)


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
        return _display(tree)
    if isinstance(tree, ast.Starred):
        return ("*", _within(tree.value, _ATOM))
    return _operation(tree)


def _operation(tree: ast.expr) -> Document:
    if isinstance(tree, ast.BinOp):
        parts = _flattened(tree, _BINARY[type(tree.op)][1])
        return Group(
            tuple(
                (part if _hugs(parts, number) else (Line(" "), part, " "))
                if isinstance(part, str)
                else _within(part, _operand_level(tree, number))
                for number, part in enumerate(parts)
            )
        )
    if isinstance(tree, ast.BoolOp):
        word, level = ("or", _OR) if isinstance(tree.op, ast.Or) else ("and", _AND)
        return Group(joined([_within(value, level + 1) for value in tree.values], (Line(" "), word, " ")))
    if isinstance(tree, ast.UnaryOp):
        return (_UNARY[type(tree.op)], _within(tree.operand, _sign_level(tree)))
    if isinstance(tree, ast.Compare):
        found: list[Document] = [_within(tree.left, _COMPARISON + 1)]
        for sign, right in zip(tree.ops, tree.comparators, strict=True):
            found.append((Line(" "), _COMPARE[type(sign)], " ", _within(right, _COMPARISON + 1)))
        return Group(tuple(found))
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
    return _arguments(parts) if parts else "()"


def _arguments(parts: list[Document]) -> Document:
    """Arguments or parameters: first on a line of their own together, then one on each line."""
    return block("(", Group((joined(parts, (",", Line(" "))), Broken(","))), ")")


def _display(tree: ast.List | ast.Tuple) -> Document:
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

    Examples
    --------
    >>> print(quoted("it's"))
    "it's"
    """
    body = ascii(text)[1:-1]
    body = body.replace("\\'", "'") if ascii(text)[0] == "'" else body
    return f'"{body}"' if '"' not in body else ascii(text)
