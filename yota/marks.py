"""Marks by which constants are told apart: compiled code holds for those of an equal mark alone."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import Any

__all__ = ["Itself", "content_of", "mark_of"]


class Itself:
    """The mark of an object that is equal to itself alone; keeps it alive, so that its identity stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and other.value is self.value


def content_of(value: Any) -> Hashable | None:
    """What a set, bytes or an array of numbers that can be written holds now; None for anything else."""
    if isinstance(value, set):
        return frozenset(map(mark_of, value))
    if isinstance(value, bytearray):
        return bytes(value)
    array = sys.modules.get("array")
    if array is not None and isinstance(value, array.array):
        return value.typecode, value.tobytes()
    return None


def mark_of(value: Any) -> Hashable:
    """The mark of a constant: its type and value; what it holds now, if it can be written; or that it is itself.

    Examples
    --------
    >>> mark_of(1) == mark_of(True), mark_of(0.0) == mark_of(-0.0), mark_of({1}) == mark_of({1})
    (False, False, True)
    """
    kind = type(value)
    if kind in (float, complex):
        # It tells -0.0 from 0.0 and makes NaN equal to itself.
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
