"""Which trace runs in this thread; nothing else in the process sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["current", "entered", "paused"]


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace | None] = []


_state = _State()


def current() -> Trace | None:
    """The innermost trace of this thread, or None."""
    stack = _state.stack
    return stack[-1] if stack else None


@contextmanager
def entered(trace: Trace | None) -> Iterator[None]:
    """Make ``trace`` the innermost one of this thread; None stands for no trace."""
    _state.stack.append(trace)
    try:
        yield
    finally:
        _state.stack.remove(trace)


@contextmanager
def paused() -> Iterator[None]:
    """Run code of this thread as it runs where nothing is traced."""
    _state.stack.append(None)
    try:
        yield
    finally:
        _state.stack.pop()
