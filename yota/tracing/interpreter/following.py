"""What Python's own and compiled functions make of texts of traced values: texts again, or nothing that comes back."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

from yota.tracing.trace import Trace
from yota.tracing.traced_text import Text, texts_in
from yota.tracing.writers import Called

_HOLDING = (str, list, tuple, set, frozenset, dict, int, bool)
"""Classes whose objects hold the texts that they are made of, or tell of them what a guard keeps."""
_METHODS = (str, list, tuple, set, frozenset, dict)
_READING = (print, eval, exec, compile, open, bytes, bytearray, memoryview)
"""Of Python's built-in functions, those that do more with a text than to look at it."""


def followed(
    trace: Trace, function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], made: int, found: Any
) -> Any:
    """The result ``found`` of a call that Python makes.

    ``made`` is how many texts there were before the call.
    """
    if not trace.texts:
        return found
    called = Called.of(function, tuple(keywords))
    texts = [*texts_in([called.owner, *args, *keywords.values()]), *trace.texts[made:]]
    if not texts or type(called.owner) is Text or called.writes(trace.outlets):
        return found
    if not (called.converts or _is_followed(called.function, called.owner)):
        for each in texts:
            each.escape()
    elif isinstance(found, (int, float)):
        for each in texts:
            each.decide()
    return joined(found, texts)


def joined(found: Any, texts: list[Text]) -> Any:
    """``found``, which was made of ``texts``, as such a text."""
    if not texts or type(found) is Text or not isinstance(found, (str, list, tuple)):
        return found
    return texts[0].like(found, texts[1:])


def _is_followed(function: Any, owner: Any) -> bool:
    """Whether what a function does with texts shows in its result alone."""
    if any(function is each for each in _READING):
        return False
    if isinstance(function, type):
        return function in _HOLDING or issubclass(function, BaseException)
    return owner is builtins or (owner is not None and isinstance(owner, _METHODS))
