"""Turns generated Python source into a callable whose lines tracebacks and debuggers can show."""

from __future__ import annotations

import functools
import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from yota.codegen.targets.base import Source
from yota.runtime.scratch import bound
from yota.runtime.signals import StaleTape

__all__ = ["load", "made", "text"]

_serial = itertools.count(1)


def load(source: Source) -> Callable[..., Any]:
    """The function that ``source`` defines, in a namespace of its own.

    The text stays in ``linecache`` for as long as the function lives.
    """
    filename = f"<yota {source.entry} #{next(_serial)}>"
    namespace: dict[str, Any] = {
        "__name__": f"yota.generated.{source.entry}",
        "StaleTape": StaleTape,
        **source.constants,
    }
    exec(compile(source.text, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace[source.entry]
    lines = source.text.splitlines(keepends=True)
    # A modification time of None keeps linecache.checkcache from dropping a file that no disk has.
    linecache.cache[filename] = (len(source.text), None, lines, filename)
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    if "_pool" in namespace:
        bound(namespace["_pool"])
    return function


def made(text: str, objects: Mapping[str, Any]) -> Any:
    """What the function ``make`` that ``text`` defines gives for ``objects`` by name."""
    namespace: dict[str, Any] = {"__name__": "yota.generated"}
    exec(_code(text), namespace)
    return namespace["make"](**objects)


@functools.lru_cache(512)
def _code(text: str) -> CodeType:
    return compile(text, "<yota entry>", "exec")


def text(function: Callable[..., Any]) -> str:
    """Source of a function that `load` gave."""
    return "".join(linecache.getlines(function.__code__.co_filename))
