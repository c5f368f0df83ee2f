"""What a callable is called, in messages and in generated code."""

from __future__ import annotations

import functools

__all__ = ["name_of"]


def name_of(function: object) -> str:
    """The name of a function; that of its class for an object that is called.

    Examples
    --------
    >>> class Energy:
    ...     def __call__(self, x):
    ...         return x
    >>> name_of(Energy()), name_of(Energy.__call__), name_of(functools.partial(max, 0))
    ('Energy', 'Energy', 'max')
    """
    if isinstance(function, functools.partial):
        return name_of(function.func)
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "__call__":
        owner = str(getattr(function, "__qualname__", "")).rpartition(".")[0]
        return owner.rpartition(".")[2] or str(name)
    return str(name)
