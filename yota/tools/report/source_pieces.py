"""Input of the report template, and the user's functions of a tape, line by line, in pieces of one colour each."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from yota.ir.location import Location
from yota.ir.tape import Op
from yota.package.subject import relative


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


_KINDS = (("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "n"), ("Name.Function", "f"))


def plain(text: str) -> tuple[Piece, ...]:
    """``text`` without colours."""
    return (Piece("", text),)


def pieces(text: str, language: str = "python") -> list[tuple[Piece, ...]]:
    r"""The lines of ``text``, each a tuple of pieces; ``language`` is that of a `Part`.

    Without Pygments, which ``yota-ad[cli]`` installs, there are no colours.

    >>> pieces("x = 1  # one\n")
    [(Piece(kind='', text='x = '), Piece(kind='n', text='1'), Piece(kind='', text='  '), Piece(kind='c', text='# one'))]
    """
    try:
        from pygments.lexers import CLexer, CudaLexer, PythonLexer
    except ModuleNotFoundError:
        return [plain(line) if line else () for line in text.removesuffix("\n").split("\n")]
    lexer = {"python": PythonLexer, "c": CLexer, "cuda": CudaLexer}[language]
    lines: list[list[Piece]] = [[]]
    for token, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        name = str(token).removeprefix("Token.")
        kind = next((kind for prefix, kind in _KINDS if name.startswith(prefix)), "")
        for position, part in enumerate(value.split("\n")):
            if position:
                lines.append([])
            if part and lines[-1] and lines[-1][-1].kind == kind:
                lines[-1][-1] = Piece(kind, lines[-1][-1].text + part)
            elif part:
                lines[-1].append(Piece(kind, part))
    if not lines[-1]:
        lines.pop()
    return [tuple(line) for line in lines]


def source_blocks(ops: Iterable[Op]) -> tuple[SourceBlock, ...]:
    """A block for each function in which ``ops`` were recorded, in order of appearance."""
    lines: dict[Location, list[int]] = defaultdict(list)
    for op in ops:
        if op.location is not None and op.location.filename:
            place = Location(op.location.filename, op.location.line, op.location.function)
            lines[place].append(op.result)
    found = []
    done: set[Location] = set()
    for place in lines:
        if place in done:
            continue
        first, last = _extent(place)
        inside = {
            other.line: (other, results)
            for other, results in lines.items()
            if other.filename == place.filename and first <= other.line <= last
        }
        done.update(other for other, _ in inside.values())
        title = f"{place.function} in {relative(Path(place.filename))}"
        found.append(SourceBlock(title, tuple(_rows(place, first, last, inside))))
    return tuple(found)


def _extent(place: Location) -> tuple[int, int]:
    """First and last line of the innermost function around ``place``; only this line if unknown."""
    alone = (place.line, place.line)
    try:
        tree = ast.parse("".join(linecache.getlines(place.filename)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return alone
    around = [
        (min([part.lineno, *(each.lineno for each in part.decorator_list)]), part.end_lineno or part.lineno)
        for part in ast.walk(tree)
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    return max((each for each in around if each[0] <= place.line <= each[1]), default=alone)


def _rows(place: Location, first: int, last: int, inside: dict[int, tuple[Location, list[int]]]) -> Iterator[Row]:
    texts = [linecache.getline(place.filename, number).rstrip("\n") for number in range(first, last + 1)]
    blank = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
    coloured = pieces("\n".join(text[blank:] for text in texts) + "\n")
    for number in range(first, last + 1):
        offset = number - first
        content = coloured[offset] if offset < len(coloured) else ()
        if not any(texts):
            content = plain("the source cannot be had")
        _, results = inside.get(number, (place, []))
        yield Row(str(number), content, " ".join(map(str, results)))
