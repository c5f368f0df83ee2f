"""Which NumPy functions are recorded as several primitives, and by what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["IMPLEMENTATIONS", "implements"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

IMPLEMENTATIONS: dict[Any, Callable[..., Any]] = {}
"""Recorded forms by NumPy function, or by the name of a method that all ufuncs have; each takes the trace first."""


def implements(*functions: Any) -> Callable[[_Function], _Function]:
    """Register the decorated function as the recorded form of NumPy ``functions``."""

    def register(implementation: _Function) -> _Function:
        for function in functions:
            IMPLEMENTATIONS[function] = implementation
        return implementation

    return register
