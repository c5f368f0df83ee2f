"""Functions that run from their source are marked as such."""

from __future__ import annotations

from typing import Any

__all__ = ["is_marked", "marked"]

_MARK = "yota_interpreted"


def marked(function: Any) -> Any:
    """``function``, marked as one that runs from its source."""
    setattr(function, _MARK, True)
    return function


def is_marked(function: Any) -> bool:
    """Whether a function runs from its source."""
    return _MARK in getattr(function, "__dict__", ()) or _MARK in vars(type(function))
