"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition(".")[0]
_said: set[str] = set()


def warn(text: str) -> None:
    """Warn at the innermost line outside this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and f"{frame.f_globals.get('__name__', '')}.".startswith(f"{_PACKAGE}."):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)


def warn_once(text: str) -> None:
    """Warn once in a process; a warning that is turned into an error is raised each time."""
    if text not in _said:
        warn(text)
        _said.add(text)
