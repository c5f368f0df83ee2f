"""Rule files: read, held against all laws, and taken in; a text that was proved before is not proved again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from yota.rules.excerpts import Excerpt, Excerpts, excerpts
from yota.rules.model import Rule
from yota.rules.source import Source, read_file
from yota.rules.syntax import parse

__all__ = ["Proofs", "Sources", "load", "shipped"]

Sources = Sequence[tuple[Source, tuple[Rule, ...]]]
"""Texts with the rules that they hold."""


class Proofs(Protocol):
    """What remembers which texts were proved beside which rules."""

    def knows(self, key: str) -> bool:
        """Whether ``key`` was added before, perhaps by another process."""

    def add(self, key: str) -> None:
        """Remember ``key``."""


class Taking(Protocol):
    """What loading asks of a registry."""

    def digest(self) -> str:
        """A digest of all rules."""

    def take(self, sources: Sources) -> tuple[Rule, ...]:
        """Prove rules and take them in."""

    def hold(self, parts: Sequence[Excerpt], *, user: bool) -> None:
        """Take in rules that were proved, to be parsed when they are asked for."""


def shipped(folder: Path) -> list[Excerpt]:
    """The rules that come with yota; its tests hold them against all laws."""
    paths = sorted(folder.rglob("*.rules"))
    return [part for path in paths for part in excerpts(read_file(path), path.name)]


def load(registry: Taking, path: str | os.PathLike[str], proofs: Proofs | None) -> Sequence[Rule]:
    """Take in a file or a folder of files; see `yota.rules.registry.Registry.load`."""
    place = Path(path)
    paths = sorted(place.rglob("*.rules")) if place.is_dir() else [place]
    texts = [(read_file(each), str(each)) for each in paths]
    key = _key(registry, texts)
    if proofs is not None and proofs.knows(key):
        parts = [part for each in texts for part in excerpts(*each)]
        registry.hold(parts, user=True)
        return Excerpts(parts)
    sources = [parse(*each, header=True) for each in texts]
    rules = registry.take(sources)
    if proofs is not None and all(map(_plain, texts, sources)):
        proofs.add(key)
    return rules


def _key(registry: Taking, texts: Sequence[tuple[str, str]]) -> str:
    """Content of the texts, and of the rules beside which they are proved."""
    import hashlib

    parts = [registry.digest(), *(hashlib.sha256(text.encode()).hexdigest() for text, _ in texts)]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _plain(text: tuple[str, str], source: tuple[Source, tuple[Rule, ...]]) -> bool:
    """Whether the rules that are found by their first lines are those that the whole text holds."""
    found = [(part.name, part.target, part.text, part.line + 1) for part in excerpts(*text)]
    return found == [(rule.name, rule.target, rule.source, rule.line) for rule in source[1]]
