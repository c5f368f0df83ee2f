"""What happens while a compilation runs: the terminal shows its stage, and the garbage collector is disabled."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from yota.settings import settings

_AFTER = 2.0
"""Seconds before the line appears."""
_TICK = 0.25
_CLEAR = "\r\x1b[2K"
"""Clears the line of the cursor."""
_DEBUGGERS = ("bdb", "cmd", "pdb")
"""Modules whose presence means that a user types on the terminal."""


class _Line:
    """The function being compiled, and its stage."""

    def __init__(self, what: str) -> None:
        self.what, self.stage, self.done = what, "tracing", threading.Event()

    def show(self) -> None:
        start = time.monotonic()
        if self.done.wait(_AFTER):
            return
        # Libraries for terminals draw random numbers when they are imported, which tracing would take for the user's.
        stream = sys.stderr
        while not self.done.wait(_TICK):
            if not _is_debugged():
                stream.write(f"{_CLEAR}{self.what}: {self.stage}, {time.monotonic() - start:.0f} s ")
                stream.flush()
        stream.write(_CLEAR)
        stream.flush()


_lines: list[_Line] = []
"""The line of the main thread."""


def stage(name: str) -> None:
    """Set the current stage."""
    if _lines and _is_main():
        _lines[0].stage = name


@contextlib.contextmanager
def shown(what: str) -> Iterator[None]:
    """Show the line while the context runs for long; remove it at the end."""
    if _lines or not _is_main() or not settings.progress or not _is_terminal():
        yield
        return
    line = _Line(what)
    thread = threading.Thread(target=line.show, name="yota-progress", daemon=True)
    _lines.append(line)
    thread.start()
    try:
        yield
    finally:
        _lines.clear()
        line.done.set()
        thread.join()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_terminal() -> bool:
    with contextlib.suppress(AttributeError, ValueError):
        # The stream is missing without a console, and may be closed.
        return sys.stderr.isatty()
    return False


def _is_debugged() -> bool:
    """Whether a debugger uses the terminal, as with a breakpoint in a traced function."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        if frame.f_globals.get("__name__") in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


class _Collector:
    """The garbage collector of the process, and the number of contexts that disable it."""

    def __init__(self) -> None:
        self.lock, self.contexts, self.enabled = threading.Lock(), 0, False

    def enter(self) -> None:
        with self.lock:
            self.contexts += 1
            if self.contexts == 1:
                self.enabled = gc.isenabled()
                gc.disable()

    def leave(self) -> None:
        with self.lock:
            self.contexts -= 1
            if not self.contexts and self.enabled:
                gc.enable()


_collector = _Collector()


def _in_child() -> None:
    """Start anew in a forked process, which lacks the other threads."""
    global _collector
    before, _collector = _collector, _Collector()
    if before.contexts and before.enabled:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


@contextmanager
def uncollected() -> Iterator[None]:
    """Disable the garbage collector; otherwise compile time grows faster than the tape.

    The first thread to enter disables it; the last to leave enables it again if it was enabled.
    """
    held = _collector
    held.enter()
    try:
        yield
    finally:
        if held is _collector:
            held.leave()
