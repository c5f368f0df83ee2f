"""Positions in the user's source: a line, or the exact range of an expression."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's source."""

    filename: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    @property
    def text(self) -> str:
        """The stripped source line; empty if the source is not available."""
        return linecache.getline(self.filename, self.line).strip()


@dataclass(frozen=True, slots=True)
class Span(Location):
    """The range of an expression or a statement.

    column: first column in its first line, in characters, counted from 1.
    end_column: the column after its last character.
    """

    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """The expression, on one line."""
        lines = [linecache.getline(self.filename, line) for line in range(self.line, self.end_line + 1)]
        lines[-1] = lines[-1][: self.end_column - 1]
        lines[0] = lines[0][self.column - 1 :]
        return " ".join(" ".join(lines).split())


def where(location: Location | None) -> str:
    """A position with its source, as the beginning of a message; empty if unknown."""
    return f"{location}: `{location.text}`: " if location else ""
