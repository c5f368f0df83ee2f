"""Patches of variables and attributes that hold functions, for as long as a trace runs."""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from types import CellType, FunctionType
from typing import Any, TypeAlias

ABSENT: Any = object()
"""The value of a variable or attribute that does not exist."""


def content(cell: CellType) -> Any:
    """What a cell holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return ABSENT


Owner: TypeAlias = "dict[Any, Any] | list[Any] | type | CellType | FunctionType"


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """One key of a dictionary, position of a list, or attribute, and its value while a trace runs."""

    owner: Owner
    name: Any
    original: Any
    form: Any


class PatchGroup:
    """Patches that every trace needs: those of libraries, applied and undone together."""

    def __init__(self, given: Sequence[Patch]) -> None:
        self.held: dict[tuple[int, Any], tuple[Patch, int]] = {}
        """The patches by their keys, each needed once."""
        for patch in given:
            self.held.setdefault(_key(patch), (patch, 1))
        self.patches = [patch for patch, _ in self.held.values()]
        keys = [each for each in self.patches if isinstance(each.owner, dict)]
        keys.sort(key=lambda each: each.original is ABSENT)
        attributes = [each for each in self.patches if isinstance(each.owner, type) and each.original is not ABSENT]
        # Lists, because there are a thousand keys: mapping a function of `operator` over them takes a tenth of a loop.
        self._keys, self._attributes = _Columns(keys), _Columns(attributes)
        self._views = [vars(owner) for owner in self._attributes.owners]
        self._absent = sum(each.original is ABSENT for each in keys)
        many = {id(patch) for patch in (*keys, *attributes)}
        self._others = [patch for patch in self.patches if id(patch) not in many]
        self._stands = {id(patch.form): (patch.form, patch.original) for patch in self.patches}

    def apply(self) -> bool:
        """Apply all patches, if all originals are as they were when the group was made; whether that is so."""
        keys, attributes = self._keys, self._attributes
        if not self._hold(keys.originals, attributes.originals):
            return False
        if any(_read(patch) is not patch.original for patch in self._others):
            return False
        _originals.update(self._stands)
        _exhaust(map(operator.setitem, keys.owners, keys.names, keys.forms))
        _exhaust(map(setattr, attributes.owners, attributes.names, attributes.forms))
        for patch in self._others:
            _write(patch, patch.form)
        return True

    def undo(self) -> None:
        """Undo `apply`; what the user has assigned meanwhile stays."""
        keys, attributes = self._keys, self._attributes
        patches = self.patches
        if self._hold(keys.forms, attributes.forms):
            present = len(keys.owners) - self._absent
            _exhaust(map(operator.setitem, keys.owners[:present], keys.names, keys.originals))
            _exhaust(map(operator.delitem, keys.owners[present:], keys.names[present:]))
            _exhaust(map(setattr, attributes.owners, attributes.names, attributes.originals))
            patches = self._others
        for patch in patches:
            _restore(patch)

    def _hold(self, keys: Sequence[Any], attributes: Sequence[Any]) -> bool:
        """Whether the keys of dictionaries and the attributes of classes have these very values."""
        values = map(dict.get, self._keys.owners, self._keys.names, repeat(ABSENT))
        if not all(map(operator.is_, values, keys)):
            return False
        try:
            return all(map(operator.is_, map(operator.getitem, self._views, self._attributes.names), attributes))
        except KeyError:  # the user has removed it
            return False


class _Columns:
    """The parts of patches, each in a list."""

    def __init__(self, patches: Sequence[Patch]) -> None:
        self.owners: list[Any] = [patch.owner for patch in patches]
        self.names = [patch.name for patch in patches]
        self.originals = [patch.original for patch in patches]
        self.forms = [patch.form for patch in patches]


def _exhaust(calls: Iterable[Any]) -> None:
    deque(calls, maxlen=0)


_lock = threading.RLock()
_held: dict[tuple[int, Any], tuple[Patch, int]] = {}
"""The patches that are applied now, each with the number of traces that need it."""
_originals: dict[int, tuple[Any, Any]] = {}
"""By the identity of each value that a patch assigned, that value and the original."""


@dataclass(slots=True)
class _Entered:
    """The traces that have entered; how many with the group whose patches are the first of `_held`."""

    traces: int = 0
    group: PatchGroup | None = None
    times: int = 0


_entered = _Entered()


def _has_entered(group: PatchGroup) -> bool:
    """Whether the patches of a group are among those that were entered together."""
    entered = _entered.group
    return entered is not None and (entered is group or group.held.keys() <= entered.held.keys())


def held_at(owner: Owner, name: Any) -> Patch | None:
    """The patch that a trace has applied to ``name`` of ``owner``, if one has."""
    found = _held.get((id(owner), name))
    return None if found is None else found[0]


def enter(group: PatchGroup, patches: Sequence[Patch]) -> None:
    """Apply the patches of a trace that begins; the first of several traces applies those of the group."""
    with _lock:
        _entered.traces += 1
        if _has_entered(group):
            _entered.times += 1
        elif not _held and group.held.keys().isdisjoint(map(_key, patches)) and group.apply():
            _held.update(group.held)
            _entered.group, _entered.times = group, 1
        else:
            patches = [*patches, *group.patches]
        hold(patches)


def hold(patches: Iterable[Patch]) -> None:
    """Apply further patches of a trace that has entered."""
    with _lock:
        for patch in patches:
            owner, key = patch.owner, (id(patch.owner), patch.name)
            known, count = _held.get(key, (patch, 0))
            # Most owners are dictionaries: calls to read and write them would take longer than all else.
            held = None if count else owner.get(patch.name, ABSENT) if type(owner) is dict else _read(patch)
            # What a patch holds now may be other than what its form stands for, where the user has put it there.
            if not count and held is patch.original:
                _originals[id(patch.form)] = patch.form, patch.original
                if type(owner) is dict:
                    owner[patch.name] = patch.form
                else:
                    _write(patch, patch.form)
            _held[key] = known, count + 1


def leave(group: PatchGroup, patches: Sequence[Patch]) -> None:
    """Undo `enter` and `hold`; what the user has assigned meanwhile stays."""
    with _lock:
        _entered.traces -= 1
        if not _entered.traces:
            found = _entered.group
            for known, _ in islice(_held.values(), len(found.held) if found else 0, None):
                _restore(known)
            if found is not None:
                found.undo()
            _entered.group, _entered.times = None, 0
            _held.clear()
            _originals.clear()
            return
        entered = _entered.group
        if entered is None or not _has_entered(group):
            patches = [*group.patches, *patches]
        elif _entered.times > 1:
            _entered.times -= 1
        else:
            patches = [*entered.patches, *patches]
            _entered.group, _entered.times = None, 0
        for patch in patches:
            key = _key(patch)
            known, count = _held[key]
            if count > 1:
                _held[key] = known, count - 1
            else:
                del _held[key]
                _restore(known)


def _key(patch: Patch) -> tuple[int, Any]:
    return id(patch.owner), patch.name


def _restore(patch: Patch) -> None:
    owner = patch.owner
    if type(owner) is dict and patch.original is not ABSENT:
        if owner.get(patch.name) is patch.form:
            owner[patch.name] = patch.original
    elif isinstance(owner, list):
        owner[:] = [patch.original if each is patch.form else each for each in owner]
    elif _read(patch) is patch.form:
        _write(patch, patch.original)


def original(value: Any) -> Any:
    """The original in whose stead a patch has assigned ``value``; ``value`` itself if none has."""
    found = _originals.get(id(value)) if _originals else None
    return value if found is None else found[1]


def _read(patch: Patch) -> Any:
    owner = patch.owner
    if isinstance(owner, dict):
        return owner.get(patch.name, ABSENT)
    if isinstance(owner, list):
        return owner[patch.name] if patch.name < len(owner) else ABSENT
    if isinstance(owner, type):
        return vars(owner).get(patch.name, ABSENT)  # as it stands there: a static method stays one
    return getattr(owner, patch.name, ABSENT)


def _write(patch: Patch, value: Any) -> None:
    owner = patch.owner
    if isinstance(owner, (dict, list)):
        if value is ABSENT:
            del owner[patch.name]
        else:
            owner[patch.name] = value
    elif value is ABSENT:
        delattr(owner, patch.name)
    else:
        setattr(owner, patch.name, value)
