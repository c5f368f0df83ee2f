"""Checks of captured data, as a list that generated code evaluates at each call."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.places import ABSENT
from yota.watching.contents import SMALL, Contents
from yota.watching.state import State, differs

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
