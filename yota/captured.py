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

    __slots__ = ("_cells", "_defaults", "_globals", "_names", "_values")

    def __init__(self, function: Callable[..., Any]) -> None:
        code = getattr(function, "__code__", None)
        self._cells = [cell for cell in getattr(function, "__closure__", None) or () if not _is_module(cell)]
        self._globals: dict[str, Any] = getattr(function, "__globals__", {})
        names = code.co_names if code is not None else ()
        self._names = [name for name in names if name in self._globals and not isinstance(self._globals[name], _CODE)]
        keywords = getattr(function, "__kwdefaults__", None) or {}
        self._defaults = [*(getattr(function, "__defaults__", None) or ()), *keywords.values()]
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

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured the same, as a lambda does that is made anew."""
        return self._names == other._names and _same(
            [*self._values, *self._defaults], [*other._values, *other._defaults]
        )

    def changed(self) -> bool:
        """Whether anything was rebound since the last time; from now on the present state counts."""
        # Identity first, by plain loops: this runs ahead of every call of a compiled function.
        values = self._values
        position = 0
        for cell in self._cells:
            try:
                if cell.cell_contents is not values[position]:
                    break
            except ValueError:
                break
            position += 1
        else:
            names = self._globals
            for name in self._names:
                if names.get(name, _ABSENT) is not values[position]:
                    break
                position += 1
            else:
                return False
        old, self._values = values, list(self._now())
        return not _same(old, self._values)


def _is_module(cell: types.CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, types.ModuleType)
    except ValueError:  # not filled yet
        return False


def _same(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(a is b or _equal(a, b) for a, b in zip(old, new, strict=True))


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and type(old) in (int, float, complex, str, bool) and bool(old == new)
