"""The content of tracked variables at one moment, and checks of it, array contents among it, for generated code."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.callables import Derived
from yota.marks import Itself, content_of, mark_of
from yota.structures import children, flatten
from yota.tracing.captured.reach import Reach
from yota.tracing.memory import reference
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


_NEWEST = 64
"""Results of a cache that are watched."""


def _results(cached: Any) -> dict[Any, Any]:
    """The dict in which a function of `functools.lru_cache` keeps its results."""
    own = vars(cached)
    # The results, which may be dicts too, come before it.
    return [{}, *(each for each in gc.get_referents(cached) if type(each) is dict and each is not own)][-1]


def _are_kept(known: dict[Any, Any], now: dict[Any, Any]) -> bool:
    """Whether a cache still has the results that it had; others may have come since."""
    return all(now.get(key, ABSENT) is result for key, result in known.items())


# A recording function of another thread's trace stands for the original.
_READ: dict[str, Callable[[Any, str], Any]] = {
    "cell": lambda cell, _: original(content(cell)),
    "entry": lambda names, name: original(names.get(name, ABSENT)),
    "table": lambda names, name: names.get(name, ABSENT),
    "attribute": lambda owner, name: original(getattr(owner, name, ABSENT)),
    "function": lambda function, _: tuple(map(original, _made_of(function))),
    "size": lambda names, _: len(names),
    "items": lambda container, _: _items(container),
    "cached": lambda cached, _: dict(itertools.islice(reversed(_results(cached).items()), _NEWEST)),
    "parts": lambda value, _: fingerprint(value),
}
"""Readers of dependencies by their kinds."""


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The values of the dependencies of a `Reach`, and the fingerprints of all structures in variables."""

    dependencies: Sequence[tuple[str, Any, str]]
    values: Sequence[Any]
    defaults: Sequence[Any]
    fingerprints: Sequence[Any]

    @classmethod
    def now(cls, reach: Reach) -> State:
        """The present content of all dependencies."""
        known: dict[int, tuple[Any, Any]] = {}
        dependencies = list(reach.dependencies)
        values = [fingerprint(each[1], known) if each[0] == "parts" else _held(each) for each in dependencies]
        found = cls(dependencies, values, list(reach.defaults), ())
        return replace(found, fingerprints=[fingerprint(each, known) for each in found.data() if _is_structure(each)])

    def variables(self) -> list[tuple[str, Any, str, Any]]:
        """The dependencies of variables and attributes by name, with their values."""
        pairs = zip(self.dependencies, self.values, strict=True)
        return [(*dependency, value) for dependency, value in pairs if dependency[0] in ("cell", "entry")]

    def data(self) -> list[Any]:
        """Values of variables, and defaults."""
        return [*(value for *_, value in self.variables()), *self.defaults]

    def owned(self) -> Iterator[Any]:
        """Parts of the functions' own data."""
        for value in (*(value for kind, *_, value in self.variables() if kind == "cell"), *self.defaults):
            with contextlib.suppress(ArgumentError):  # it contains itself
                yield from (part for _, part in flatten(value))

    def merged_with(self, known: State, stored: frozenset[str], *, writes: bool) -> State:
        """A copy with values of ``known`` for all but the names ``stored`` and what the function ``writes``."""
        before = {
            (kind, id(owner), name): value
            for (kind, owner, name), value in zip(known.dependencies, known.values, strict=True)
        }
        made_of = not stored.isdisjoint(("__code__", "__defaults__", "__kwdefaults__"))
        values = []
        for (kind, owner, name), now in zip(self.dependencies, self.values, strict=True):
            own = name in stored or kind == "cached"
            if kind in ("items", "parts"):
                own = writes
            elif kind in ("function", "size"):
                own = made_of if kind == "function" else not stored.isdisjoint(owner)
            value = before.get((kind, id(owner), name), now)
            values.append(now if own else _with_stored(value, now, stored) if kind == "items" else value)
        return replace(self, values=values)

    def holds(self) -> bool:
        """Whether all dependencies have the same objects, apart from recording functions of traces."""
        return not any(map(differs, self.dependencies, self.values))

    def equals(self, other: State, most: int | None = None) -> bool:
        """Whether the first dependencies have equal content: numbers by value, other objects by identity."""
        pairs = zip(self.dependencies[:most], self.values, other.values, strict=False)
        return len(self.dependencies[:most]) == len(other.dependencies[:most]) and all(
            _equal(kind, one, another) for (kind, *_), one, another in pairs
        )


