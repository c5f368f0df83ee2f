"""A function that runs from its source while a trace runs."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from yota.errors import TracingError
from yota.ir.callables import Derived
from yota.tracing.current import current
from yota.tracing.rewriting import (  # noqa: F401  (they register rules)
    statement_rules,
    traced_branches,
    traced_comprehensions,
)
from yota.tracing.rewriting.call_rules import call
from yota.tracing.rewriting.definition import Unreadable, definition_of
from yota.tracing.rewriting.rewritten import deep
from yota.tracing.source_lines import is_library_file


def interpreted(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` for the other functions of yota, which will run it from its source where they would trace it.

    Everywhere else it is ``f`` itself. See `itrace` for what the source shows that operators cannot.

    Parameters
    ----------
    f
        A plain NumPy function with a source.

    Returns
    -------
    Callable
        Takes the arguments of ``f``.

    Raises
    ------
    TracingError
        If the source cannot be had.

    Examples
    --------
    >>> import functools
    >>> import numpy as np
    >>> from math import sin
    >>> @functools.cache
    ... def wave(t):
    ...     return sin(float(t))
    >>> import yota
    >>> yota.gradient(yota.interpreted(lambda x: wave(x[0]) ** 2))(np.array([0.5, 1.0]))
    array([0.84147098, 0.        ])
    """
    inner = f.__func__ if isinstance(f, MethodType) else f
    if type(inner) is FunctionType and not is_library_file(inner.__code__.co_filename):
        try:
            definition_of(inner)
        except Unreadable as fault:
            raise TracingError(
                f"{fault}, so it cannot run from there. Use yota.trace, which lets Python run it."
            ) from None

    return _Interpreted((interpreted, (f,), {}), f)


class _Interpreted(Derived):
    """A function that runs from its source while a trace runs."""

    yota_interpreted = True

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """What the function gives."""
        if current() is None:
            return self.__wrapped__(*args, **keywords)
        with deep():
            return call(self.__wrapped__, args, keywords)
