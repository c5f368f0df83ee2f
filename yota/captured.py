"""What a function reads besides its arguments, so that compiled code is not used after that has changed."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.structures import children, flatten
from yota.tracing.location import is_library_file

__all__ = ["Captured"]

_NUMBERS = (int, float, complex, str, bool, bytes, type(None))
_ABSENT = object()
_MOST_FUNCTIONS = 100


class Captured:
    """The data in the closure and the globals of a function, and of the functions that it calls by name.

    Numbers are compared by value, other objects by identity, structures by that of their parts. The content
    of arrays is not compared here: compiled code reads them afresh, or watches them; see `yota.specialise`.
    """

    __slots__ = ("_cells", "_code", "_defaults", "_names", "_structures", "_values")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._cells: list[types.CellType] = []
        self._names: list[tuple[dict[str, Any], str]] = []
        self._code: list[types.CodeType] = []
        self._defaults: list[Any] = []
        pending: list[Any] = [function]
        while pending and len(self._code) < _MOST_FUNCTIONS:
            pending += self._take(pending.pop())
        self._values = list(self._now())
        self._structures = [
            (position, _fingerprint(value)) for position, value in enumerate(self._values) if _is_structure(value)
        ]

    def _take(self, function: Any) -> list[Any]:
        """Take in what ``function`` reads; the functions that it calls by name are given back."""
        code = getattr(function, "__code__", None)
        if code is None or code in self._code or is_library_file(code.co_filename):
            return []
        self._code.append(code)
        keywords = getattr(function, "__kwdefaults__", None) or {}
        self._defaults += [*(function.__defaults__ or ()), *keywords.values()]
        found: list[Any] = []
        for cell in function.__closure__ or ():
            value = _content(cell)
            found.append(value)
            if not isinstance(value, types.ModuleType):
                self._cells.append(cell)
        for name in dict.fromkeys(_names(code)):
            value = function.__globals__.get(name, _ABSENT)
            found.append(value)
            if value is not _ABSENT and not isinstance(value, types.ModuleType):
                self._names.append((function.__globals__, name))
        return [value for value in found if isinstance(value, types.FunctionType)]

    def __bool__(self) -> bool:
        return bool(self._cells or self._names)

    def _now(self) -> Iterator[Any]:
        yield from map(_content, self._cells)
        for names, name in self._names:
            yield names.get(name, _ABSENT)

    def arrays(self) -> list[Any]:
        """The arrays among the captured data."""
        return [value for value in self._values if isinstance(value, np.ndarray)]

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured the same, as a lambda does that is made anew."""
        return (
            self._code == other._code
            and _same([*self._values, *self._defaults], [*other._values, *other._defaults])
            and self._structures == other._structures
        )

    def changed(self) -> bool:
        """Whether anything was rebound since the last time; from now on the present state counts."""
        # Identity first, by plain loops: this runs ahead of every call of a compiled function.
        values = self._values
        position = 0
        for cell in self._cells:
            if _content(cell) is not values[position]:
                return self._renewed()
            position += 1
        for names, name in self._names:
            if names.get(name, _ABSENT) is not values[position]:
                return self._renewed()
            position += 1
        for position, known in self._structures:
            if _fingerprint(values[position]) != known:
                return self._renewed()
        return False

    def _renewed(self) -> bool:
        old, before = self._values, self._structures
        self._values = list(self._now())
        self._structures = [
            (position, _fingerprint(value)) for position, value in enumerate(self._values) if _is_structure(value)
        ]
        return not (_same(old, self._values) and before == self._structures)


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that code and the code inside of it (comprehensions, lambdas) look up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return _ABSENT


def _is_structure(value: Any) -> bool:
    return not isinstance(value, (np.ndarray, *_NUMBERS)) and children(value) is not None


class _Same:
    """Equal to itself alone; keeps what it stands for alive, so that its identity stays its own."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    __hash__ = None  # type: ignore[assignment]


def _fingerprint(value: Any) -> Any:
    try:
        return [(path, _mark(part)) for path, part in flatten(value)]
    except ArgumentError:  # it contains itself
        return _Same(value)


def _mark(part: Any) -> Any:
    return (type(part), part) if type(part) in _NUMBERS else _Same(part)


def _same(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(a is b or _equal(a, b) for a, b in zip(old, new, strict=True))


def _equal(old: Any, new: Any) -> bool:
    return type(old) is type(new) and type(old) in _NUMBERS and bool(old == new)
