"""Rules of a text that is known to obey all laws: found by their first lines, parsed when they are first asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

from yota.rules.model import Rule
from yota.rules.syntax import parse

__all__ = ["Excerpt", "Excerpts", "excerpts"]

_HEAD = re.compile(r'^@(?:elementwise|tensor|linear|nodiff)(?:\("([\w.]+)"\))?[^\n]*\ndef (\w+)\(', re.MULTILINE)
_REST = re.compile(r"(?:\n+(?:#[^\n]*)?)*\Z")


class Excerpt:
    """The text of one rule, with its name, its target, and the line of its file on which it begins."""

    __slots__ = ("_rule", "file", "line", "name", "target", "text")

    def __init__(self, name: str, target: str | None, text: str, file: str, line: int) -> None:
        self.name, self.target, self.text, self.file, self.line = name, target, text, file, line
        self._rule: Rule | None = None

    @property
    def rule(self) -> Rule:
        """The rule itself; parsed once."""
        if self._rule is None:
            (self._rule,) = parse(self.text, self.file, first=self.line)[1]
        return self._rule


class Excerpts(Sequence[Rule]):
    """Rules in their order, parsed as they are looked at."""

    def __init__(self, parts: Sequence[Excerpt]) -> None:
        self.parts = tuple(parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> Iterator[Rule]:
        return (part.rule for part in self.parts)

    @overload
    def __getitem__(self, index: int) -> Rule: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Rule, ...]: ...

    def __getitem__(self, index: int | slice) -> Rule | tuple[Rule, ...]:
        found = self.parts[index]
        return found.rule if isinstance(found, Excerpt) else tuple(part.rule for part in found)

    def __repr__(self) -> str:
        return f"<rules of {', '.join(part.name for part in self.parts)}>"


def excerpts(text: str, file: str) -> tuple[Excerpt, ...]:
    r"""The rules of ``text``, unparsed.

    Examples
    --------
    >>> [found.name for found in excerpts('@nodiff("m.f")\ndef f(x: Real) -> y: ...\n', "my.rules")]
    ['f']
    """
    heads = list(_HEAD.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    found = []
    line, before = 1, 0
    for head, end in zip(heads, ends, strict=True):
        line += text.count("\n", before, head.start())
        before = head.start()
        found.append(Excerpt(head[2], head[1], _REST.sub("", text[head.start() : end]), file, line))
    return tuple(found)
