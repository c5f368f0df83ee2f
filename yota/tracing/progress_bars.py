"""Progress bars of tqdm's, which keep the text that they show: a function that reads it back is refused."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any

from yota.tracing.current import innermost
from yota.tracing.outlets import Outlets
from yota.tracing.source_lines import shows_progress

METHODS = tuple("set_description set_description_str set_postfix set_postfix_str".split())
_KEPT = ("desc", "postfix", "fp")
_TELLING = frozenset({"__repr__", "__str__", "__format__", "format_dict"})
"""What tells the text of a bar; all else that tqdm does with it is to show it."""


class _Text:
    """An attribute of progress bars that holds a text, which the function that set it must not read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, bar: Any, kind: type) -> Any:
        if bar is None or self._name not in vars(bar):
            raise AttributeError(self._name)
        trace = next(filter(None, reversed(innermost.stack)), None)
        if trace is not None and id(bar) in trace.outlets.bars and _tells(sys._getframe(1)):
            raise trace.refuse(
                "the text of a progress bar is read, to which that of a traced value was written: what is computed "
                "from it would lose its derivative.",
                "Use the value itself.",
            )
        return vars(bar)[self._name]

    def __set__(self, bar: Any, text: str) -> None:
        vars(bar)[self._name] = text


def _tells(frame: FrameType | None) -> bool:
    """Whether somebody else than tqdm asks for what ``frame`` reads."""
    name = ""
    while frame is not None and shows_progress(frame.f_code.co_filename):
        name, frame = frame.f_code.co_name, frame.f_back
    return not name or name in _TELLING


def shows(bar: Any, outlets: Outlets) -> bool:
    """Whether a bar only shows its text; it is refused from then on that the function reads that."""
    stream = vars(bar).get("fp")
    stream = getattr(stream, "_wrapped", stream)
    if not (stream is None or stream in outlets or outlets.takes_file(stream)):
        return False
    _watch(sys.modules["tqdm.std"].tqdm)
    outlets.bars[id(bar)] = bar
    return True


@functools.cache
def _watch(kind: type) -> None:
    for name in _KEPT:
        setattr(kind, name, _Text(name))
