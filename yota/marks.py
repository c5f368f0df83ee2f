"""Hashable marks of constants: compiled code is valid only for constants with equal marks."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

MISSING = object()
"""Result of an entry for other argument types, or after a change of captured data."""


_PLAIN = frozenset((bool, int, float, complex, str, bytes, tuple, list, dict, type(None)))
"""Types without such content, among those of most values."""


class Itself:
    """The mark of an object that is compared by identity; it keeps the object alive, so that its id stays unique."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value


def content_of(value: Any) -> Hashable | None:
    """The current content of a set, bytearray, memoryview or `array.array`; None for other types."""
    if type(value) in _PLAIN:
        return None
    if isinstance(value, set):
        return frozenset(map(mark_of, value))
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    array = sys.modules.get("array")
    if array is not None and isinstance(value, array.array):
        return value.typecode, value.tobytes()
    return None


def mark_of(value: Any) -> Hashable:
    """The mark of a constant: its type with its value, its current content if it is mutable, or its identity.

    Examples
    --------
    >>> mark_of(1) == mark_of(True), mark_of(0.0) == mark_of(-0.0), mark_of({1}) == mark_of({1})
    (False, False, True)
    """
    kind = type(value)
    if kind in (float, complex):
        # The representation distinguishes -0.0 from 0.0, and NaN equals itself.
        return kind, repr(value)
    if kind in (tuple, frozenset):
        return kind, kind(map(mark_of, value))
    if kind is slice:
        return kind, mark_of((value.start, value.stop, value.step))
    content = content_of(value)
    if content is not None:
        return kind, content
    try:
        hash(value)
    except TypeError:
        return kind, Itself(value)
    return kind, value
