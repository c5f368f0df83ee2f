"""Places that hold functions, such as variables and attributes: what traces put there for a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any, TypeAlias

__all__ = ["ABSENT", "Place", "held_at", "hold", "original", "release"]

ABSENT: Any = object()
"""What a place holds that is empty."""
Owner: TypeAlias = "dict[Any, Any] | list[Any] | type | CellType | FunctionType"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One place, and what stands there while a trace runs.

    Parameters
    ----------
    owner, name
        A dictionary and a key of it, which a module's or an object's variables are too; a list and a position; a
        class, cell or function and an attribute.
    original
        What the place holds; `ABSENT` if it is empty.
    form
        What it holds while a trace runs.
    """

    owner: Owner
    name: Any
    original: Any
    form: Any


_lock = threading.RLock()
_held: dict[tuple[int, Any], tuple[Place, int]] = {}
"""The places that hold other values now, each with the number of traces that need it so."""
_originals: dict[int, tuple[Any, Any]] = {}
"""By the identity of what stands in places now, that itself and what it stands for."""


def held_at(owner: Owner, name: Any) -> Place | None:
    """What a trace has put into a place, if one has."""
    found = _held.get((id(owner), name))
    return None if found is None else found[0]


def hold(places: Iterable[Place]) -> None:
    """Put the forms into their places; the first of several traces, nested or in other threads, does it for all."""
    with _lock:
        for place in places:
            key = id(place.owner), place.name
            known, count = _held.get(key, (place, 0))
            # What a place holds now may be other than what its form stands for, where the user has put it there.
            if not count and _read(place) is place.original:
                _originals[id(place.form)] = place.form, place.original
                _write(place, place.form)
            _held[key] = known, count + 1


def release(places: Iterable[Place]) -> None:
    """Undo `hold`; what the user has put into a place meanwhile stays."""
    with _lock:
        for place in places:
            key = id(place.owner), place.name
            known, count = _held.pop(key)
            if count > 1:
                _held[key] = known, count - 1
            elif isinstance(known.owner, list):
                known.owner[:] = [known.original if each is known.form else each for each in known.owner]
            elif _read(known) is known.form:
                _write(known, known.original)
        if not _held:
            _originals.clear()


def original(value: Any) -> Any:
    """What ``value`` stands for in a place while a trace runs; ``value`` itself if it stands for nothing."""
    found = _originals.get(id(value)) if _originals else None
    return value if found is None else found[1]


def _read(place: Place) -> Any:
    owner = place.owner
    if isinstance(owner, dict):
        return owner.get(place.name, ABSENT)
    if isinstance(owner, list):
        return owner[place.name] if place.name < len(owner) else ABSENT
    if isinstance(owner, type):
        return vars(owner).get(place.name, ABSENT)  # as it stands there: a static method stays one
    return getattr(owner, place.name, ABSENT)


def _write(place: Place, value: Any) -> None:
    owner = place.owner
    if isinstance(owner, (dict, list)):
        if value is ABSENT:
            del owner[place.name]
        else:
            owner[place.name] = value
    elif value is ABSENT:
        delattr(owner, place.name)
    else:
        setattr(owner, place.name, value)
