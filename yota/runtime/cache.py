"""A bounded table of compiled functions."""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["Table"]


class Table(dict[Any, Any]):
    """A dict that forgets its oldest entries past ``most``; reading it needs no lock."""

    def __init__(self, most: int = 256) -> None:
        super().__init__()
        self.most = most
        self.lock = threading.RLock()

    def insert(self, key: Any, value: Any) -> None:
        """Add an entry, and drop the oldest ones past the bound."""
        with self.lock:
            self[key] = value
            while len(self) > self.most:
                del self[next(iter(self))]
