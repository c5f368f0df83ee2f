"""Noticing that what a function reads besides its arguments has changed, so that no compiled code outlives it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from yota.marks import Itself
from yota.structures import flatten
from yota.tracing.memory import owner_of
from yota.tracing.randomness import is_generator
from yota.tracing.record import Surroundings
from yota.watching.afresh import Observed
from yota.watching.reach import ABSENT, Reach
from yota.watching.state import State, same, structures

__all__ = ["Captured"]

_CONTENT = operator.attrgetter("cell_contents")


class Captured:
    """The data in closures, global variables, modules and classes that a function, and what it calls, reads.

    Numbers are compared by value, other objects by identity, structures by that of their parts. The content
    of arrays is not compared here: compiled code reads them afresh, or watches them; see `yota.compilation.specialise`.
    """

    __slots__ = ("_later", "_own", "_reach", "_state")

    def __init__(self, function: Callable[..., Any]) -> None:
        self._reach = Reach()
        self._reach.take([function])
        self._later: list[Any] = []
        self.settle()
        state = self._state
        self._own = len(state.cells), len(state.places), len(self._reach.codes), len(state.defaults)

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
        return bool(self._state.cells or self._state.places or self._state.structures)

    def settle(self) -> None:
        """Let the present state count."""
        self._state = State.now(self._reach)

    def parts(self) -> list[Any]:
        """The captured data, and what its structures are made of."""
        found = self._state.data()
        for _, fingerprint in self._state.structures:
            if type(fingerprint) is list:
                found += [part.value for _, part in fingerprint if type(part) is Itself]
        return found

    def read_afresh(self, inputs: Iterable[Any], observed: Observed) -> list[Any]:
        """The captured arrays of which the functions take nothing but what compiled code reads, as its ``inputs``."""
        state = self._state
        named = [*zip(self._reach.cell_names, state.held, strict=True)]
        named += [(name, value) for (_, name), value in zip(state.places, state.values, strict=True)]
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
        return Surroundings(list(filter(is_generator, parts)))

    def identities(self) -> tuple[tuple[Any, ...], ...] | None:
        """``(cell, object)``, ``(dict, key, object)`` and, for what must not be there, ``(dict, key)``.

        While all are as listed, nothing has changed. None where that takes more than a look at identities.
        """
        state = self._state
        places = [
            (names, name) if value is ABSENT else (names, name, value)
            for (names, name), value in zip(state.places, state.values, strict=True)
        ]
        unfilled = len(state.filled) < len(state.held)
        if state.structures or unfilled or any(type(names) is not dict for names, *_ in places):
            return None
        return (*state.filled, *places)

    def held(self) -> tuple[tuple[Callable[[Any], Any], Any, Any], ...] | None:
        """``(get, key, object)`` for each variable read: while ``get(key) is object`` for all, nothing has changed.

        ``get`` raises ValueError for a variable of a closure that was deleted. None where that does not say all.
        """
        state = self._state
        # `dict.get` gives None for a variable that is not there.
        vague = any(value is ABSENT or value is None for value in state.values) or len(state.filled) < len(state.held)
        other = any(type(names) is not dict for names, _ in state.places)
        if vague or other or state.structures:
            return None
        return (*((_CONTENT, cell, held) for cell, held in state.filled), *state.read)

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured the same, as a lambda does that is made anew."""
        cells, places, codes, defaults = other._own
        state = self._state
        values = [*state.held[:cells], *state.values[:places], *state.defaults[:defaults]]
        return (
            self._own == other._own
            and all(a is b for a, b in zip(self._reach.codes[:codes], other._reach.codes, strict=True))
            and same(values, other._state.data())
            and structures(values) == other._state.structures
            and not self.changed()
        )

    def changed(self) -> bool:
        """Whether anything was rebound since the state that counts; whoever forgets what relied on it settles anew."""
        if self._state.holds():
            return False
        now = State.now(self._reach)
        if not now.equals(self._state):
            return True
        self._state = now  # other objects, of equal value
        return False
