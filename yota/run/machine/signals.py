"""How generated code reports that a call does not match its tape, and that an index is out of bounds."""

from __future__ import annotations

import weakref
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
    """One flag.

    library: CuPy, which allocates pinned memory.
    function: the name of the function whose kernels set it.
    address: address that kernels receive.
    """

    def __init__(self, library: Any, function: str) -> None:
        self._function = function
        self._memory = library.cuda.alloc_pinned_memory(np.dtype(np.int32).itemsize)
        self._number = np.frombuffer(self._memory, np.int32, 1)
        self._number[0] = 0
        self.address = np.uintp(self._memory.ptr)
        _ALL.add(self)

    def check(self) -> None:
        """Raise the error if the flag is set.

        Raises IndexError if an index was out of bounds.
        """
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
