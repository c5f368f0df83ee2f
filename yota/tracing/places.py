"""Places that hold functions, such as variables and attributes: what traces put there for a time."""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import CellType, FunctionType
from typing import Any, TypeAlias

__all__ = ["ABSENT", "Group", "Place", "content", "enter", "held_at", "hold", "leave", "original"]

ABSENT: Any = object()
"""What a place holds that is empty."""


def content(cell: CellType) -> Any:
    """What a cell holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ABSENT


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


@dataclass(slots=True, eq=False)
class Group:
    """Places that every trace needs: those of libraries, filled and emptied by a few updates of dictionaries.

    Parameters
    ----------
    given
        The places; of several for one key of a dictionary, the first counts.
    """

    given: Sequence[Place]
    held: dict[tuple[int, Any], tuple[Place, int]] = field(init=False)
    """The places by their keys, each needed once."""
    _forms: dict[int, tuple[Any, Any]] = field(init=False)
    _tables: dict[int, tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]] = field(init=False)
    """Dictionaries, each with the originals and the forms of its keys."""
    _others: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        self.held, self._tables, self._others = {}, {}, []
        for place in self.given:
            self.held.setdefault(_key(place), (place, 1))
        for place in self.places:
            if isinstance(place.owner, dict) and place.original is not ABSENT:
                _, originals, forms = self._tables.setdefault(id(place.owner), (place.owner, {}, {}))
                originals[place.name], forms[place.name] = place.original, place.form
            else:
                self._others.append(place)
        self._forms = {id(place.form): (place.form, place.original) for place in self.places}

    @property
    def places(self) -> list[Place]:
        """The places, each once."""
        return [place for place, _ in self.held.values()]

    def fill(self) -> bool:
        """Put all forms into their places, if all hold what they held when the group was made; whether that is so."""
        if not all(_holds(owner, originals) for owner, originals, _ in self._tables.values()):
            return False
        if any(_read(place) is not place.original for place in self._others):
            return False
        _originals.update(self._forms)
        for owner, _, forms in self._tables.values():
            owner.update(forms)
        for place in self._others:
            _write(place, place.form)
        return True

    def empty(self) -> None:
        """Undo `fill`; what the user has put into a place meanwhile stays."""
        for owner, originals, forms in self._tables.values():
            if _holds(owner, forms):
                owner.update(originals)
            else:
                owner.update({name: originals[name] for name, form in forms.items() if owner.get(name) is form})
        for place in self._others:
            _restore(place)


_lock = threading.RLock()
_held: dict[tuple[int, Any], tuple[Place, int]] = {}
"""The places that hold other values now, each with the number of traces that need it so."""
_originals: dict[int, tuple[Any, Any]] = {}
"""By the identity of what stands in places now, that itself and what it stands for."""


@dataclass(slots=True)
class _Entered:
    """The traces that have entered.

    Attributes
    ----------
    traces
        How many there are.
    group
        The group whose places are the first of `_held`, where each counts once for all traces that entered with it.
    times
        How many those are.
    """

    traces: int = 0
    group: Group | None = None
    times: int = 0


_entered = _Entered()


def held_at(owner: Owner, name: Any) -> Place | None:
    """What a trace has put into a place, if one has."""
    found = _held.get((id(owner), name))
    return None if found is None else found[0]


def enter(group: Group, places: Sequence[Place]) -> None:
    """Put the forms into the places of a trace that begins, in ``places`` before those of the group.

    The first of several traces, nested or in other threads, does it for all.
    """
    with _lock:
        _entered.traces += 1
        if _entered.group is group:
            _entered.times += 1
        elif not _held and group.held.keys().isdisjoint(map(_key, places)) and group.fill():
            _held.update(group.held)
            _entered.group, _entered.times = group, 1
        else:
            places = [*places, *group.places]
        hold(places)


def hold(places: Iterable[Place]) -> None:
    """Put the forms into further places of a trace that has entered."""
    with _lock:
        for place in places:
            key = _key(place)
            known, count = _held.get(key, (place, 0))
            # What a place holds now may be other than what its form stands for, where the user has put it there.
            if not count and _read(place) is place.original:
                _originals[id(place.form)] = place.form, place.original
                _write(place, place.form)
            _held[key] = known, count + 1


def leave(group: Group, places: Sequence[Place]) -> None:
    """Undo `enter` and `hold`; what the user has put into a place meanwhile stays."""
    with _lock:
        _entered.traces -= 1
        if not _entered.traces:
            _clear()
            return
        if _entered.group is group:
            _entered.times -= 1
        if _entered.group is not group or not _entered.times:
            places = [*group.places, *places]
        if not _entered.times:
            _entered.group = None
        _release(places)


def _clear() -> None:
    """Undo all that the last trace leaves."""
    group = _entered.group
    for known, _ in islice(_held.values(), len(group.held) if group else 0, None):
        _restore(known)
    if group is not None:
        group.empty()
    _entered.group, _entered.times = None, 0
    _held.clear()
    _originals.clear()


def _release(places: Iterable[Place]) -> None:
    for place in places:
        key = _key(place)
        known, count = _held[key]
        if count > 1:
            _held[key] = known, count - 1
        else:
            del _held[key]
            _restore(known)


def _key(place: Place) -> tuple[int, Any]:
    return id(place.owner), place.name


def _holds(owner: dict[Any, Any], values: dict[Any, Any]) -> bool:
    """Whether a dictionary holds these very values."""
    return all(map(operator.is_, map(owner.get, values), values.values()))


def _restore(place: Place) -> None:
    if isinstance(place.owner, list):
        place.owner[:] = [place.original if each is place.form else each for each in place.owner]
    elif _read(place) is place.form:
        _write(place, place.original)


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
