"""Python identifiers for generated code: readable, ASCII, never colliding, whatever text they come from."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable

_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))
_LONGEST = 32


def identifier(text: str) -> str:
    """``text`` as an ASCII identifier that is no keyword and no builtin.

    >>> identifier("W"), identifier("layers.0.b"), identifier("lambda"), identifier("café")
    ('W', 'layers_0_b', 'lambda_', 'cafe')
    """
    spelled = "".join(_ascii(character) for character in text[: 4 * _LONGEST])
    name = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z_]", "_", spelled))[:_LONGEST].strip("_")
    if not name:
        return "value"
    if name[0].isdigit():
        name = f"_{name}"
    return f"{name}_" if name in _RESERVED else name


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    # Greek letters by their names; accents dropped; anything else becomes an underscore.
    found = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if found:
        return found[2].lower() if found[1] == "SMALL" else found[2].capitalize()
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "_"


class Names:
    """Hands out names, each once."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A name like ``hint`` that was not given before."""
        name = identifier(hint)
        if name in self._taken:
            return self._counted(f"{name}_", 1)
        self._taken.add(name)
        return name

    def among(self, words: Iterable[str], count: int, avoided: Collection[str] = ()) -> list[str]:
        """The first ``count`` of ``words`` that are free and not ``avoided``; more if there are not so many.

        >>> Names(["j"]).among("ijk", 3, ["i"])
        ['k', 'i_1', 'j_1']
        """
        words = list(words)
        free = [word for word in words if word not in self._taken and word not in avoided][:count]
        self._taken.update(free)
        return [*free, *(self._counted(f"{word}_", 1) for word in words[: count - len(free)])]

    def derived(self, name: str, ending: str) -> str:
        """The name of what belongs to ``name``, which was given here: always spelled the same way, however long."""
        found = f"{name}_{ending}"
        self._taken.add(found)
        return found

    def numbered(self, prefix: str) -> str:
        """The next of ``prefix0``, ``prefix1``, ..."""
        return self._counted(prefix, 0)

    def _counted(self, stem: str, start: int) -> str:
        number = self._next.get(stem, start)
        while f"{stem}{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"
