"""The user's functions of a tape, line by line."""

from __future__ import annotations

import ast
import linecache
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from yota.generation.subject import relative
from yota.ir.location import Location
from yota.ir.tape import Op
from yota.report.plan import Row, SourceBlock
from yota.report.text import pieces, plain


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
        found.append(SourceBlock(_title(place), tuple(_rows(place, first, last, inside))))
    return tuple(found)


def _title(place: Location) -> str:
    return f"{place.function} in {relative(Path(place.filename))}"


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
