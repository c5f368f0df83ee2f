"""How generated code says that a call left the tape it was made from."""

from __future__ import annotations

from typing import Any

__all__ = ["EarlierIndexError", "StaleTape"]


class EarlierIndexError(IndexError):
    """An earlier call was given an index array with places outside of an axis."""


class StaleTape(Exception):
    """Guard number ``index`` failed: its variable came out as ``value``."""

    def __init__(self, index: int, value: Any) -> None:
        super().__init__(index, value)
        self.index = index
        self.value = value
