"""Exceptions by which generated code reports that a call does not match its tape."""

from __future__ import annotations

from typing import Any


class EarlierIndexError(IndexError):
    """An earlier call had an index out of bounds."""


class StaleTape(Exception):
    """Guard number ``index`` failed: its variable has the value ``value``."""

    def __init__(self, index: int, value: Any) -> None:
        super().__init__(index, value)
        self.index = index
        self.value = value
