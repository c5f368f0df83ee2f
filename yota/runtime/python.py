"""Turns generated Python source into a callable; tracebacks and debuggers can show its lines."""

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
    """The function that ``source`` defines, in its own namespace.

    ``linecache`` keeps the text as long as the function lives.
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
    # A modification time of None keeps linecache.checkcache from dropping an entry without a file.
    linecache.cache[filename] = (len(source.text), None, lines, filename)
    weakref.finalize(function, linecache.cache.pop, filename, None).atexit = False
    if "_pool" in namespace:
        bound(namespace["_pool"])
    return function


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
