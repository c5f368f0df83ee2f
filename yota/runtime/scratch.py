"""Scratch arrays that generated functions keep between calls, bounded for the whole process."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from typing import Any

__all__ = ["MOST_BYTES", "bound"]

MOST_BYTES = 256 * 1024 * 1024
"""Bytes that earlier functions may keep when another one is created."""
_lock = threading.Lock()
_pools: list[weakref.ref[deque[Any]]] = []


def bound(pool: deque[Any]) -> None:
    """Register the pool of a new function, and empty the oldest pools above `MOST_BYTES`.

    A function with an emptied pool allocates its arrays again at its next call.
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
    """Total size of the arrays in a pool; views share memory."""
    owners = {id(owner): owner for work in pool.copy() for array in work for owner in [_owner(array)]}
    return sum(owner.nbytes for owner in owners.values())


def _owner(array: Any) -> Any:
    return array if array.base is None else array.base
