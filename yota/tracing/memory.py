"""Whose memory an array shows, and who has it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["owner_of", "reference"]


def owner_of(array: Any) -> Any:
    """The array that owns the memory of ``array``; itself, unless it is a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array


def reference(array: Any) -> Callable[[], Any]:
    """A function that gives ``array``: None once nobody has it, whereupon nobody can write into its memory.

    Examples
    --------
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
