"""What the page of a report is made of: texts and numbers, all decisions taken, ready for a template to loop over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Box", "Card", "Diagram", "Edge", "Pair", "Part", "Piece", "Report", "Row", "SourceBlock", "Total", "Widths"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of one colour; ``kind`` is a class of the style sheet, or empty."""

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

    Parameters
    ----------
    label
        What stands in its margin: the number of a line.
    pieces
        Its text.
    ops
        Variables of the tape that it is about, as numbers between spaces.
    reads
        Variables that its op reads, likewise.
    note
        What to say about it when it is pointed at.
    tag
        A word at its end, such as the fusion group.
    """

    label: str
    pieces: tuple[Piece, ...]
    ops: str = ""
    reads: str = ""
    note: str = ""
    tag: str = ""


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """A function of the user's, or what is known of one without source."""

    title: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """An op of the function, and the ops that its derivative needs."""

    kind: str
    primal: Row
    adjoints: tuple[Row, ...] = ()

    @property
    def height(self) -> int:
        """Lines that it takes."""
        return 1 + len(self.adjoints)


@dataclass(frozen=True, slots=True)
class Card:
    """A rule that was applied."""

    title: str
    where: str
    uses: str
    ops: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Total:
    """A figure about the whole."""

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
    """A value's way from the op that makes it to one that reads it."""

    kind: str
    path: str
    ops: str


@dataclass(frozen=True, slots=True)
class Diagram:
    """Boxes and edges, and how much room they take."""

    width: int
    height: int
    box_width: int
    box_height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Widths:
    """Characters of the longest line of each column that scrolls sideways."""

    source: int
    tape: int
    code: int


@dataclass(frozen=True, slots=True)
class Report:
    """A page."""

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
    widest: Widths
    diagram: Diagram
