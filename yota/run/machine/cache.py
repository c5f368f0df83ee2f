"""A bounded table of compiled functions, and the lock for compilation."""

from __future__ import annotations

import sys
import threading
from typing import Any

from yota.errors import DifferentiationError

_PATIENCE, _LOOKS = 0.5, 10
"""Seconds between two inspections of a lock's owner, and the number of inspections that find it waiting."""
_WAITING = frozenset({"threading", "concurrent.futures._base", "queue", "multiprocessing.pool"})


class Lock:
    """A reentrant lock; waiting for an owner that waits for another thread is an error."""

    def __init__(self) -> None:
        self._lock, self._owner = threading.RLock(), 0

    def __enter__(self) -> None:
        looks = 0
        while not self._lock.acquire(timeout=_PATIENCE):
            # The place where a thread waits for another one; empty if it does not wait.
            frame = sys._current_frames().get(self._owner)
            waits = frame is not None and frame.f_globals.get("__name__") in _WAITING
            while frame is not None and frame.f_globals.get("__name__") in _WAITING:
                frame = frame.f_back
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}" if waits and frame is not None else ""
            looks = looks + 1 if place else 0
            if looks == _LOOKS:
                raise DifferentiationError(
                    f"possible deadlock: the thread that compiles this derivative waits for another thread in {place}. "
                    "While a function is compiled, threads that it waits for cannot call its derivative with new "
                    "argument types. Call the derivative with such arguments before"
                )
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self.release()

    def take(self) -> bool:
        """Acquire the lock if no other thread has it; `release` releases it."""
        taken = self._lock.acquire(blocking=False)
        self._owner = threading.get_ident() if taken else self._owner
        return taken

    def release(self) -> None:
        """Release the lock."""
        self._lock.release()


class Table(dict[Any, Any]):
    """A dict that drops its oldest entries above ``most``; reads need no lock."""

    def __init__(self, most: int = 256) -> None:
        super().__init__()
        self.most = most
        self.lock = Lock()

    def insert(self, key: Any, value: Any) -> None:
        """Add an entry, and drop the oldest ones above the bound."""
        with self.lock:
            self[key] = value
            while len(self) > self.most:
                del self[next(iter(self))]
