"""What a function reads besides its arguments, so that a compiled form is not used after that was rebound."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["Captured"]

_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, np.ufunc)
_ABSENT = object()


class Captured:
    """The data that the closure and the globals of a function held when it was compiled.

    Rebinding is noticed by identity. Writing into a captured array is not: pass such an array as an argument.
    """

    __slots__ = ("_cells", "_globals", "_names", "_values")

    def __init__(self, function: Callable[..., Any]) -> None:
        code = getattr(function, "__code__", None)
        self._cells = [cell for cell in getattr(function, "__closure__", None) or ()]
        self._globals: dict[str, Any] = getattr(function, "__globals__", {})
        names = code.co_names if code is not None else ()
        self._names = [
            name for name in names if name in self._globals and not isinstance(self._globals[name], _CODE)
        ]
        self._values = list(self._now())

    def __bool__(self) -> bool:
        return bool(self._cells or self._names)

    def _now(self) -> Iterator[Any]:
        for cell in self._cells:
            try:
                yield cell.cell_contents
            except ValueError:  # not filled yet
                yield _ABSENT
        for name in self._names:
            yield self._globals.get(name, _ABSENT)

    def changed(self) -> bool:
        """Whether anything was rebound since the last time; from now on the present state counts."""
        now = list(self._now())
        if all(old is new or _equal(old, new) for old, new in zip(self._values, now, strict=True)):
            return False
        self._values = now
        return True


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and type(old) in (int, float, complex, str, bool) and bool(old == new)
