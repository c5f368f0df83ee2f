"""Rule files: read, held against all laws, and taken in; a text that was proved before is not proved again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, overload

from yota.errors import RuleError

if TYPE_CHECKING:
    from yota.rules.language.model import Rule
    from yota.rules.language.rule_text import Source
    from yota.rules.registry import Registry

# Compiled at the first use: code that is read from the private cache needs none of them.
_HEAD = r'(?m)^@(?:elementwise|implicit|tensor|linear|nodiff)(?:\("([\w.]+)"[^)\n]*\))?[^\n]*\ndef (\w+)\('
_REST = r"(?:\n+(?:#[^\n]*)?)*\Z"
Sources: TypeAlias = "Sequence[tuple[Source, tuple[Rule, ...]]]"
"""Texts with the rules that they hold."""


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
            from yota.rules.language.syntax import parse

            (self._rule,) = parse(self.text, self.file, first=self.line)[1]
        return self._rule


class Excerpts(Sequence["Rule"]):
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

    >>> [found.name for found in excerpts('@nodiff("m.f")\ndef f(x: Real) -> y: ...\n', "my.rules")]
    ['f']
    """
    heads = list(re.finditer(_HEAD, text))
    ends = [*(head.start() for head in heads[1:]), len(text)][: len(heads)]
    found = []
    line, before = 1, 0
    for head, end in zip(heads, ends, strict=True):
        line += text.count("\n", before, head.start())
        before = head.start()
        found.append(Excerpt(head[2], head[1], re.sub(_REST, "", text[head.start() : end]), file, line))
    return tuple(found)


def read_file(path: Path) -> str:
    """The text of a rule file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as fault:
        raise RuleError(
            f"{path}:1:1: the file is not UTF-8 text\nfound: byte {fault.start}: {fault.reason}\nwrite: a text file"
        ) from None


class Proofs(Protocol):
    """What remembers which texts were proved beside which rules."""

    def knows(self, key: str) -> bool:
        """Whether ``key`` was added before, perhaps by another process."""

    def add(self, key: str) -> None:
        """Remember ``key``."""


def shipped(folder: Path) -> list[tuple[str, str]]:
    """Texts and names of the files that come with yota; its tests hold their rules against all laws."""
    return [(read_file(path), path.name) for path in sorted(folder.rglob("*.rules"))]


def load(registry: Registry, path: str | os.PathLike[str], proofs: Proofs | None) -> Sequence[Rule]:
    """Take in a file or a folder of files; see `yota.rules.registry.Registry.load`."""
    place = Path(path)
    paths = sorted(place.rglob("*.rules")) if place.is_dir() else [place]
    texts = [(read_file(each), str(each)) for each in paths]
    key = _key(registry, texts)
    if proofs is not None and proofs.knows(key):
        parts = [part for each in texts for part in excerpts(*each)]
        registry.hold(parts, user=True)
        return Excerpts(parts)
    from yota.rules.language.syntax import parse

    sources = [parse(*each, header=True) for each in texts]
    rules = registry.take(sources)
    if proofs is not None and all(map(_plain, texts, sources)):
        proofs.add(key)
    return rules


def _key(registry: Registry, texts: Sequence[tuple[str, str]]) -> str:
    """Content of the texts, and of the rules beside which they are proved."""
    import hashlib

    parts = [registry.digest(), *(hashlib.sha256(text.encode()).hexdigest() for text, _ in texts)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _plain(text: tuple[str, str], source: tuple[Source, tuple[Rule, ...]]) -> bool:
    """Whether the rules that are found by their first lines are those that the whole text holds."""
    found = [(part.name, part.target, part.text, part.line + 1) for part in excerpts(*text)]
    return found == [(rule.name, rule.target, rule.source, rule.line) for rule in source[1]]
