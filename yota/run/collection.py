"""Disables the garbage collector during imports and compilation, which create many objects and few cycles."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_running = 0
_enabled = False


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector; otherwise compile time grows faster than the tape.

    The first thread to enter disables it; the last to leave enables it again if it was enabled.
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
