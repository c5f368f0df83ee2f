"""Work beside the calls: one thread, which ends when nothing is left to do, and holds up neither forks nor the exit.

While the thread runs Python code it may hold locks, of imports for example, that a child process would never see
released: a fork waits for the end of that. It does not wait for the C compiler, which is a process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Later", "communicated"]

_INTERVAL = 2e-4
"""Seconds after which the thread lets calls go on: they wait so long whenever NumPy has let go of the interpreter."""
_GRACE = 1.0
"""Seconds at most that a process waits at its end for the thread to remove its files."""


class Later:
    """A function, and what takes its place once that is made in the background, which begins after the first call.

    Parameters
    ----------
    first
        The function to begin with.
    make
        Gives the other one; what it raises is for it to note down, and the first one stays.
    """

    __slots__ = ("_make", "call", "first")

    def __init__(self, first: Callable[..., Any], make: Callable[[], Callable[..., Any]]) -> None:
        self.first = first
        self._make: Callable[[], Callable[..., Any]] | None = make
        self.call: Callable[..., Any] = self._begin

    def __call__(self, *inputs: Any) -> Any:
        """What the function gives that there is now."""
        return self.call(*inputs)

    def _begin(self, *inputs: Any) -> Any:
        results = self.first(*inputs)
        _worker.add(self)
        return results

    def wait(self) -> bool:
        """Be in a queue from now on; whether it was in none."""
        waits, self.call = self.call == self._begin, self.first
        return waits

    def again(self) -> None:
        """Begin once more, in a process that has not the thread of its parent."""
        if self._make is not None:
            self.call = self._begin

    def run(self) -> None:
        """Make the other function."""
        if self._make is not None:
            with contextlib.suppress(Exception):
                self.call = self._make()
        # What it holds is needed no more.
        self._make = None


class _Worker:
    """The thread, what it has to do, and the process that it waits for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # Held by the thread while it runs Python code.
        self.running = threading.Lock()
        self.queue: deque[Later] = deque()
        self.thread: threading.Thread | None = None
        self.child: subprocess.Popen[str] | None = None
        self.ending = False

    def add(self, work: Later) -> None:
        with self.lock:
            if self.ending or not work.wait():
                return
            self.queue.append(work)
            if self.thread is None:
                self.thread = threading.Thread(target=self.work, name="yota-background", daemon=True)
                self.thread.start()

    def work(self) -> None:
        while True:
            with self.lock:
                if not self.queue or self.ending:
                    self.thread = None
                    return
                following = self.queue[0]
            with self.running, _yielding():
                following.run()
            with self.lock:
                self.queue.popleft()

    def wait_for(self, command: Sequence[str], text: str | None, options: Mapping[str, Any]) -> tuple[int, str, str]:
        """What a command gives, which ends when the process does."""
        with self.lock:
            if self.ending:
                raise OSError("the process ends")
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **options)
        self.running.release()
        try:
            said, complained = self.child.communicate(text)
        finally:
            self.running.acquire()
        done, self.child = self.child, None
        return done.returncode, said, complained

    def end(self) -> None:
        """Stop the C compiler, and give the thread the time to remove what it wrote."""
        with self.lock:
            self.ending, child, thread = True, self.child, self.thread
        if child is None or thread is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGTERM)
            else:
                child.kill()
        thread.join(_GRACE)

    def before_fork(self) -> None:
        self.running.acquire()
        self.lock.acquire()

    def after_fork(self) -> None:
        self.lock.release()
        self.running.release()

    def in_child(self) -> None:
        for each in self.queue:
            each.again()
        self.queue.clear()
        self.thread = self.child = None
        self.after_fork()


_worker = _Worker()
atexit.register(_worker.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_worker.before_fork, after_in_parent=_worker.after_fork, after_in_child=_worker.in_child)


def communicated(
    command: Sequence[str], text: str | None, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """What a command gives; one that this thread waits for in the background ends with the process."""
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    options["env"] = environment
    if threading.current_thread() is _worker.thread:
        return subprocess.CompletedProcess(command, *_worker.wait_for(command, text, options))
    return subprocess.run(command, check=False, input=text, **options)


@contextlib.contextmanager
def _yielding() -> Iterator[None]:
    """Let other threads run often meanwhile."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _INTERVAL))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
