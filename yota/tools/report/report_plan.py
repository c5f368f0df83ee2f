"""Input of the report template: texts and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one colour; ``kind`` is a CSS class, or empty."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """Generated source of one language: ``"python"``, ``"c"`` or ``"cuda"``."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a column.

    label: text in the margin: the line number.
    ops: variables of the tape that the row computes, as numbers separated by spaces.
    reads: variables that its op reads, in the same form.
    note: text shown on hovering.
    tag: a word at its end, such as the fusion group.
    """

    label: str
    pieces: tuple[Piece, ...]
    ops: str = ""
    reads: str = ""
    note: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A user's function; only its name and place if the source is not available."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """An op of the function, and the ops of its derivative."""

    kind: str
    primal: Row
    adjoints: tuple[Row, ...] = ()

    @property
    def height(self) -> int:
        """Number of lines."""
        return 1 + len(self.adjoints)


@dataclass(frozen=True, slots=True)
class Card:
    """An applied rule."""

    title: str
    where: str
    uses: str
    ops: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Total:
    """A figure about the tape and its code."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """An op in the diagram."""

    kind: str
    x: int
    y: int
    text: str
    note: str
    ops: str


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from the op that computes a value to one that reads it."""

    kind: str
    path: str
    ops: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and edges, and the size of the drawing."""

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All data of a page.

    widest: longest line, in characters, of each scrollable column.
    """

    title: str
    summary: str
    version: str
    totals: tuple[Total, ...]
    sources: tuple[SourceBlock, ...]
    tape: tuple[Pair, ...]
    rules: tuple[Card, ...]
    code: tuple[Row, ...]
    language: str
    formulas: Sequence[str]
    widest: Mapping[str, int]
    diagram: Diagram