def _held(dependency: tuple[str, Any, str]) -> Any:
    kind, owner, name = dependency
    return _READ[kind](owner, name)


def differs(dependency: tuple[str, Any, str], known: Any) -> bool:
    """Whether a dependency has other objects now."""
    if dependency[0] == "cached":
        return not _are_kept(known, _results(dependency[1]))
    kind, now = dependency[0], _held(dependency)
    if kind == "items":
        return not (_are(now[0], known[0]) and _are(now[1], known[1]))
    if kind == "function":
        return not _are(now, known)
    return bool(now != known) if kind in ("size", "parts") else now is not known


def _are(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _equal(kind: str, one: Any, other: Any) -> bool:
    if kind == "cached":
        return _are_kept(other, one)
    if kind in ("size", "parts"):
        return bool(one == other)
    if kind == "table":
        return one is other
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


def same(some: Sequence[Any], others: Sequence[Any], known: frozenset[tuple[int, int]] = frozenset()) -> bool:
    """Whether values are equal: numbers by value, structures by content, other objects by identity."""
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


class Fingerprint(tuple[Any, ...]):
    """The marks of a structure's parts by their keys; of parts that are structures, such fingerprints."""

    __slots__ = ()

    def objects(self, known: set[int]) -> Iterator[Any]:
        """The parts that are compared by identity; ``known`` are fingerprints that were asked before."""
        known.add(id(self))
        for _, mark in self:
            if type(mark) is Itself:
                yield mark.value
            elif type(mark) is Fingerprint and id(mark) not in known:
                yield from mark.objects(known)


def fingerprint(value: Any, known: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """The fingerprint of a structure, or the mark of something else; ``known`` are fingerprints made before."""
    if type(value) in _NUMBERS or content_of(value) is not None:
        return mark_of(value)
    parts = children(value)
    if parts is None:
        return Itself(original(value))
    known = {} if known is None else known
    if id(value) not in known:
        known[id(value)] = value, Itself(value)  # as long as it is not complete: it may contain itself
        found = Fingerprint((mark_of(key), fingerprint(part, known)) for key, part in parts)
        known[id(value)] = value, found
    return known[id(value)][1]


SMALL = 4096
"""Largest size of arrays that are compared as bytes, which is fastest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Arrays with copies of their content at the trace; those that are read-only or no longer exist count as unchanged.

    forms: arrays that compiled code reads at each call, with the required shape and dtype.
    """

    pairs: tuple[tuple[Callable[[], Any], Any], ...] = ()
    forms: tuple[tuple[Any, tuple[int, ...], Any], ...] = ()

    @classmethod
    def of(cls, known: Iterable[tuple[Callable[[], Any], Any]], data: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """The contents of the ``known`` arrays, and of those among ``data`` that are not read at each call."""
        pairs = list(known)
        others = [*fresh, *(get() for get, _ in pairs)]
        for each in data:
            # The check uses the real type: a traced value that was left in a list reports the class of an array.
            if issubclass(type(each), np.ndarray) and not any(each is other for other in others):
                others.append(each)
                # A subclass may override `tobytes`.
                plain = each if type(each) is np.ndarray else np.ndarray.view(each, np.ndarray)
                pairs.append((reference(plain), plain.copy()))
        del others
        forms = tuple((array, array.shape, array.dtype) for array in fresh)
        return cls(tuple((get, content) for get, content in pairs if not _is_fixed(get())), forms)

    def changed(self) -> bool:
        """Whether the content, shape or dtype of an array has changed."""
        return any(array.shape != shape or array.dtype != dtype for array, shape, dtype in self.forms) or any(
            _changed(get(), content) for get, content in self.pairs
        )


def _is_fixed(array: Any) -> bool:
    """Whether neither an array nor its base can be written to; None is an array that no longer exists."""
    while isinstance(array, np.ndarray):
        # The flag itself warns about what `np.broadcast_arrays` gives.
        if not array.__array_interface__["data"][1]:
            return False
        array = array.base
    return array is None


def _changed(array: Any, content: Any) -> bool:
    """Whether the bits differ; a NaN equals itself."""
    if array is None:
        return False
    if array.shape != content.shape or array.dtype != content.dtype:
        return True
    if array.nbytes <= SMALL or array.dtype.hasobject:
        return bool(array.tobytes() != content.tobytes())
    word = np.int64 if array.nbytes % 8 == 0 else np.int8
    present, former = (np.ascontiguousarray(each).reshape(-1).view(word) for each in (array, content))
    return not np.array_equal(present, former)


_NAMES = {"__class__": "class", "__mro__": "bases", "__dict__": "attributes"}


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One check. Its values are an object, and what it must be; nothing is left out where there must be nothing.

    kind: kind of the check:

    - ``cell``, ``entry`` of a dict, ``item`` of another mapping, ``attribute``: what it holds;
    - ``class``, ``bases``, ``attributes``: its class, method resolution order, and dict of attributes;
    - ``function``: code, default values, and default values of keywords; ``size``: the number of items;
    - ``list``, ``dict``: the same items; ``equal_list``, ``equal_dict``: the same, where equality of items says so;
    - ``bytes``: a contiguous array's bytes, shape and dtype; ``form``: shape and dtype;
    - ``changed``: a function gives whether there was a change.
    """

    kind: str
    values: tuple[Any, ...]


def checks(state: State, contents: Iterable[Contents]) -> list[Check]:
    """Checks that variables and array contents are unchanged."""
    return [*_of_state(state), *(check for each in contents for check in _of_contents(each))]


def _of_state(state: State) -> Iterator[Check]:
    for dependency, value in zip(state.dependencies, state.values, strict=True):
        kind, owner, name = dependency
        if kind == "size":
            yield Check(kind, (owner, value))
        elif kind == "function":
            yield Check(kind, (owner, *value))
        elif kind == "items" and type(owner) is list:
            yield Check("equal_list" if _says_same(value[1]) else "list", (owner, list(value[1])))
        elif kind == "items" and type(owner) is dict:
            plain = all(type(key) is str for key in value[0]) and _says_same(value[1])
            yield Check("equal_dict" if plain else "dict", (owner, *map(list, value)))
        elif kind in ("items", "cached", "parts"):
            yield Check("changed", (functools.partial(differs, dependency, value),))
        else:
            held = () if value is ABSENT else (value,)
            # A dispatcher reports the class of what it calls.
            if kind == "attribute" and held and name in _NAMES and (name != "__class__" or type(owner) is value):
                yield Check(_NAMES[name], (owner, value))
            elif kind == "cell":
                yield Check(kind, (owner, *held))
            else:
                known = kind if kind == "attribute" else "entry" if type(owner) is dict else "item"
                yield Check(known, (owner, name, *held))


def _of_contents(contents: Contents) -> Iterator[Check]:
    others = []
    for get, known in contents.pairs:
        array = get()
        if array is None:
            continue
        if array.nbytes <= SMALL and array.flags.c_contiguous and not array.dtype.hasobject:
            yield Check("bytes", (array, known.shape, known.dtype, known.tobytes()))
        else:
            others.append((get, known))
    if others:
        yield Check("changed", (Contents(tuple(others)).changed,))
    for array, shape, dtype in contents.forms:
        yield Check("form", (array, shape, dtype))


def _says_same(items: Iterable[Any]) -> bool:
    """Whether ``==`` of lists of such items implies identical items; comparing two arrays raises."""
    plain: tuple[Any, ...] = (str, type(None), types.FunctionType, types.ModuleType, type)
    return all(
        item.size > 1 and not item.dtype.hasobject if type(item) is np.ndarray else type(item) in plain
        for item in items
    )
