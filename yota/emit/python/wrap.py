"""Breaks long lines of generated Python the way ruff format would."""

from __future__ import annotations

from collections.abc import Iterable

from yota.emit.python.function_plan import Line

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"


def wrapped(lines: Iterable[str], indent: int) -> tuple[str, ...]:
    """``lines``, each broken at its last pair of brackets if it is too long when indented by ``indent``."""
    return tuple(
        Line(piece, line.variables) if isinstance(line, Line) else piece
        for line in lines
        for piece in _broken(line, WIDTH - indent)
    )


def _broken(line: str, width: int) -> list[str]:
    if len(line) <= width or line.lstrip().startswith("#"):
        return [line]
    blank = line[: len(line) - len(line.lstrip())]
    if line.endswith(" = work"):
        names = line.strip().removesuffix(" = work").rstrip(",").split(", ")
        return [f"{blank}(", *(f"{blank}    {name}," for name in names), f"{blank}) = work"]
    start = _last_bracket(line)
    if start is None:
        return [line]
    head, inner, close = line[: start + 1], line[start + 1 : -1], line[-1]
    if len(blank) + 4 + len(inner) <= width and close != "}":
        return [head, f"{blank}    {inner}", f"{blank}{close}"]
    found = [head]
    for item in _items(inner):
        found += _broken(f"{blank}    {item},", width)
    return [*found, f"{blank}{close}"]


def _last_bracket(line: str) -> int | None:
    """Where the bracket opens that the end of the line closes."""
    if not line or line[-1] not in _CLOSE:
        return None
    position = None
    opened: list[int] = []
    for place, character in _code(line):
        if character in _OPEN:
            opened.append(place)
        elif character in _CLOSE and opened:
            position = opened.pop()
    return position


def _items(text: str) -> list[str]:
    """``text`` cut at the commas outside of brackets."""
    depth, begin, found = 0, 0, []
    for place, character in _code(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            found.append(text[begin:place].strip())
            begin = place + 1
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


def _code(text: str) -> Iterable[tuple[int, str]]:
    """Characters outside of string literals, with their places."""
    quote = ""
    escaped = False
    for place, character in enumerate(text):
        if quote:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        else:
            yield place, character
