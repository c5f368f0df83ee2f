"""Numbers in main memory that kernels set where an index array has places outside of an axis.

Nothing waits for a kernel to look at one: what it tells is raised by the next call, and by whatever waits anyway.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from yota.runtime.signals import EarlierIndexError

__all__ = ["Fault", "raise_faults"]

_ALL: weakref.WeakSet[Fault] = weakref.WeakSet()


class Fault:
    """Such a number.

    Parameters
    ----------
    library
        CuPy, which has memory that both sides see.
    function
        The name of the function whose kernels set it.

    Attributes
    ----------
    address
        What kernels are given.
    """

    def __init__(self, library: Any, function: str) -> None:
        self._function = function
        self._memory = library.cuda.alloc_pinned_memory(np.dtype(np.int32).itemsize)
        self._number = np.frombuffer(self._memory, np.int32, 1)
        self._number[0] = 0
        self.address = np.uintp(self._memory.ptr)
        _ALL.add(self)

    def check(self) -> None:
        """Raise what kernels have told.

        Raises
        ------
        IndexError
            If an index array had a place outside of its axis.
        """
        if self._number[0]:
            self._number[0] = 0
            raise EarlierIndexError(
                f"an array of indices that {self._function} was given before has one out of bounds for its axis; the "
                "results of that call are NaN where it was used. Check the indices, for example with "
                "np.max(indices) before the call"
            )


def raise_faults() -> None:
    """Raise what the kernels of any function have told."""
    for each in list(_ALL):
        each.check()
