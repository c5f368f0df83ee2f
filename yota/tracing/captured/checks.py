"""Checks of captured data, array contents among it, as a list that generated code evaluates at each call."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.captured.snapshots import State, differs
from yota.tracing.memory import reference
from yota.tracing.patching import ABSENT

SMALL = 4096
"""Largest size of arrays that are compared as bytes, which is fastest."""


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """Arrays, by weak references, with copies of their content at the trace.

    Read-only arrays count as unchanged. So do arrays that no longer exist: the function created them itself.

    pairs: the arrays with their content.
    forms: arrays that compiled code reads at each call, with the required shape and dtype.
    """

    pairs: tuple[tuple[Callable[[], Any], Any], ...] = ()
    forms: tuple[tuple[Any, tuple[int, ...], Any], ...] = ()

    @classmethod
    def of(cls, known: Iterable[tuple[Callable[[], Any], Any]], data: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """The contents of the ``known`` arrays, and of those among ``data`` that are not read at each call.

        The function may have computed with them without a traced value.
        """
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

    @classmethod
    def now(cls, arrays: Iterable[Any], fresh: Iterable[Any]) -> Contents:
        """Checks of the arrays with content, and of those that are read at each call."""
        pairs = tuple((reference(array), array.copy()) for array in arrays)
        return cls(pairs, tuple((array, array.shape, array.dtype) for array in fresh))

    def changed(self) -> bool:
        """Whether the content, shape or dtype of an array has changed."""
        return any(array.shape != shape or array.dtype != dtype for array, shape, dtype in self.forms) or any(
            _changed(get(), content) for get, content in self.pairs
        )


def _is_fixed(array: Any) -> bool:
    """Whether neither an array nor its base can be written to; None is an array that no longer exists."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
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
    """One check.

    Parameters
    ----------
    kind
        Kind of the check:

        - ``cell``: a cell holds an object;
        - ``entry``: a dict has an object under a key; ``item``: so has a mapping of another kind;
        - ``attribute``: an object has an object as the attribute of a name; ``class``, ``bases``, ``attributes``: so
          it has as its class, its method resolution order, the dict of its attributes;
        - ``function``: a function has this code, default values, and default values of keywords;
        - ``size``: a mapping has so many items;
        - ``list``: a list has these items; ``equal_list``: the same, where equality of items says so;
        - ``dict``: a dict has these keys and items; ``equal_dict``: the same, where equality says so;
        - ``bytes``: a contiguous array has these bytes, of this shape and dtype; ``form``: this shape and dtype;
        - ``changed``: a function gives whether there was a change.
    values
        What is looked at, and what it must be, in the order of these words. Where the last value of a cell, a
        mapping or an object is left out, there is nothing.
    """

    kind: str
    values: tuple[Any, ...]


def checks(state: State, contents: Iterable[Contents]) -> list[Check]:
    """Checks that variables and array contents are unchanged."""
    return [*_of_state(state), *(check for each in contents for check in _of_contents(each))]


def _of_state(state: State) -> Iterator[Check]:
    for place, value in zip(state.places, state.values, strict=True):
        kind, owner, name = place
        if kind == "size":
            yield Check(kind, (owner, value))
        elif kind == "function":
            yield Check(kind, (owner, *value))
        elif kind == "items" and type(owner) is list:
            yield Check("equal_list" if _says_same(value[1]) else "list", (owner, list(value[1])))
        elif kind == "items" and type(owner) is dict:
            plain = all(type(key) is str for key in value[0]) and _says_same(value[1])
            yield Check("equal_dict" if plain else "dict", (owner, *map(list, value)))
        elif kind in ("items", "parts"):
            yield Check("changed", (functools.partial(differs, place, value),))
        else:
            held = () if value is ABSENT else (value,)
            if kind == "attribute" and held and name in _NAMES:
                yield Check(_NAMES[name], (owner, value))
            elif kind == "cell":
                yield Check(kind, (owner, *held))
            else:
                yield Check("item" if kind == "entry" and type(owner) is not dict else kind, (owner, name, *held))


def _of_contents(contents: Contents) -> Iterator[Check]:
    others = []
    for get, content in contents.pairs:
        array = get()
        if array is None:
            continue
        if array.nbytes <= SMALL and array.flags.c_contiguous and not array.dtype.hasobject:
            yield Check("bytes", (array, content.shape, content.dtype, content.tobytes()))
        else:
            others.append((get, content))
    if others:
        yield Check("changed", (Contents(tuple(others)).changed,))
    for array, shape, dtype in contents.forms:
        yield Check("form", (array, shape, dtype))


def _says_same(items: Iterable[Any]) -> bool:
    """Whether ``==`` of lists of such items implies identical items; comparing two arrays raises."""
    return all(_is_plain(item) for item in items)


def _is_plain(item: Any) -> bool:
    if type(item) is np.ndarray:
        return bool(item.size > 1) and not item.dtype.hasobject
    plain: tuple[Callable[..., Any] | type, ...] = (str, type(None), types.FunctionType, types.ModuleType)
    return type(item) in plain or type(item) is type
