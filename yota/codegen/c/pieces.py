"""Cuts long straight code into functions: compilers take quadratic time for the longest ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from yota.codegen.c.plan import Argument, Piece, Result

__all__ = ["cut", "mentions"]

_LONGEST = 1_500
"""Statements of a kernel that is left whole."""
_PIECE = 150
_DEFINITION = re.compile(r"const (\w+) (\w+) = ")
_WORD = re.compile(r"[A-Za-z_]\w*")


def cut(
    lines: Sequence[str], name: str, arguments: Sequence[Argument], results: Sequence[Result]
) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """Functions that ``lines`` are spread over, and the statements that call them in turn.

    What one function computes and a later one reads is kept in arrays, one for each type.
    """
    statements = _statements(lines)
    if len(statements) <= _LONGEST:
        return (), tuple(lines)
    parts = [statements[first : first + _PIECE] for first in range(0, len(statements), _PIECE)]
    home = {name: (number, kind) for number, part in enumerate(parts) for kind, name in _defined(part)}
    reads = [_reads(part, home, number) for number, part in enumerate(parts)]
    places: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for word in dict.fromkeys(word for each in reads for word in each):
        kind = home[word][1]
        places[word] = f"kept_{kind}[{sizes.setdefault(kind, 0)}]"
        sizes[kind] += 1
    own = [each for each in arguments if each.used]
    known = [*(each.name for each in own), *(each.name for each in results)]
    parameters = [f"const {each.type} {'*restrict ' if each.shape else ''}{each.name}" for each in own]
    parameters += [f"{each.type} *restrict {each.name}" for each in results]
    parameters += [f"{kind} *restrict kept_{kind}" for kind in sizes]
    pieces = []
    for number, part in enumerate(parts):
        body = [f"const {home[word][1]} {word} = {places[word]};" for word in reads[number]]
        body += [line for statement in part for line in statement]
        body += [f"{place} = {word};" for word, place in places.items() if home[word][0] == number]
        unused = [each for each in known if not mentions(body, each)]
        unused += [f"kept_{kind}" for kind in sizes if not mentions(body, f"kept_{kind}")]
        pieces.append(Piece(f"{name}_part{number}", tuple(parameters), (*(f"(void){each};" for each in unused), *body)))
    given = ", ".join([*known, *(f"kept_{kind}" for kind in sizes)])
    calls = [f"{kind} kept_{kind}[{size}];" for kind, size in sizes.items()]
    return tuple(pieces), (*calls, *(f"{piece.name}({given});" for piece in pieces))


def _defined(part: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Type and name of each value that a part computes."""
    for statement in part:
        found = next(filter(None, map(_DEFINITION.match, statement)), None)
        if found:
            yield found[1], found[2]


def _statements(lines: Iterable[str]) -> list[list[str]]:
    """Lines in groups that belong together: a comment with what follows it, a statement with its further lines."""
    found: list[list[str]] = []
    open_comment = False
    for line in lines:
        if found and (line.startswith("    ") or open_comment):
            found[-1].append(line)
        else:
            found.append([line])
        open_comment = line.startswith("/*")
    return found


def _reads(part: Iterable[Sequence[str]], home: dict[str, tuple[int, str]], number: int) -> list[str]:
    """Names of other parts that a part reads."""
    words = (
        word for statement in part for line in statement if not line.startswith("/*") for word in _WORD.findall(line)
    )
    return [word for word in dict.fromkeys(words) if word in home and home[word][0] < number]


def mentions(body: Iterable[str], name: str) -> bool:
    """Whether code has a name in it; comments do not count."""
    return any(re.search(rf"\b{name}\b", line) for line in body if not line.startswith("/*"))
