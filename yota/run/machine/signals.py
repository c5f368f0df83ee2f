"""How generated code reports calls that do not match its tape and indices out of bounds; and warnings."""

from __future__ import annotations

import sys
import warnings
import weakref
from types import FrameType
from typing import Any

import numpy as np


class EarlierIndexError(IndexError):
    """An earlier call had an index out of bounds."""


class StaleTape(Exception):
    """Guard number ``index`` failed: its variable has the value ``value``."""

    def __init__(self, index: int, value: Any) -> None:
        super().__init__(index, value)
        self.index = index
        self.value = value


_ALL: weakref.WeakSet[Fault] = weakref.WeakSet()


class Fault:
    """One flag."""

    def __init__(self, library: Any, function: str) -> None:
        self._function = function
        self._memory = library.cuda.alloc_pinned_memory(np.dtype(np.int32).itemsize)
        self._number = np.frombuffer(self._memory, np.int32, 1)
        self._number[0] = 0
        self.address = np.uintp(self._memory.ptr)
        _ALL.add(self)

    def check(self) -> None:
        """Raise the error if the flag is set."""
        if self._number[0]:
            self._number[0] = 0
            raise EarlierIndexError(
                f"an earlier call of {self._function} had an index out of bounds for its axis; its results are NaN "
                "where the index was used. Check the indices, for example with np.max(indices) before the call"
            )


def raise_faults() -> None:
    """Raise the error of any set flag."""
    for each in list(_ALL):
        each.check()


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
