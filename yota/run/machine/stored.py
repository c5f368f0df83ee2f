"""Rendered texts, and marks of verified rules, in the private cache."""

from __future__ import annotations

import contextlib
from typing import Any

from yota.emit.render import render, template_text
from yota.errors import CodegenError
from yota.run.machine.store import Store, digest_of, folder


def rendered(template: str, **data: Any) -> str:
    """The result of `render`; the key of ``data`` is its representation."""
    try:
        kept = Store(folder() / "texts")
    except CodegenError:
        return render(template, **data)
    return kept.note(digest_of([template_text(template), repr(data)]), lambda: render(template, **data))


class Proofs:
    """Marks in a private folder; without such a folder, nothing is stored.

    A mark is named by its key, which is a digest of the rule file, and is empty.

    version: part of every key: another version of yota verifies again.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self._store: Store | None = None
        with contextlib.suppress(CodegenError):
            self._store = Store(folder() / "proofs")

    def knows(self, key: str) -> bool:
        """Whether ``key`` is stored, perhaps by another process."""
        return self._store is not None and self._store.noted(self._name(key)) is not None

    def add(self, key: str) -> None:
        """Store ``key``."""
        if self._store is not None:
            self._store.put(self._name(key), "")

    def _name(self, key: str) -> str:
        return digest_of(["proved", key, self.version])
