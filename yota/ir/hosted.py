"""Calls of functions of other libraries with NumPy arrays."""

from __future__ import annotations

from typing import Any


def apply(*xs: Any, host: Any) -> Any:
    """The result of the function of ``host``."""
    return host(*xs)


def pulled(v: Any, *xs: Any, host: Any) -> Any:
    """The result of a pullback, which is linear in the cotangent ``v``."""
    return host(v, *xs)
