"""Whose memory an array shows, and who has it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np


def owner_of(array: Any) -> Any:
    """The array that owns the memory of ``array``; itself, unless it is a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def reference(array: Any) -> Callable[[], Any]:
    """A function that gives ``array``: None once nobody has it, whereupon nobody can write into its memory.

    >>> array = np.zeros(3)
    >>> found = reference(array)
    >>> found() is array
    True
    >>> del array
    >>> found() is None
    True
    """
    if type(array) is np.ndarray and array.flags.owndata:
        return weakref.ref(array)
    return lambda: array


def laid_as(value: Any, strides: tuple[int, ...]) -> Any:
    """The elements of ``value`` in memory of their own that lies by ``strides``.

    As they are where elements that differ would share a place.

    >>> laid_as(np.ones((2, 3)), (8, 32)).strides
    (8, 32)
    >>> laid_as(np.arange(2.0), (0,)).strides
    (8,)
    """
    if not value.size:
        return value
    pairs = [*zip(strides, value.shape, strict=True)]
    reach = value.itemsize + sum(abs(stride) * (extent - 1) for stride, extent in pairs)
    before = sum(-stride * (extent - 1) for stride, extent in pairs if stride < 0)
    laid: Any = np.ndarray(value.shape, value.dtype, np.empty(reach, np.uint8), before, strides)
    laid[...] = value
    return laid if _are_apart(strides, value) or laid.tobytes() == value.tobytes() else value


def _are_apart(strides: tuple[int, ...], value: Any) -> bool:
    """Whether each axis steps over all that the axes with shorter strides reach: no two elements share a place."""
    reach = value.itemsize
    for stride, extent in sorted((abs(stride), extent) for stride, extent in zip(strides, value.shape, strict=True)):
        if extent > 1 and stride < reach:
            return False
        reach += stride * (extent - 1)
    return True
