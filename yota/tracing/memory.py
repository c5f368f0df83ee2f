"""Whose memory an array shows."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["owner_of"]


def owner_of(array: Any) -> Any:
    """The array that owns the memory of ``array``; itself, unless it is a view."""
    while isinstance(getattr(array, "base", None), np.ndarray):
        array = array.base
    return array
