"""What text of traced values may go to: files and streams that the function cannot read back."""

from __future__ import annotations

import collections
import contextlib
import functools
import gc
import io
import itertools
import os
import stat
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from yota.structures import is_library
from yota.tracing.bytecode import SILENT, UNKNOWN, called_at, consumer, is_call, nested, static_attribute, steps
from yota.tracing.current import innermost
from yota.tracing.source_lines import is_installed_file, is_library_file

_MOST = 100_000
"""Objects that are looked at to find out whether the function can reach a stream; of more it is taken to."""
_STREAMS = frozenset({"stdout", "stderr", "__stdout__", "__stderr__"})
_ASKED = frozenset({"write", "writelines", "flush", "isatty", "encoding", "errors", "closed"})
"""Attributes of a stream that tell nothing of what was written."""
_COMPUTED = frozenset(
    "eval exec globals locals vars modules import_module __import__ _getframe currentframe f_back f_locals"
    " f_globals get_objects get_referrers".split()
)
"""Names in code that may look up any other."""
_ANYTHING = object()
"""Stands for all that there is."""
_READS = ("LOAD_ATTR", "LOAD_METHOD")
_DEPTH = 4
"""How deep a sink is looked into: a handler has a handler in its attributes, with a list in its own."""
_KEPT_WHOLE = (list, set, collections.deque)
_SKIPPED = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType)
_UNFOLLOWED = {
    "tqdm.std": frozenset({"tqdm"}),
    "logging": frozenset({"Logger", "RootLogger", "Manager"}),
    "yota.tracing.tracer": frozenset({"Tracer"}),
    "yota.tracing.trace": frozenset({"Trace"}),
}
"""By module, classes of objects that lead to what they write to, and to the trace itself."""


class Outlets:
    """What was there to write to when the outermost trace began: streams, handlers of logs, and what shows warnings.

    A sink from which Python can read, such as `io.StringIO`, is one only if the function cannot reach it. Regular
    files are outlets too; that the function opens one again to read is refused.

    around: those of the trace around this one.
    bars: by identity, progress bars that show the text of a value.
    roots: gives the outermost function and its arguments.
    raised: whether the text of a value went into an exception, which whoever catches it may read.
    """

    __slots__ = ("_files", "_known", "_reached", "_verdicts", "_warned", "bars", "raised", "roots")

    def __init__(self, around: Outlets | None = None) -> None:
        self._known: tuple[Any, ...] = (sys.stdout, sys.stderr) if around is None else around._known
        self._warned: tuple[Any, ...] = _warning_state() if around is None else around._warned
        self.roots: Callable[[], Sequence[Any]] = tuple if around is None else around.roots
        self._files: set[tuple[int, int]] = set() if around is None else around._files
        self._verdicts: dict[int, tuple[Any, bool]] = {} if around is None else around._verdicts
        self._reached: set[int] | None = None if around is None else around._reached
        self.bars: dict[int, Any] = {} if around is None else around.bars
        self.raised = False

    @property
    def are_standard(self) -> bool:
        """Whether the standard streams are those that they were, and outlets."""
        known = self._known[0] is sys.stdout and self._known[1] is sys.stderr
        return known and sys.stdout in self and sys.stderr in self

    @property
    def shows_warnings(self) -> bool:
        """Whether warnings go where they went, are none that the function might catch, and are not read back."""
        found = _warning_state()
        shown = [each for each in found[:2] if each is not None]
        return (
            found == self._warned
            and not found[2]
            and all(not isinstance(each, types.FunctionType) or is_library_code(each) for each in shown)
            and all(self.holds(getattr(each, "__self__", None)) for each in shown)
        )

    def __contains__(self, stream: Any) -> bool:
        if not any(stream is each for each in self._known):
            return False
        # It must write by code of Python's or of an installed library, rather than by the user's own.
        write = static_attribute(type(stream), "write")
        by_library = is_library_code(write) if isinstance(write, types.FunctionType) else write is not UNKNOWN
        return by_library and self.holds(stream)

    def holds(self, sink: Any) -> bool:
        """Whether the function can read nothing of what goes to ``sink``, which was there before."""
        known = self._verdicts.get(id(sink))
        if known is None:
            is_safe = sink is None or _file_of(sink) is not None or not self._reaches(sink)
            known = self._verdicts[id(sink)] = sink, is_safe
        return known[1]

    def unknown(self, keywords: Iterable[tuple[str | None, Any]]) -> tuple[str, ...] | None:
        """The names of keywords whose values are no outlets; None if some are not known."""
        names = [name for name, value in keywords if not (value in self or self.takes_file(value))]
        return None if None in names else tuple(name for name in names if name is not None)

    def takes_file(self, stream: Any) -> bool:
        """Whether a stream writes a regular file or a device, such as the null device, and nothing reads from it."""
        descriptor = _file_of(stream)
        if descriptor is None:
            return False
        found = os.fstat(descriptor)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISCHR(found.st_mode)):
            return False
        _watch_files()
        self._files.add((found.st_dev, found.st_ino))
        return True

    def reads(self, path: Any, mode: Any, flags: Any) -> bool:
        """Whether to open a file so reads what text of a traced value was written to."""
        reads = "r" in mode or "+" in mode if isinstance(mode, str) else (flags or 0) & os.O_ACCMODE != os.O_WRONLY
        if not (self._files and reads):
            return False
        try:
            found = os.stat(path)
        except (OSError, TypeError, ValueError):
            return False
        return (found.st_dev, found.st_ino) in self._files

    def _reaches(self, sink: Any) -> bool:
        parts = {id(each) for each in _parts(sink) if _file_of(each) is None}
        if self._reached is None:
            self._reached = {id(each) for each in _reachable(self.roots())}
        is_everything = len(self._reached) >= _MOST or id(_ANYTHING) in self._reached
        return is_everything or not parts.isdisjoint(self._reached)


