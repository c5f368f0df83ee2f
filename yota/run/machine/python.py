"""Turns generated Python source into a callable, whose lines tracebacks show and whose scratch arrays are bounded."""

from __future__ import annotations

import functools
import itertools
import linecache
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.run.machine.signals import StaleTape

if TYPE_CHECKING:
    from yota.emit.targets.generated import Source

_serial = itertools.count(1)
_ended: deque[str] = deque()
"""File names of functions that no longer live, whose lines are dropped with the next load."""
_MOST_BYTES = 256 * 1024 * 1024
"""Bytes that earlier functions may keep when another one is created."""
_lock = threading.Lock()
_pools: list[weakref.ref[deque[Any]]] = []


def load(source: Source) -> Callable[..., Any]:
    """The function that ``source`` defines, in its own namespace.

    ``linecache`` keeps the text until a function is loaded after this one is gone. A source from the private cache has
    its code too.
    """
    filename = f"<yota {source.entry} #{next(_serial)}>"
    namespace: dict[str, Any] = {
        "__name__": f"yota.generated.{source.entry}",
        "StaleTape": StaleTape,
        **source.constants,
    }
    exec(_named(getattr(source, "compiled", None) or code_of(source.text), filename), namespace)
    function = _ignoring(namespace[source.entry])
    lines = source.text.splitlines(keepends=True)
    # A modification time of None keeps linecache.checkcache from dropping an entry without a file.
    linecache.cache[filename] = (len(source.text), None, lines, filename)
    # The garbage collector may run while linecache goes through its entries.
    weakref.finalize(function, _ended.append, filename).atexit = False
    while _ended:
        linecache.cache.pop(_ended.popleft(), None)
    if "_pool" in namespace:
        _bound(namespace["_pool"])
    return function


def _ignoring(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function decorated by ``np.errstate``, whose calls set NumPy's context variable at once; others as they are.

    The decorator takes more than half a microsecond, the context variable a third of that. Dispatch in C sets the
    variable itself, as the attribute ``within`` says: the function, the variable and its value.
    """
    plain = getattr(function, "__wrapped__", None)
    if plain is None:
        return function
    outside = copy_context()
    with np.errstate(all="ignore"):
        inside = copy_context()
    changed = [each for each in inside if each not in outside or outside[each] is not inside[each]]
    if len(changed) != 1:
        return function
    (variable,) = changed
    value, enter, leave = inside[variable], variable.set, variable.reset

    @functools.wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = enter(value)
        try:
            return plain(*args, **kwargs)
        finally:
            leave(before)

    call.within = plain, variable, value  # type: ignore[attr-defined]
    return call


@functools.lru_cache(1)
def code_of(text: str) -> CodeType:
    """The code of a generated module."""
    return compile(text, "<yota>", "exec")


def _named(code: CodeType, filename: str) -> CodeType:
    """``code`` with another file name, in which errors show its lines."""
    constants = (_named(each, filename) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=filename, co_consts=tuple(constants))


def made(text: str, objects: Mapping[str, Any]) -> Any:
    """The result of the function ``make``, which ``text`` defines, for named ``objects``."""
    namespace: dict[str, Any] = {"__name__": "yota.generated"}
    exec(_code(text), namespace)
    return namespace["make"](**objects)


@functools.lru_cache(512)
def _code(text: str) -> CodeType:
    return compile(text, "<yota entry>", "exec")


def text(function: Callable[..., Any]) -> str:
    """The source of a function from `load`."""
    return "".join(linecache.getlines(function.__code__.co_filename))


def _bound(pool: deque[Any]) -> None:
    """Register the pool of a new function, and empty the oldest pools above `_MOST_BYTES`.

    A function with an emptied pool allocates its arrays again at its next call.
    """
    with _lock:
        _pools[:] = [known for known in _pools if known() is not None]
        left = _MOST_BYTES
        for known in reversed(_pools):
            other = known()
            if other is not None:
                # Total size of the arrays in a pool; views share memory.
                owners = {id(owner): owner for work in other.copy() for array in work for owner in [_owner(array)]}
                left -= sum(owner.nbytes for owner in owners.values())
                if left < 0:
                    other.clear()
        _pools.append(weakref.ref(pool))


def _owner(array: Any) -> Any:
    return array if array.base is None else array.base
