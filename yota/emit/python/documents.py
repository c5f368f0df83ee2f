"""Documents that know where they may be broken, and their layout in lines of bounded width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Choice:
    """What stands in a group that fits, and in one that is broken; a line break if nothing else is said."""

    flat: str = ""
    broken: str = "\n"


@dataclass(frozen=True, slots=True)
class Group:
    """Breaks at all of its own places, or at none if it fits."""

    content: Document


@dataclass(frozen=True, slots=True)
class Indented:
    """Lines that begin inside are set in by four more columns."""

    content: Document


@dataclass(frozen=True, slots=True)
class Preferred:
    """``content``, broken inside if need be, if its first line fits; else ``other``."""

    content: Document
    other: Document


Document: TypeAlias = "str | Choice | Group | Indented | Preferred | tuple[Document, ...]"
_Pending: TypeAlias = "tuple[int, bool, Document]"

SPACE, COMMA = Choice(" "), Choice("", ",")
"""A space where a line may end, and a comma that stands only ahead of a line break."""


def joined(parts: Sequence[Document], separator: Document = (",", SPACE)) -> Document:
    """``parts`` with ``separator`` between them."""
    return tuple(each for part in parts for each in (separator, part))[1:]


def block(opening: str | Choice, content: Document, closing: str | Choice) -> Document:
    """``content`` in brackets, on lines of its own if it does not fit."""
    return Group((opening, Indented((Choice(), content)), Choice(), closing))


def lay_out(document: Document, indent: int, width: int) -> str:
    """Text of ``document``, whose first line begins at column ``indent``."""
    out, column = [" " * indent], indent
    pending: list[_Pending] = [(indent, True, document)]
    while pending:
        depth, broken, item = pending.pop()
        if isinstance(item, Choice):
            item = item.broken if broken else item.flat
        if isinstance(item, str):
            out.append("\n" + " " * depth if item == "\n" else item)
            column = depth if item == "\n" else column + len(item)
        elif isinstance(item, Preferred):
            forms = (depth, False, item.content), (depth, True, item.content)
            fitting = (form for form in forms if _fits(width - column, form, pending))
            pending.append(next(fitting, (depth, broken, item.other)))
        elif isinstance(item, Group):
            whole = not broken or _fits(width - column, (depth, False, item.content), pending)
            pending.append((depth, not whole, item.content))
        elif isinstance(item, Indented):
            pending.append((depth + 4, broken, item.content))
        else:
            pending.extend((depth, broken, part) for part in reversed(item))
    return "".join(out)


def _fits(room: int, item: _Pending, rest: Sequence[_Pending]) -> bool:
    """Whether everything up to the next line break that is taken fits into ``room`` columns."""
    items, later = [item], iter(reversed(rest))
    while room >= 0:
        found = items.pop() if items else next(later, None)
        if found is None:
            return True
        depth, broken, document = found
        if isinstance(document, Choice):
            document = document.broken if broken else document.flat
        if document == "\n":
            return True
        if isinstance(document, str):
            room -= len(document)
        elif isinstance(document, tuple):
            items.extend((depth, broken, part) for part in reversed(document))
        else:
            # What follows the measured part may still break wherever it can.
            items.append((depth, broken, document.content))
    return False
