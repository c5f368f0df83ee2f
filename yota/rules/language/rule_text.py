"""The text of a rule file: what may stand in it, where each thing stands, and the errors that point there."""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from yota.errors import RuleError

_LENGTH = 1_000_000
_STATEMENT = 2_000
_NESTING = 30
_QUOTED = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"[^"\n]*"|\'[^\'\n]*\'|#[^\n]*')
_STRANGE = re.compile(r"[^\n\x20-\x7e]|\\")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_MARKS = re.compile(r"[()\[\]{}\n]")
_EXCERPT = 160
_QUOTE = 60


class Place(NamedTuple):
    """A line and a column, both from one; columns count characters."""

    line: int
    column: int


class Source:
    """A rule text and the places of what was read from it.

    text: the text; checked for size, characters and nesting before Python's parser sees it.
    file: name to show in errors.
    first: line of the file on which the text begins.
    longest: characters that a statement may have.
    """

    def __init__(self, text: str, file: str, first: int = 1, longest: int = _STATEMENT) -> None:
        self.longest = longest
        self.file = file
        self.first = first
        self.text = text.replace("\r\n", "\n")
        self.lines = self.text.split("\n")
        # Things are kept with their places, so that no identity is used again.
        self._places: dict[int, tuple[Any, Place]] = {}
        self._admit()

    def mark(self, thing: Any, tree: ast.AST) -> Any:
        """Remember that ``thing`` was read from ``tree``, and give it back."""
        self._places[id(thing)] = (thing, self.place_of(tree))
        return thing

    def place(self, thing: Any) -> Place:
        """Where ``thing`` was read; the first line if it was not."""
        if isinstance(thing, Place):
            return thing
        if isinstance(thing, ast.AST):
            return self.place_of(thing)
        known = self._places.get(id(thing))
        return known[1] if known is not None and known[0] is thing else Place(1, 1)

    def place_of(self, tree: ast.AST) -> Place:
        """Place of a piece of syntax; ``ast`` counts columns in bytes."""
        line = getattr(tree, "lineno", 1)
        before = self._line(line).encode()[: getattr(tree, "col_offset", 0)]
        return Place(line, len(before.decode(errors="ignore")) + 1)

    def excerpt(self, tree: ast.AST) -> str:
        """Text of a piece of syntax, shortened to one line."""
        flat = " ".join((ast.get_source_segment(self.text, tree) or type(tree).__name__).split())
        return flat if len(flat) <= _QUOTE else f"{flat[: _QUOTE - 3]}..."

    def fault(self, thing: Any, what: str, *, found: str | None = None, write: str) -> RuleError:
        """The error at ``thing``: what is wrong, what was found (by default its text), and a line that mends it."""
        if found is None:
            from yota.rules.language.display import show

            found = self.excerpt(thing) if isinstance(thing, ast.AST) else show(thing)[:60]
        place = self.place(thing)
        line = self._line(place.line)
        column = min(place.column, len(line) + 1)
        # The window keeps the caret in sight on a very long line.
        start = max(0, column - _EXCERPT // 2) if len(line) > _EXCERPT else 0
        shown = "".join(char if char.isprintable() else "?" for char in line[start : start + _EXCERPT])
        return RuleError(
            f"{self.file}:{place.line + self.first - 1}:{column}: {what}\n"
            f"    {shown}\n    {' ' * (column - 1 - start)}^\n"
            f"found: {found}\n"
            f"write: {write}"
        )

    def _line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def _at(self, offset: int) -> Place:
        line = self.text.count("\n", 0, offset)
        return Place(line + 1, offset - (self.text.rfind("\n", 0, offset) + 1) + 1)

    def _admit(self) -> None:
        """Refuse what could hurt Python's parser, or reads otherwise than it looks."""
        if len(self.text) > _LENGTH:
            raise self.fault(
                Place(1, 1), "the rule text is too long", found=f"{len(self.text)} characters", write="split the file"
            )
        code = _QUOTED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), self.text)
        strange = _CONTROL.search(self.text) or _STRANGE.search(code)
        if strange is not None:
            what = "this character is not allowed here"
            write = "ASCII letters, digits, operators, spaces and newlines"
            raise self.fault(self._at(strange.start()), what, found=ascii(strange.group()), write=write)
        self._measure(code)

    def _measure(self, code: str) -> None:
        depth = start = 0
        for match in _MARKS.finditer(code):
            mark = match.group()
            if mark in "([{":
                depth += 1
            elif mark in ")]}":
                depth = max(depth - 1, 0)
            if depth > _NESTING:
                raise self.fault(
                    self._at(match.start()),
                    "brackets are nested too deeply",
                    found=f"more than {_NESTING} open brackets",
                    write="a second function for the inner part, with a rule of its own",
                )
            if match.start() - start > self.longest:
                self._too_long(start)
            if mark == "\n" and not depth:
                start = match.end()
        if len(code) - start > self.longest:
            self._too_long(start)

    def _too_long(self, start: int) -> None:
        raise self.fault(
            self._at(start),
            "the statement is too long",
            found=f"more than {self.longest} characters; perhaps a bracket is left open",
            write="a second function for a part of it, with a rule of its own",
        )
