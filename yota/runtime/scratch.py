"""Scratch arrays that generated functions keep between calls: bounded over all functions of the process."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

__all__ = ["MOST_BYTES", "bound"]

MOST_BYTES = 256 * 1024 * 1024
"""What functions that were made earlier may keep when another one is made."""
_lock = threading.Lock()
_pools: list[weakref.ref[deque[Any]]] = []


def bound(pool: deque[Any]) -> None:
    """Take up the pool of a new function, and empty the oldest ones past `MOST_BYTES`.

    A function whose pool was emptied makes its arrays anew at its next call.
    """
    with _lock:
        _pools[:] = [known for known in _pools if known() is not None]
        left = MOST_BYTES
        for known in reversed(_pools):
            other = known()
            if other is not None:
                left -= _size(other)
                if left < 0:
                    other.clear()
        _pools.append(weakref.ref(pool))


def _size(pool: deque[Any]) -> int:
    """Bytes of all arrays in a pool; some are views of the same memory."""
    owners = {id(owner): owner for work in pool.copy() for array in work for owner in [_owner(array)]}
    return sum(owner.nbytes for owner in owners.values())


def _owner(array: Any) -> Any:
    return array if array.base is None else array.base
