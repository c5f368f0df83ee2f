"""Keeping the garbage collector out of compilation, which makes very many objects and hardly a cycle among them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]

_lock = threading.Lock()
_running = 0
_enabled = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Hold the collector off; without this the time to compile grows faster than the tape.

    The first one in switches it off, the last one out back on, if it was on.
    """
    global _running, _enabled  # noqa: PLW0603  (one collector for the process)
    with _lock:
        if not _running:
            _enabled = gc.isenabled()
            gc.disable()
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if not _running and _enabled:
                gc.enable()
