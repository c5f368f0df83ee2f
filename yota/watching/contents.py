"""Captured arrays with the content that compiled code relies on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.memory import reference

SMALL = 4096
"""Largest size of arrays that are compared as bytes, which is fastest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Arrays, by weak references, with copies of their content at the trace.

    Read-only arrays count as unchanged. So do arrays that no longer exist: the function created them itself.

    pairs: the arrays with their content.
    forms: arrays that compiled code reads at each call, with the required shape and dtype.
    """

    pairs: tuple[tuple[Callable[[], Any], Any], ...] = ()
    forms: tuple[tuple[Any, tuple[int, ...], Any], ...] = ()

    @classmethod
    def of(cls, known: Iterable[tuple[Callable[[], Any], Any]], data: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """The contents of the ``known`` arrays, and of those among ``data`` that are not read at each call.

        The function may have computed with them without a traced value.
        """
        pairs = list(known)
        others = [*fresh, *(get() for get, _ in pairs)]
        for each in data:
            # The check uses the real type: a traced value that was left in a list reports the class of an array.
            if issubclass(type(each), np.ndarray) and not any(each is other for other in others):
                others.append(each)
                # A subclass may override `tobytes`.
                plain = each if type(each) is np.ndarray else np.ndarray.view(each, np.ndarray)
                pairs.append((reference(plain), plain.copy()))
        del others
        forms = tuple((array, array.shape, array.dtype) for array in fresh)
        return cls(tuple((get, content) for get, content in pairs if not _is_fixed(get())), forms)

    @classmethod
    def now(cls, arrays: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """Checks of the arrays with content, and of those that are read at each call."""
        pairs = tuple((reference(array), array.copy()) for array in arrays)
        return cls(pairs, tuple((array, array.shape, array.dtype) for array in fresh))

    def changed(self) -> bool:
        """Whether the content, shape or dtype of an array has changed."""
        return any(array.shape != shape or array.dtype != dtype for array, shape, dtype in self.forms) or any(
            _changed(get(), content) for get, content in self.pairs
        )


def _is_fixed(array: Any) -> bool:
    """Whether neither an array nor its base can be written to; None is an array that no longer exists."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None


def _changed(array: Any, content: Any) -> bool:
    """Whether the bits differ; a NaN equals itself."""
    if array is None:
        return False
    if array.shape != content.shape or array.dtype != content.dtype:
        return True
    if array.nbytes <= SMALL or array.dtype.hasobject:
        return bool(array.tobytes() != content.tobytes())
    word = np.int64 if array.nbytes % 8 == 0 else np.int8
    present, former = (np.ascontiguousarray(each).reshape(-1).view(word) for each in (array, content))
    return not np.array_equal(present, former)
