"""Background compilation: one thread, which ends when its queue is empty and delays neither forks nor the exit.

While the thread runs Python code it may hold locks, such as those of imports, which a child process would never see
released. So a fork waits until this code ends. It does not wait for the C compiler, which is a process.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

_INTERVAL = 2e-4
"""Switch interval in seconds: calls wait so long for the thread whenever NumPy releases the GIL."""
_GRACE = 1.0
"""Seconds that an ending process waits at most for the thread to remove its files."""


class Later:
    """A function that is replaced by another one, which is created in the background after the first call.

    make: creates the other function. It must log its own exceptions; the first function then stays.
    """

    __slots__ = ("_make", "call", "first")

    def __init__(self, first: Callable[..., Any], make: Callable[[], Callable[..., Any]]) -> None:
        self.first = first
        self._make: Callable[[], Callable[..., Any]] | None = make
        self.call: Callable[..., Any] = self._begin

    def __call__(self, *inputs: Any) -> Any:
        """The result of the present function."""
        return self.call(*inputs)

    def _begin(self, *inputs: Any) -> Any:
        results = self.first(*inputs)
        _worker.add(self)
        return results

    def wait(self) -> bool:
        """Queue the creation; return whether it was not queued yet."""
        waits, self.call = self.call == self._begin, self.first
        return waits

    def again(self) -> None:
        """Start again in a forked process, which lacks the thread of its parent."""
        if self._make is not None:
            self.call = self._begin

    def run(self) -> None:
        """Create the other function."""
        if self._make is not None:
            with contextlib.suppress(Exception):
                self.call = self._make()
        # Release what the function `make` holds.
        self._make = None


class _Worker:
    """The thread, its queue, and the child process that it waits for."""

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
        """The result of a command, which is stopped when the process ends."""
        import subprocess

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
        """Stop the C compiler, and give the thread time to remove its files."""
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
    """The result of a command; if the background thread waits for it, it is stopped when the process ends."""
    import subprocess

    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    options["env"] = environment
    if threading.current_thread() is _worker.thread:
        return subprocess.CompletedProcess(command, *_worker.wait_for(command, text, options))
    return subprocess.run(command, check=False, input=text, **options)


@contextlib.contextmanager
def _yielding() -> Iterator[None]:
    """Switch threads often in this context."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _INTERVAL))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
