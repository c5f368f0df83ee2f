"""Places that hold functions, such as variables and attributes: what traces put there for a time."""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from types import CellType, FunctionType
from typing import Any, TypeAlias

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

    owner, name: a dictionary and a key of it, which a module's or an object's variables are too; a list and a position;
        a class, cell or function and an attribute.
    original: what the place holds; `ABSENT` if it is empty.
    form: what it holds while a trace runs.
    """

    owner: Owner
    name: Any
    original: Any
    form: Any


class Group:
    """Places that every trace needs: those of libraries, filled and emptied together.

    given: the places; of several for one key of a dictionary, the first counts.
    """

    def __init__(self, given: Sequence[Place]) -> None:
        self.held: dict[tuple[int, Any], tuple[Place, int]] = {}
        """The places by their keys, each needed once."""
        for place in given:
            self.held.setdefault(_key(place), (place, 1))
        self.places = [place for place, _ in self.held.values()]
        present = [each for each in self.places if each.original is not ABSENT]
        keys = [each for each in present if isinstance(each.owner, dict)]
        attributes = [each for each in present if isinstance(each.owner, type)]
        # Lists, because there are a thousand keys: mapping a function of `operator` over them takes a tenth of a loop.
        self._owners: list[Any] = [place.owner for place in (*keys, *attributes)]
        self._views: list[Any] = [place.owner for place in keys] + [vars(place.owner) for place in attributes]
        self._names = [place.name for place in (*keys, *attributes)]
        self._values = [place.original for place in (*keys, *attributes)]
        self._forms = [place.form for place in (*keys, *attributes)]
        self._keys = len(keys)
        many = {id(place) for place in (*keys, *attributes)}
        self._others = [place for place in self.places if id(place) not in many]
        self._stands = {id(place.form): (place.form, place.original) for place in self.places}

    def fill(self) -> bool:
        """Put all forms into their places, if all hold what they held when the group was made; whether that is so."""
        if not self._hold(self._values) or any(_read(place) is not place.original for place in self._others):
            return False
        _originals.update(self._stands)
        self._put(self._forms)
        for place in self._others:
            _write(place, place.form)
        return True

    def empty(self) -> None:
        """Undo `fill`; what the user has put into a place meanwhile stays."""
        if self._hold(self._forms):
            self._put(self._values)
            places = self._others
        else:
            places = self.places
        for place in places:
            _restore(place)

    def _hold(self, values: Sequence[Any]) -> bool:
        """Whether the keys of dictionaries and the attributes of classes have these very values."""
        try:
            return all(map(operator.is_, map(operator.getitem, self._views, self._names), values))
        except KeyError:  # the user has removed it
            return False

    def _put(self, values: Sequence[Any]) -> None:
        deque(map(operator.setitem, self._owners[: self._keys], self._names, values), maxlen=0)
        deque(map(setattr, *(each[self._keys :] for each in (self._owners, self._names, values))), maxlen=0)


_lock = threading.RLock()
_held: dict[tuple[int, Any], tuple[Place, int]] = {}
"""The places that hold other values now, each with the number of traces that need it so."""
_originals: dict[int, tuple[Any, Any]] = {}
"""By the identity of what stands in places now, that itself and what it stands for."""


@dataclass(slots=True)
class _Entered:
    """The traces that have entered.

    group: the group whose places are the first of `_held`, where each counts once for all traces that entered with it.
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
