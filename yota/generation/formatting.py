"""Formats generated Python: each statement by itself; comments and strings over several lines stay as they are."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator

from yota.generation.expressions import UnprintableError
from yota.generation.layout import lay_out
from yota.generation.printing import statement

WIDTH = 88
"""What ruff and black take when nothing else is said."""

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
    except (SyntaxError, UnprintableError):
        return raw