def is_library_code(function: types.FunctionType) -> bool:
    """Whether a function is code of Python's or of an installed library."""
    name = function.__code__.co_filename
    return is_library_file(name) or is_installed_file(name)


def _warning_state() -> tuple[Any, ...]:
    """What shows or collects warnings, and which of them are errors."""
    errors = [each for each in warnings.filters if each[0] == "error"]
    return warnings.showwarning, getattr(warnings, "_showwarnmsg_impl", None), errors


def _file_of(stream: Any) -> int | None:
    """The descriptor of the file that a stream writes, if Python's own code does so and none of it reads."""
    with contextlib.suppress(ValueError):  # as of a stream that was closed, or taken off its buffer
        if type(stream) is io.TextIOWrapper:
            stream = stream.buffer
        if type(stream) is io.BufferedWriter:
            stream = stream.raw
        if type(stream) is io.FileIO and not stream.readable():
            return stream.fileno()
    return None


@functools.cache
def _watch_files() -> None:
    """Let the traces of a thread know which files it opens."""

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or (trace := next(filter(None, reversed(innermost.stack)), None)) is None:
            return
        if trace.outlets.reads(*args):
            raise trace.refuse(
                "a file is read to which the text of a traced value was written: what is computed from it would lose "
                "its derivative.",
                "Use the value itself, or read the file outside of the function.",
            )

    sys.addaudithook(hook)


def _reachable(roots: Iterable[Any]) -> Iterator[Any]:
    """``roots`` and all that a function reaches through them; `_MOST` of them at most."""
    pending, seen = list(roots), dict[int, Any]()
    while pending and len(seen) < _MOST:
        value = pending.pop()
        if id(value) not in seen:
            seen[id(value)] = value
            kind = type(value)
            if not (isinstance(value, _SKIPPED) or kind.__name__ in _UNFOLLOWED.get(kind.__module__, ())):
                pending += _referents(value)
            yield value


def _parts(sink: Any) -> Iterable[Any]:
    """A sink and what it may keep text in: parts of its parts, but not what a list of records holds."""
    found, level = {id(sink): sink}, [sink]
    for _ in range(_DEPTH):
        outer = [each for each in level if not isinstance(each, _KEPT_WHOLE)]
        level = [part for each in outer for part in gc.get_referents(each) if id(part) not in found and _keeps(part)]
        found.update((id(part), part) for part in level)
    return found.values()


def _keeps(value: Any) -> bool:
    """Whether a value may keep text; classes and code are those of other objects too."""
    return gc.is_tracked(value) and not isinstance(value, (type, types.FunctionType, *_SKIPPED))


def _referents(value: Any) -> Iterable[Any]:
    """What the function can reach through a value."""
    if isinstance(value, type):
        return () if is_library(value) else [*vars(value).values(), *value.__bases__, type(value)]
    if isinstance(value, (ContextVar, threading.local)):
        return [_ANYTHING]
    if isinstance(value, weakref.ref):
        return [value()]
    if not isinstance(value, types.FunctionType):
        return gc.get_referents(value)
    cells = [each for cell in value.__closure__ or () for each in gc.get_referents(cell)]
    found = [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *vars(value).values()]
    code = value.__code__
    return found if is_library_file(code.co_filename) else [*found, *_global(code, value.__globals__)]


def _global(code: types.CodeType, names: dict[str, Any]) -> Iterator[Any]:
    """What code can reach by global names, modules that it imports, and attributes of modules."""
    attributes = {name for each in nested(code) for name in _attributes(each, names)}
    wanted = {name for each in nested(code) for name in each.co_names}
    if not (is_installed_file(code.co_filename) or _COMPUTED.isdisjoint(wanted)):
        yield _ANYTHING
    # As in `getattr(sys, "stdout")`.
    attributes |= {each for inner in nested(code) for each in inner.co_consts if isinstance(each, str)}
    pending = [names[name] for name in wanted if name in names] + [sys.modules[n] for n in wanted if n in sys.modules]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if not isinstance(value, (types.ModuleType, type)):
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            pending += [vars(value)[name] for name in attributes if name in vars(value)]
            if isinstance(value, type):
                yield value
    if "handlers" in attributes and "logging" in sys.modules:
        yield from (each() for each in sys.modules["logging"]._handlerList)


def _attributes(code: types.CodeType, names: dict[str, Any]) -> Iterator[str]:
    """The attributes that code reads, but for standard streams that it only writes to."""
    every = [step for step in steps(code) if step.opname not in SILENT]
    for step, following in itertools.pairwise([*every, every[-1]]):
        if not step.opname.startswith((*_READS, "IMPORT_FROM")):
            continue
        if step.argval in _STREAMS:
            if following.opname.startswith(_READS) and following.argval in _ASKED:
                continue
            taken = consumer(code, step.offset)
            chain = called_at(code, taken.offset).chain if taken is not None and is_call(taken) else ()
            name = str(chain[0].argval) if len(chain) == 1 else ""
            if name == "print" and names.get(name, print) is print:
                continue
        yield str(step.argval)
