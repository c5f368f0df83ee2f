"""What variables, and the structures in them, hold at one moment, and whether they still hold it."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.marks import Itself, content_of, mark_of
from yota.structures import children, flatten
from yota.watching.reach import ABSENT, Reach, content

__all__ = ["State", "same", "structures"]

_NUMBERS = (int, float, complex, str, bool, bytes, type(None))
_UNSTRUCTURED = (np.ndarray, *_NUMBERS, types.FunctionType, type, types.ModuleType)

_Structures = Sequence[tuple[Any, Any]]
_Containers = Sequence[tuple[Any, tuple[Any, ...], tuple[Any, ...]]]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The content of variables.

    Parameters
    ----------
    cells, held
        Variables of functions around, and what each held.
    places, values
        Global variables and attributes, and what each held.
    defaults
        Default values of parameters.
    filled, read
        The same as ``cells`` that hold something and as ``places``, for a quick look.
    structures
        The structures among all that was held, with the marks of their parts.
    containers
        The lists and dicts that they are made of, with keys and items; None where there are other kinds.
    """

    cells: Sequence[types.CellType]
    held: Sequence[Any]
    places: Sequence[tuple[Mapping[str, Any], str]]
    values: Sequence[Any]
    defaults: Sequence[Any]
    filled: Sequence[tuple[types.CellType, Any]]
    read: Sequence[tuple[Callable[..., Any], str, Any]]
    structures: _Structures
    containers: _Containers | None

    @classmethod
    def now(cls, reach: Reach) -> State:
        """The present content of all variables that are reached."""
        cells, places, defaults = list(reach.cells), list(reach.places), list(reach.defaults)
        held = list(map(content, cells))
        values = [names.get(name, ABSENT) for names, name in places]
        filled = [(cell, value) for cell, value in zip(cells, held, strict=True) if value is not ABSENT]
        read = [(names.get, name, value) for (names, name), value in zip(places, values, strict=True)]
        found = structures([*held, *values, *defaults])
        return cls(cells, held, places, values, defaults, filled, read, found, _containers([each for each, _ in found]))

    def data(self) -> list[Any]:
        """All that was held, and the default values."""
        return [*self.held, *self.values, *self.defaults]

    def holds(self) -> bool:
        """Whether every variable, and every part of the structures, is the object that it was."""
        # By plain loops: this runs ahead of every call of a compiled function.
        try:
            for cell, held in self.filled:
                if cell.cell_contents is not held:
                    return False
        except ValueError:  # the variable was deleted
            return False
        for get, name, value in self.read:
            if get(name, ABSENT) is not value:
                return False
        if not self.structures:
            return True
        if self.containers is None:
            return all(_fingerprint(value) == known for value, known in self.structures)
        return all(map(_is_as_it_was, self.containers))

    def equals(self, other: State) -> bool:
        """Whether another moment's content is the same: numbers by value, other objects by identity."""
        mine, others = [*self.held, *self.values], [*other.held, *other.values]
        return same(mine, others) and self.structures == other.structures


def structures(values: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The structures among ``values``, with the marks of their parts."""
    return [(value, _fingerprint(value)) for value in values if _is_structure(value)]


def same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether values are the same: numbers by value, other objects by identity."""
    return len(some) == len(others) and all(a is b or _equal(a, b) for a, b in zip(some, others, strict=True))


def _equal(one: Any, other: Any) -> bool:
    return type(one) in _NUMBERS and mark_of(one) == mark_of(other)


def _is_structure(value: Any) -> bool:
    if isinstance(value, _UNSTRUCTURED):
        return False
    return children(value) is not None or content_of(value) is not None


def _containers(values: Iterable[Any]) -> _Containers | None:
    """The dicts and lists inside of structures, each with its keys and items; None where there are other kinds.

    While all hold the same objects, the structures cannot have changed.
    """
    found: dict[int, tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = {}
    pending = list(values)
    while pending:
        value = pending.pop()
        if id(value) in found or isinstance(value, _UNSTRUCTURED):
            continue
        parts = children(value)
        if parts is None:
            if content_of(value) is not None:
                return None
            continue
        if type(value) is dict:
            found[id(value)] = value, tuple(value), tuple(value.values())
        elif type(value) is list:
            found[id(value)] = value, (), tuple(value)
        elif type(value) is not tuple:
            own = getattr(value, "__dict__", None)
            if type(own) is not dict or len(own) != len(parts):
                return None
            found[id(value)] = own, tuple(own), tuple(own.values())
        pending += [part for _, part in parts]
    return list(found.values())


def _is_as_it_was(known: tuple[Any, tuple[Any, ...], tuple[Any, ...]]) -> bool:
    """Whether a container still has the same keys and items, by identity."""
    container, keys, items = known
    if len(container) != len(items):
        return False
    if keys:
        return all(map(operator.is_, container, keys)) and all(map(operator.is_, container.values(), items))
    return all(map(operator.is_, container, items))


def _fingerprint(value: Any) -> Any:
    try:
        return [(mark_of(path), _mark(part)) for path, part in flatten(value)]
    except ArgumentError:  # it contains itself
        return Itself(value)


def _mark(part: Any) -> Hashable:
    return mark_of(part) if type(part) in _NUMBERS or content_of(part) is not None else Itself(part)
