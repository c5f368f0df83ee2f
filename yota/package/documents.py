"""Documents that know where they may be broken, and their layout in lines of bounded width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Line:
    """A place for a line break; ``flat`` stands there otherwise."""

    flat: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Breaks at all of its own places, or at none if it fits."""

    content: Document


@dataclass(frozen=True, slots=True)
class Indented:
    """Lines that begin inside are set in by four more columns."""

    content: Document


@dataclass(frozen=True, slots=True)
class Broken:
    """Text that stands only if the group around it is broken, such as a trailing comma."""

    text: str


@dataclass(frozen=True, slots=True)
class Preferred:
    """``first``, broken inside if need be, if its first line fits; else ``other``."""

    first: Document
    other: Document


Document: TypeAlias = "str | Line | Group | Indented | Broken | Preferred | tuple[Document, ...]"

_Pending: TypeAlias = "tuple[int, bool, Document]"


def joined(parts: Sequence[Document], separator: Document) -> Document:
    """``parts`` with ``separator`` between them."""
    found: list[Document] = []
    for part in parts:
        found += [separator, part] if found else [part]
    return tuple(found)


def block(opening: str, content: Document, closing: str) -> Document:
    """``content`` in brackets, on lines of its own if it does not fit."""
    return Group((opening, Indented((Line(), content)), Line(), closing))


def lay_out(document: Document, indent: int, width: int) -> str:
    """Text of ``document``, whose first line begins at column ``indent``."""
    out: list[str] = [" " * indent]
    column = indent
    pending: list[_Pending] = [(indent, True, document)]
    while pending:
        depth, broken, item = pending.pop()
        if isinstance(item, str):
            out.append(item)
            column += len(item)
        elif isinstance(item, Broken):
            out.append(item.text if broken else "")
            column += len(item.text) if broken else 0
        elif isinstance(item, Line):
            if broken:
                out.append("\n" + " " * depth)
                column = depth
            else:
                out.append(item.flat)
                column += len(item.flat)
        elif isinstance(item, Preferred):
            flat, begun = (depth, False, item.first), (depth, True, item.first)
            forms = (form for form in (flat, begun) if _fits(width - column, [form], pending))
            pending.append(next(forms, (depth, broken, item.other)))
        elif isinstance(item, Group):
            whole = not broken or _fits(width - column, [(depth, False, item.content)], pending)
            pending.append((depth, not whole, item.content))
        elif isinstance(item, Indented):
            pending.append((depth + 4, broken, item.content))
        else:
            pending.extend((depth, broken, part) for part in reversed(item))
    return "".join(out)


def _fits(room: int, items: list[_Pending], rest: Iterable[_Pending]) -> bool:
    """Whether everything up to the next line break that is taken fits into ``room`` columns."""
    later = list(rest)
    while room >= 0:
        if not items:
            if not later:
                return True
            items.append(later.pop())
        depth, broken, item = items.pop()
        if isinstance(item, str):
            room -= len(item)
        elif isinstance(item, Broken):
            room -= len(item.text) if broken else 0
        elif isinstance(item, Line):
            if broken:
                return True
            room -= len(item.flat)
        elif isinstance(item, (Group, Preferred)):
            # What follows the measured part may still break wherever it can.
            items.append((depth, broken, item.content if isinstance(item, Group) else item.first))
        elif isinstance(item, Indented):
            items.append((depth, broken, item.content))
        else:
            items.extend((depth, broken, part) for part in reversed(item))
    return False
