"""Which trace runs in this thread; nothing else in the process sees it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yota.tracing.trace import Trace


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[Trace | None] = [None]


innermost = _State()
"""The traces of this thread, the innermost last; None where nothing is recorded."""


def current() -> Trace | None:
    """The innermost trace of this thread, or None."""
    return innermost.stack[-1]


def is_tracing() -> bool:
    """Whether a trace runs in this thread, be it paused."""
    return any(each is not None for each in innermost.stack)


@contextmanager
def entered(trace: Trace | None) -> Iterator[None]:
    """Make ``trace`` the innermost one of this thread; None stands for no trace."""
    innermost.stack.append(trace)
    try:
        yield
    finally:
        # The last one: a solver that a trace runs enters that trace again.
        del innermost.stack[len(innermost.stack) - 1 - innermost.stack[::-1].index(trace)]


class paused:  # noqa: N801  (a context manager, without what a generator takes)
    """Run code of this thread as it runs where nothing is traced."""

    __slots__ = ()

    def __enter__(self) -> None:
        innermost.stack.append(None)

    def __exit__(self, *fault: object) -> None:
        innermost.stack.pop()
