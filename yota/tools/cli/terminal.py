"""Output: results to standard output, remarks to standard error, colours on terminals only."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from yota.rules.proof.findings import Finding

_Step = TypeVar("_Step")

_PIPED = 160
"""Columns without a terminal."""


def _console(stream: Any) -> Console:
    terminal = stream.isatty()
    return Console(file=stream, width=None if terminal else _PIPED, highlight=False, soft_wrap=not terminal)


def text(content: str) -> None:
    """Print plain text."""
    sys.stdout.write(content if content.endswith("\n") else f"{content}\n")


def code(content: str, language: str = "python") -> None:
    """Print code, coloured on a terminal."""
    if sys.stdout.isatty():
        # The terminal's own colours are readable on light and dark backgrounds.
        syntax = Syntax(content, language, theme="ansi_light", background_color="default")
        # As text, because rich would cut lines that are wider than the terminal.
        _console(sys.stdout).print(syntax.highlight(content), soft_wrap=True, end="")
    else:
        text(content)


def output(data: Any) -> None:
    """Print data as JSON."""
    text(json.dumps(data, indent=2))


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print a table; a cell that begins with ``!`` is a fault."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell[1:], style="bold red") if cell.startswith("!") else Text(cell) for cell in row))
    _console(sys.stdout).print(made)


def status(finding: Finding) -> str:
    """The table cell of a law: whether a rule satisfies it."""
    return "!wrong" if finding.status == "wrong" else finding.status


def remark(content: str) -> None:
    """Print a remark to standard error."""
    sys.stderr.write(f"{_printable(content)}\n")


def failure(content: str) -> None:
    """Print an error to standard error."""
    first, _, rest = _printable(content).partition("\n")
    console = _console(sys.stderr)
    console.print(Text.assemble(("error: ", "bold red"), first))
    for line in rest.split("\n") if rest else ():
        console.print(Text(line, style="bold red" if line.strip() == "^" else ""))


def steps(parts: Sequence[_Step], what: str) -> Iterator[_Step]:
    """Iterate over ``parts``, with a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from parts
        return
    from rich.progress import track

    yield from track(parts, description=what, console=_console(sys.stderr), transient=True)


class _Telling(logging.Handler):
    """Log handler that prints messages."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self.tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        self.tell(record.getMessage())


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that work is in progress, with messages of a long search."""
    if not sys.stderr.isatty():
        yield
        return
    log = logging.getLogger("yota.search")
    before = log.level
    with _console(sys.stderr).status(f"{what} ...") as shown:
        telling = _Telling(lambda found: shown.update(f"{what} ... {_printable(found)}"))
        log.addHandler(telling)
        log.setLevel(logging.INFO)
        try:
            yield
        finally:
            log.removeHandler(telling)
            log.setLevel(before)


def _printable(content: str) -> str:
    """``content`` without terminal control characters, which names and files may contain."""
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in content)
