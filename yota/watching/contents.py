"""Arrays from outside of a function, with the content that compiled code relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.memory import reference

__all__ = ["SMALL", "Contents"]

SMALL = 4096
"""Bytes up to which arrays are compared as bytes, which is quickest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Arrays, each by a function that gives it while anybody has it, with a copy of what it held when traced.

    An array that is read-only is taken to stay as it is, and so is one that nobody has any more: the function made it.

    Parameters
    ----------
    pairs
        The arrays, with what they held.
    forms
        Arrays that compiled code reads at each call, with the shape and the dtype for which it was made.
    """

    pairs: tuple[tuple[Callable[[], Any], Any], ...] = ()
    forms: tuple[tuple[Any, tuple[int, ...], Any], ...] = ()

    @classmethod
    def of(cls, known: Iterable[tuple[Callable[[], Any], Any]], data: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """Of arrays whose content is ``known``, and of those among ``data`` that are not read afresh at each call.

        The function may have computed with those by itself, without a traced value in sight.
        """
        pairs = list(known)
        others = [*fresh, *(get() for get, _ in pairs)]
        for each in data:
            # By its own type: a traced value that was left behind in a list claims to be an array.
            if issubclass(type(each), np.ndarray) and not any(each is other for other in others):
                others.append(each)
                # A subclass may have other ideas of bytes.
                plain = each if type(each) is np.ndarray else np.ndarray.view(each, np.ndarray)
                pairs.append((reference(plain), plain.copy()))
        del others
        forms = tuple((array, array.shape, array.dtype) for array in fresh)
        return cls(tuple((get, content) for get, content in pairs if not _is_fixed(get())), forms)

    @classmethod
    def now(cls, arrays: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """Of arrays that hold what they should, and of those that are read at each call."""
        pairs = tuple((reference(array), array.copy()) for array in arrays)
        return cls(pairs, tuple((array, array.shape, array.dtype) for array in fresh))

    def changed(self) -> bool:
        """Whether an array no longer holds what it held, or has another shape or dtype."""
        return any(array.shape != shape or array.dtype != dtype for array, shape, dtype in self.forms) or any(
            _changed(get(), content) for get, content in self.pairs
        )


def _is_fixed(array: Any) -> bool:
    """Whether neither an array nor what it is a view of can be written; None is an array that nobody has."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None


def _changed(array: Any, content: Any) -> bool:
    """Whether the bits are others: a NaN stays what it is."""
    if array is None:
        return False
    if array.shape != content.shape or array.dtype != content.dtype:
        return True
    if array.nbytes <= SMALL or array.dtype.hasobject:
        return bool(array.tobytes() != content.tobytes())
    word = np.int64 if array.nbytes % 8 == 0 else np.int8
    present, former = (np.ascontiguousarray(each).reshape(-1).view(word) for each in (array, content))
    return not np.array_equal(present, former)
