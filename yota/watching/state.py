"""What variables, and the structures in them, hold at one moment, and whether they still hold it."""

from __future__ import annotations

import contextlib
import operator
import types
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import Derived
from yota.marks import Itself, content_of, mark_of
from yota.structures import children, flatten
from yota.tracing.places import ABSENT, content, original
from yota.watching.reach import Reach

__all__ = ["State", "differs", "fingerprint", "fingerprints", "same"]

_NUMBERS = (int, float, complex, str, bool, bytes, type(None))
_UNSTRUCTURED = (np.ndarray, *_NUMBERS, types.FunctionType, type, types.ModuleType)

_made_of = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")

_Container = tuple[Any, tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The content of what a `Reach` found.

    Parameters
    ----------
    cells, held
        Variables of functions around, by cell and name, and what each held.
    places, values
        Global variables and attributes, and what each held.
    defaults
        Default values of parameters.
    functions
        Functions, with their code and default values.
    looks, found
        Attributes by object and name, and what each was.
    sizes
        Mappings, with the number of their items.
    containers
        Lists and dicts, with their keys and items.
    others
        Structures of other kinds, with the marks of their parts.
    fingerprints
        The marks of the parts of all structures that variables held.
    """

    cells: Sequence[tuple[types.CellType, str]]
    held: Sequence[Any]
    places: Sequence[tuple[Mapping[str, Any], str]]
    values: Sequence[Any]
    defaults: Sequence[Any]
    functions: Sequence[tuple[types.FunctionType, tuple[Any, ...]]]
    looks: Sequence[tuple[Any, str]]
    found: Sequence[Any]
    sizes: Sequence[tuple[Mapping[str, Any], int]]
    containers: Sequence[_Container]
    others: Sequence[tuple[Any, Any]]
    fingerprints: Sequence[Any]

    @classmethod
    def now(cls, reach: Reach) -> State:
        """The present content of all that is reached."""
        cells, places, defaults, looks = list(reach.cells), list(reach.places), list(reach.defaults), list(reach.looks)
        # Another thread may trace a function now.
        held = [original(content(cell)) for cell, _ in cells]
        values = [original(names.get(name, ABSENT)) for names, name in places]
        return cls(
            cells,
            held,
            places,
            values,
            defaults,
            [(function, tuple(map(original, _made_of(function)))) for function in list(reach.functions)],
            looks,
            [original(getattr(value, name, ABSENT)) for value, name in looks],
            [(names, len(names)) for names in reach.sizes],
            list(map(_contents, reach.containers)),
            [(value, fingerprint(value)) for value in reach.others],
            fingerprints([*held, *values, *defaults]),
        )

    def data(self) -> list[Any]:
        """All that was held, and the default values."""
        return [*self.held, *self.values, *self.defaults]

    def owned(self) -> Iterator[Any]:
        """The parts of what the functions have of their own."""
        for value in (*self.held, *self.defaults):
            with contextlib.suppress(ArgumentError):  # it contains itself
                yield from (part for _, part in flatten(value))

    def beside(self, known: State, stored: frozenset[str], *, writes: bool) -> State:
        """The same, with what ``known`` says of all that a function has not written itself.

        Parameters
        ----------
        known
            The state before the function ran.
        stored
            Names of variables and attributes that the function binds.
        writes
            Whether it may write items of lists, dicts and sets.
        """
        before = {id(each[0]): each for each in (*known.functions, *known.sizes, *known.containers, *known.others)}

        def unless(own: bool, each: Any) -> Any:
            return each if own else before.get(id(each[0]), each)

        made_of = not stored.isdisjoint(("__code__", "__defaults__", "__kwdefaults__"))
        return replace(
            self,
            held=_mixed(self.cells, self.held, known.cells, known.held, stored),
            values=_mixed(self.places, self.values, known.places, known.values, stored),
            found=_mixed(self.looks, self.found, known.looks, known.found, stored),
            functions=[unless(made_of, each) for each in self.functions],
            sizes=[unless(not stored.isdisjoint(each[0]), each) for each in self.sizes],
            containers=[
                each if writes else _with_stored(before.get(id(each[0]), each), each, stored)
                for each in self.containers
            ],
            others=[unless(writes, each) for each in self.others],
        )

    def holds(self) -> bool:
        """Whether everything is the object that it was, but for what traces have put there."""
        return (
            all(original(content(cell)) is held for (cell, _), held in zip(self.cells, self.held, strict=True))
            and all(
                original(names.get(name, ABSENT)) is value
                for (names, name), value in zip(self.places, self.values, strict=True)
            )
            and all(
                all(map(operator.is_, map(original, _made_of(function)), known)) for function, known in self.functions
            )
            and all(
                original(getattr(value, name, ABSENT)) is found
                for (value, name), found in zip(self.looks, self.found, strict=True)
            )
            and all(len(names) == size for names, size in self.sizes)
            and not any(map(differs, self.containers))
            and all(fingerprint(value) == known for value, known in self.others)
        )

    def equals(self, other: State) -> bool:
        """Whether another moment's content is the same: numbers by value, other objects by identity."""
        return (
            same([*self.held, *self.values], [*other.held, *other.values])
            and same(self.found, other.found)
            and same([known for _, known in self.functions], [known for _, known in other.functions])
            and [size for _, size in self.sizes] == [size for _, size in other.sizes]
            and all(map(_same_items, self.containers, other.containers))
            and self.fingerprints == other.fingerprints
        )


def _mixed(
    places: Sequence[tuple[Any, str]],
    values: Sequence[Any],
    known: Sequence[tuple[Any, str]],
    known_values: Sequence[Any],
    stored: frozenset[str],
) -> list[Any]:
    """What places hold: as was known, but for the names that are stored."""
    before = {(id(owner), name): value for (owner, name), value in zip(known, known_values, strict=True)}
    return [
        value if name in stored else before.get((id(owner), name), value)
        for (owner, name), value in zip(places, values, strict=True)
    ]


def _with_stored(known: _Container, now: _Container, stored: frozenset[str]) -> _Container:
    """A container as was known, but for the keys of a dict that are stored."""
    container, keys, items = now
    before = dict(zip(*known[1:], strict=True)) if isinstance(container, dict) else {}
    if stored.isdisjoint(keys) or not stored.issuperset(before.keys() ^ set(keys)):
        return known
    found = tuple(value if key in stored else before[key] for key, value in zip(keys, items, strict=True))
    return container, keys, found


def fingerprints(values: Iterable[Any]) -> list[Any]:
    """The marks of the parts of each structure among ``values``."""
    return [fingerprint(value) for value in values if _is_structure(value)]


def same(some: Sequence[Any], others: Sequence[Any], known: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Whether values are the same: numbers by value, structures by what is in them, other objects by identity.

    ``known`` are functions that are being compared, of which one may know itself or another.
    """
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(_is_same(one, other, known) for one, other in pairs)


def _is_same(one: Any, other: Any, known: frozenset[tuple[int, int]]) -> bool:
    if one is other or (id(one), id(other)) in known:
        return True
    if type(one) in _NUMBERS:
        return mark_of(one) == mark_of(other)
    if type(one) is types.FunctionType:
        return type(other) is types.FunctionType and _is_same_function(one, other, known)
    if isinstance(one, Derived):
        return isinstance(other, Derived) and _is_made_the_same(one, other, known)
    return type(one) is type(other) and _is_structure(one) and fingerprint(one) == fingerprint(other)


def _is_same_function(one: types.FunctionType, other: types.FunctionType, known: frozenset[tuple[int, int]]) -> bool:
    """Whether two functions have the same code, and what it reads is the same, as of lambdas that are made anew."""
    if one.__code__ is not other.__code__ or one.__globals__ is not other.__globals__ or vars(one) or vars(other):
        return False
    some = [*map(content, one.__closure__ or ()), one.__defaults__, one.__kwdefaults__]
    others = [*map(content, other.__closure__ or ()), other.__defaults__, other.__kwdefaults__]
    return same(some, others, known | {(id(one), id(other))})


def _is_made_the_same(one: Derived, other: Derived, known: frozenset[tuple[int, int]]) -> bool:
    """Whether two callables were made by the same call, of functions that are the same."""
    make, (function, *rest), options = one.recipe
    other_make, (other_function, *others), other_options = other.recipe
    marks = mark_of((*rest, *options.items())), mark_of((*others, *other_options.items()))
    return make is other_make and marks[0] == marks[1] and _is_same(function, other_function, known)


def _same_items(one: _Container, other: _Container) -> bool:
    return same(one[1], other[1]) and same(one[2], other[2])


def _is_structure(value: Any) -> bool:
    if isinstance(value, _UNSTRUCTURED):
        return False
    return children(value) is not None or content_of(value) is not None


def _contents(container: Any) -> _Container:
    if isinstance(container, dict):
        return container, tuple(container), tuple(map(original, container.values()))
    return container, (), tuple(map(original, container))


def differs(known: _Container) -> bool:
    """Whether a container has no longer the same keys and items in the same order, by identity."""
    container, keys, items = known
    if len(container) != len(items):
        return True
    present = container
    if isinstance(container, dict):
        if not all(map(operator.is_, container, keys)):
            return True
        present = container.values()
    return not all(map(operator.is_, map(original, present), items))


def fingerprint(value: Any) -> Any:
    """The marks of the parts of a structure."""
    try:
        return [(mark_of(path), _mark(part)) for path, part in flatten(value)]
    except ArgumentError:  # it contains itself
        return Itself(value)


def _mark(part: Any) -> Hashable:
    return mark_of(part) if type(part) in _NUMBERS or content_of(part) is not None else Itself(original(part))
