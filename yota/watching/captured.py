"""Noticing that what a function reads besides its arguments has changed, so that no compiled code outlives it."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.marks import Itself, content_of, mark_of
from yota.structures import children, flatten
from yota.tracing.memory import owner_of
from yota.tracing.randomness import is_generator
from yota.tracing.record import Surroundings
from yota.watching.afresh import Observed
from yota.watching.reach import ABSENT, Reach, content

__all__ = ["Captured"]

_NUMBERS = (int, float, complex, str, bool, bytes, type(None))
_CONTENT = operator.attrgetter("cell_contents")
_UNSTRUCTURED = (np.ndarray, *_NUMBERS, types.FunctionType, type, types.ModuleType)


class Captured:
    """The data in closures, global variables, modules and classes that a function, and what it calls, reads.

    Numbers are compared by value, other objects by identity, structures by that of their parts. The content
    of arrays is not compared here: compiled code reads them afresh, or watches them; see `yota.compilation.specialise`.
    """

    __slots__ = (
        "_cells",
        "_containers",
        "_filled",
        "_held",
        "_later",
        "_own",
        "_places",
        "_reach",
        "_read",
        "_structures",
        "_values",
    )

    def __init__(self, function: Callable[..., Any]) -> None:
        self._reach = Reach()
        self._reach.take([function])
        self._later: list[Any] = []
        self._cells: list[types.CellType] = []
        self._held: list[Any] = []
        self._filled: list[tuple[types.CellType, Any]] = []
        self._read: list[tuple[Callable[..., Any], str, Any]] = []
        self._places: list[tuple[Mapping[str, Any], str]] = []
        self._values: list[Any] = []
        self._structures: list[tuple[Any, Any]] = []
        self._containers: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] | None = []
        self.settle()
        self._own = len(self._cells), len(self._places), len(self._reach.codes), len(self._reach.defaults)

    def take(self, roots: Iterable[Any]) -> None:
        """Watch what ``roots`` read too, from the next time on that the present state is taken to count."""
        found = list(roots)
        self._later += found
        self._reach.take(found)

    def adopt(self, other: Captured) -> None:
        """Watch what ``other``, with which this one agrees, came to watch later."""
        self.take(other._later)
        self.settle()

    def __bool__(self) -> bool:
        return bool(self._cells or self._places or self._structures)

    def settle(self) -> None:
        """Let the present state count."""
        self._cells, self._places = list(self._reach.cells), list(self._reach.places)
        self._held = list(map(content, self._cells))
        self._values = [names.get(name, ABSENT) for names, name in self._places]
        self._filled = [(cell, held) for cell, held in zip(self._cells, self._held, strict=True) if held is not ABSENT]
        self._read = [(names.get, name, value) for (names, name), value in zip(self._places, self._values, strict=True)]
        self._structures = _structures([*self._held, *self._values, *self._reach.defaults])
        self._containers = _containers([value for value, _ in self._structures])

    def parts(self) -> list[Any]:
        """The captured data, and what its structures are made of."""
        found = [*self._held, *self._values, *self._reach.defaults]
        for _, fingerprint in self._structures:
            if type(fingerprint) is list:
                found += [part.value for _, part in fingerprint if type(part) is Itself]
        return found

    def read_afresh(self, inputs: Iterable[Any], observed: Observed) -> list[Any]:
        """The captured arrays of which the functions take nothing but what compiled code reads, as its ``inputs``."""
        named = [*zip(self._reach.cell_names, self._held, strict=True)]
        named += [(name, value) for (_, name), value in zip(self._places, self._values, strict=True)]
        elsewhere = {id(part) for part in self.parts()[len(named) :]}
        owners = {id(owner_of(each)) for each in inputs}
        found: list[Any] = []
        for _, array in named:
            if issubclass(type(array), np.ndarray) and id(owner_of(array)) in owners and id(array) not in elsewhere:
                names = dict.fromkeys(name for name, value in named if value is array)
                if observed.reads_afresh(array, names, self._reach.codes):
                    found.append(array)
        return found

    def surroundings(self, arguments: Iterable[Any] = ()) -> Surroundings:
        """What tracing has to know of the captured data, and of what the ``arguments`` hold besides numbers."""
        parts = [*self.parts(), *(part for _, part in flatten(tuple(arguments)))]
        variables = [(names, name) for names, name in self._places if type(names) is dict]
        generators = list(filter(is_generator, parts))
        return Surroundings(generators, list(self._reach.asking.values()), variables, self._cells)

    def identities(self) -> tuple[tuple[Any, ...], ...] | None:
        """``(cell, object)``, ``(dict, key, object)`` and, for what must not be there, ``(dict, key)``.

        While all are as listed, nothing has changed. None where that takes more than a look at identities.
        """
        cells = tuple(zip(self._cells, self._held, strict=True))
        places = [
            (names, name) if value is ABSENT else (names, name, value)
            for (names, name), value in zip(self._places, self._values, strict=True)
        ]
        unfilled = any(value is ABSENT for _, value in cells)
        if self._structures or unfilled or any(type(names) is not dict for names, *_ in places):
            return None
        return (*cells, *places)

    def held(self) -> tuple[tuple[Callable[[Any], Any], Any, Any], ...] | None:
        """``(get, key, object)`` for each variable read: while ``get(key) is object`` for all, nothing has changed.

        ``get`` raises ValueError for a variable of a closure that was deleted. None where that does not say all.
        """
        # `dict.get` gives None for a variable that is not there.
        vague = any(value is ABSENT or value is None for value in self._values) or len(self._filled) < len(self._held)
        other = any(type(names) is not dict for names, _ in self._places)
        if vague or other or self._structures:
            return None
        return (*((_CONTENT, cell, held) for cell, held in self._filled), *self._read)

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured the same, as a lambda does that is made anew."""
        cells, places, codes, defaults = other._own
        values = [*self._held[:cells], *self._values[:places]]
        values += self._reach.defaults[:defaults]
        return (
            self._own == other._own
            and all(a is b for a, b in zip(self._reach.codes[:codes], other._reach.codes, strict=True))
            and _same(values, [*other._held, *other._values, *other._reach.defaults])
            and _structures(values) == other._structures
            and not self.changed()
        )

    def changed(self) -> bool:
        """Whether anything was rebound since the last time; from now on the present state counts."""
        # Identity first, by plain loops: this runs ahead of every call of a compiled function.
        try:
            for cell, held in self._filled:
                if cell.cell_contents is not held:
                    return self._renewed()
        except ValueError:  # the variable was deleted
            return self._renewed()
        for get, name, value in self._read:
            if get(name, ABSENT) is not value:
                return self._renewed()
        if not self._structures:
            return False
        if self._containers is None:
            same = all(_fingerprint(value) == known for value, known in self._structures)
        else:
            same = all(map(_holds, self._containers))
        return not same and self._renewed()

    def _renewed(self) -> bool:
        old, before = [*self._held, *self._values], self._structures
        self.settle()
        return not (_same(old, [*self._held, *self._values]) and before == self._structures)


def _structures(values: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(value, _fingerprint(value)) for value in values if _is_structure(value)]


def _is_structure(value: Any) -> bool:
    if isinstance(value, _UNSTRUCTURED):
        return False
    return children(value) is not None or content_of(value) is not None


def _containers(values: Iterable[Any]) -> list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] | None:
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


def _holds(known: tuple[Any, tuple[Any, ...], tuple[Any, ...]]) -> bool:
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


def _same(old: list[Any], new: list[Any]) -> bool:
    return len(old) == len(new) and all(a is b or _equal(a, b) for a, b in zip(old, new, strict=True))


def _equal(old: Any, new: Any) -> bool:
    return type(old) in _NUMBERS and mark_of(old) == mark_of(new)
