"""The content of tracked variables and structures at one moment, and its comparison with a later one."""

from __future__ import annotations

import contextlib
import operator
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import Derived
from yota.marks import Itself, content_of, mark_of
from yota.structures import children, flatten
from yota.tracing.captured.reach import Reach
from yota.tracing.patching import ABSENT, content, original

_NUMBERS = (int, float, complex, str, bool, bytes, type(None))
_UNSTRUCTURED = (np.ndarray, *_NUMBERS, types.FunctionType, type, types.ModuleType)

_made_of = operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
_bound = operator.attrgetter("__func__", "__self__")


def _items(container: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The keys of a dict, and the items of a dict or list."""
    if isinstance(container, dict):
        # Iteration over a sparse matrix that is a dict gives its rows.
        return tuple(container.keys()), tuple(map(original, container.values()))
    return (), tuple(map(original, container))


# A recording function of another thread's trace stands for the original.
_READ: dict[str, Callable[[Any, str], Any]] = {
    "cell": lambda cell, _: original(content(cell)),
    "entry": lambda names, name: original(names.get(name, ABSENT)),
    "attribute": lambda owner, name: original(getattr(owner, name, ABSENT)),
    "function": lambda function, _: tuple(map(original, _made_of(function))),
    "size": lambda names, _: len(names),
    "items": lambda container, _: _items(container),
    "parts": lambda value, _: fingerprint(value),
}
"""Readers of places by their kinds."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The content of the places of a `Reach`.

    places, values: the places of `Reach`, and their values.
    fingerprints: marks of the parts of all structures in variables.
    """

    places: Sequence[tuple[str, Any, str]]
    values: Sequence[Any]
    defaults: Sequence[Any]
    fingerprints: Sequence[Any]

    @classmethod
    def now(cls, reach: Reach) -> State:
        """The present content of all places."""
        found = cls(places := list(reach.places), list(map(_held, places)), list(reach.defaults), ())
        return replace(found, fingerprints=fingerprints(found.data()))

    def variables(self) -> list[tuple[str, Any, str, Any]]:
        """The places of variables and attributes by name, with their values."""
        pairs = zip(self.places, self.values, strict=True)
        return [(*place, value) for place, value in pairs if place[0] in ("cell", "entry")]

    def data(self) -> list[Any]:
        """Values of variables, and defaults."""
        return [*(value for *_, value in self.variables()), *self.defaults]

    def owned(self) -> Iterator[Any]:
        """Parts of the functions' own data."""
        for value in (*(value for kind, *_, value in self.variables() if kind == "cell"), *self.defaults):
            with contextlib.suppress(ArgumentError):  # it contains itself
                yield from (part for _, part in flatten(value))

    def merged_with(self, known: State, stored: frozenset[str], *, writes: bool) -> State:
        """A copy of this state with values of ``known`` for all that the function has not written itself.

        known: the state before the function ran.
        stored: names of variables and attributes that the function binds.
        writes: whether it may write items of lists, dicts and sets.
        """
        before = {
            (kind, id(owner), name): value
            for (kind, owner, name), value in zip(known.places, known.values, strict=True)
        }
        made_of = not stored.isdisjoint(("__code__", "__defaults__", "__kwdefaults__"))
        values = []
        for (kind, owner, name), now in zip(self.places, self.values, strict=True):
            own = name in stored
            if kind in ("items", "parts"):
                own = writes
            elif kind in ("function", "size"):
                own = made_of if kind == "function" else not stored.isdisjoint(owner)
            value = before.get((kind, id(owner), name), now)
            values.append(now if own else _with_stored(value, now, stored) if kind == "items" else value)
        return replace(self, values=values)

    def holds(self) -> bool:
        """Whether all places have the same objects, apart from recording functions of traces."""
        return not any(map(differs, self.places, self.values))

    def equals(self, other: State, most: int | None = None) -> bool:
        """Whether the first places have equal content: numbers by value, other objects by identity."""
        pairs = zip(self.places[:most], self.values, other.values, strict=False)
        return len(self.places[:most]) == len(other.places[:most]) and all(
            _equal(kind, one, another) for (kind, *_), one, another in pairs
        )


def _held(place: tuple[str, Any, str]) -> Any:
    kind, owner, name = place
    return _READ[kind](owner, name)


def differs(place: tuple[str, Any, str], known: Any) -> bool:
    """Whether a place has other objects now."""
    kind, now = place[0], _held(place)
    if kind == "items":
        return not (_are(now[0], known[0]) and _are(now[1], known[1]))
    if kind == "function":
        return not _are(now, known)
    return bool(now != known) if kind in ("size", "parts") else now is not known


def _are(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _equal(kind: str, one: Any, other: Any) -> bool:
    if kind in ("size", "parts"):
        return bool(one == other)
    if kind == "items":
        return same(one[0], other[0]) and same(one[1], other[1])
    return same([one], [other])


def _with_stored(known: Any, now: Any, stored: frozenset[str]) -> Any:
    """The items of a container as known, except stored dict keys."""
    keys, items = now
    before = dict(zip(*known, strict=True)) if keys else {}
    if stored.isdisjoint(keys) or not stored.issuperset(before.keys() ^ set(keys)):
        return known
    return keys, tuple(value if key in stored else before[key] for key, value in zip(keys, items, strict=True))


def fingerprints(values: Iterable[Any]) -> list[Any]:
    """Marks of the parts of each structure among ``values``."""
    return [fingerprint(value) for value in values if _is_structure(value)]


def same(some: Sequence[Any], others: Sequence[Any], known: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Whether values are equal: numbers by value, structures by content, other objects by identity.

    ``known`` are pairs of functions that are being compared, which may refer to each other.
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
    if type(one) is types.MethodType:
        # Each attribute access creates a new bound method.
        return type(other) is types.MethodType and same(_bound(one), _bound(other), known)
    if isinstance(one, Derived):
        return isinstance(other, Derived) and _is_made_the_same(one, other, known)
    return type(one) is type(other) and _is_structure(one) and fingerprint(one) == fingerprint(other)


def _is_same_function(one: types.FunctionType, other: types.FunctionType, known: frozenset[tuple[int, int]]) -> bool:
    """Whether two functions have equal code and read equal data, such as lambdas that are created again."""
    if one.__code__ is not other.__code__ or one.__globals__ is not other.__globals__ or vars(one) or vars(other):
        return False
    some = [*map(content, one.__closure__ or ()), one.__defaults__, one.__kwdefaults__]
    others = [*map(content, other.__closure__ or ()), other.__defaults__, other.__kwdefaults__]
    return same(some, others, known | {(id(one), id(other))})


def _is_made_the_same(one: Derived, other: Derived, known: frozenset[tuple[int, int]]) -> bool:
    """Whether two callables come from the same call with equal functions."""
    make, (function, *rest), options = one.recipe
    other_make, (other_function, *others), other_options = other.recipe
    marks = mark_of((*rest, *options.items())), mark_of((*others, *other_options.items()))
    return make is other_make and marks[0] == marks[1] and _is_same(function, other_function, known)


def _is_structure(value: Any) -> bool:
    if isinstance(value, _UNSTRUCTURED):
        return False
    return children(value) is not None or content_of(value) is not None


def fingerprint(value: Any) -> Any:
    """Marks of the parts of a structure."""
    try:
        return [(mark_of(path), _mark(part)) for path, part in flatten(value)]
    except ArgumentError:  # it contains itself
        return Itself(value)


def _mark(part: Any) -> Hashable:
    return mark_of(part) if type(part) in _NUMBERS or content_of(part) is not None else Itself(original(part))
