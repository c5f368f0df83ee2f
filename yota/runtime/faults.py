"""Flags in main memory that kernels set when an index is out of bounds.

Nothing waits for a kernel to check a flag: the next call, or the next operation that waits, raises the error.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from yota.runtime.signals import EarlierIndexError

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
