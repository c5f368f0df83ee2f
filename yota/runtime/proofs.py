"""Stored marks of verified rule texts, in the private cache."""

from __future__ import annotations

import contextlib
import hashlib
import json

from yota.errors import CodegenError
from yota.runtime.store import Store, folder

__all__ = ["Proofs"]


class Proofs:
    """Marks in a private folder; without such a folder, nothing is stored.

    A mark contains only its own key, which is a digest of the rule file.

    Parameters
    ----------
    version
        Part of every key: another version of yota verifies again.
    """

    def __init__(self, version: str) -> None:
        self.version = version
        self._store: Store | None = None
        with contextlib.suppress(CodegenError):
            self._store = Store(folder() / "proofs")

    def knows(self, key: str) -> bool:
        """Whether ``key`` is stored, perhaps by another process."""
        return self._store is not None and self._store.noted(self._name(key)) == self._mark(key)

    def add(self, key: str) -> None:
        """Store ``key``."""
        if self._store is not None:
            with contextlib.suppress(OSError):
                self._store.note(self._name(key), lambda: self._mark(key))

    def _name(self, key: str) -> str:
        return hashlib.sha256(self._mark(key).encode()).hexdigest()

    def _mark(self, key: str) -> str:
        return json.dumps({"proved": key, "version": self.version})
