"""Arrays from outside of a function, with the content that compiled code relies on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Contents"]

_SMALL = 4096
"""Bytes up to which arrays are compared as bytes, which is quickest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Arrays, each with a copy of what it held when the function was traced.

    An array that is read-only is taken to stay as it is.
    """

    pairs: tuple[tuple[Any, Any], ...] = ()

    @classmethod
    def of(cls, known: Iterable[tuple[Any, Any]], data: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """Of arrays whose content is ``known``, and of those among ``data`` that are not read afresh at each call.

        The function may have computed with those by itself, without a traced value in sight.
        """
        pairs = list(known)
        others = [*fresh, *(array for array, _ in pairs)]
        for each in data:
            # By its own type: a traced value that was left behind in a list claims to be an array.
            if issubclass(type(each), np.ndarray) and not any(each is other for other in others):
                others.append(each)
                pairs.append((each, each.copy()))
        return cls(tuple((array, content) for array, content in pairs if not _is_fixed(array)))

    def changed(self) -> bool:
        """Whether an array no longer holds what it held."""
        return any(not _unchanged(array, content) for array, content in self.pairs)


def _is_fixed(array: Any) -> bool:
    """Whether neither an array nor what it is a view of can be written."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None


def _unchanged(array: Any, content: Any) -> bool:
    """Whether the bits are the same: a NaN stays what it is."""
    if array.shape != content.shape:
        return False
    if array.nbytes <= _SMALL or array.dtype.hasobject:
        return bool(array.tobytes() == content.tobytes())
    word = np.int64 if array.nbytes % 8 == 0 else np.int8
    present, former = (np.ascontiguousarray(each).reshape(-1).view(word) for each in (array, content))
    return bool(np.array_equal(present, former))
