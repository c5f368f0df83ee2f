"""Noticing that what a function reads besides its arguments has changed, so that no compiled code outlives it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from yota.marks import Itself
from yota.structures import flatten
from yota.tracing.memory import owner_of
from yota.tracing.observation import Running
from yota.tracing.randomness import is_generator
from yota.tracing.record import Surroundings
from yota.watching.afresh import Observed
from yota.watching.mentions import mentions
from yota.watching.reach import Reach
from yota.watching.state import State, same

__all__ = ["Captured"]


class Captured:
    """What a function, and what it calls, reads besides its arguments: data, and the functions themselves.

    Numbers are compared by value, other objects by identity, structures by that of their parts. The content
    of arrays is not compared here: compiled code reads them afresh, or watches them; see `yota.compilation.specialise`.

    Parameters
    ----------
    function
        A plain function.
    given
        What the user gave, if that is another callable, which runs ``function``.

    Attributes
    ----------
    changes
        How often what was compiled was dropped because something had changed.
    """

    __slots__ = ("_function", "_given", "_later", "_own", "_reach", "_state", "changes")

    def __init__(self, function: Callable[..., Any], given: Any = None) -> None:
        self._function, self._given = function, given
        self._later: dict[int, Any] = {}
        self.changes = 0
        self.settle()

    def take(self, roots: Iterable[Any]) -> None:
        """Watch what ``roots`` read too, from the next time on that the present state is taken to count."""
        found = list(roots)
        # Code that ran may have run before.
        self._later.update((id(each.code if isinstance(each, Running) else each), each) for each in found)
        self._reach.take(found)

    def adopt(self, other: Captured) -> None:
        """Watch what ``other``, with which this one agrees, came to watch later."""
        self.take(other._later.values())
        self._state = State.now(self._reach)

    def settle(self) -> None:
        """Let the present state count, of all that is reached now."""
        self._reach = self._reached()
        self._state = State.now(self._reach)

    def _reached(self) -> Reach:
        reach = Reach()
        reach.take([self._function])
        self._own = len(reach.places), len(reach.codes), len(reach.defaults)
        if self._given is not None:
            reach.take_receiver(self._given)
        reach.take(self._later.values())
        return reach

    def absorb(self) -> None:
        """Let count what the function did while it ran; what others rebound in that time has yet to be noticed."""
        every = [mentions(code) for code in self._reach.codes]
        # Without another thread, whatever has changed is the function's own doing.
        if len(sys._current_frames()) == 1 or any(each.writes_any for each in every):
            self.settle()
        else:
            stored = frozenset().union(*(each.stored for each in every))
            self._settle_beside(self._state, stored, any(each.writes for each in every))

    def _settle_beside(self, known: State, stored: frozenset[str] = frozenset(), writes: bool = False) -> None:
        """Let the present state count, but for what an earlier one knows and the function has not written itself."""
        reach = self._reached()
        # At once: other threads look at what counts.
        self._reach, self._state = reach, State.now(reach).beside(known, stored, writes=writes)

    @property
    def state(self) -> State:
        """The state that counts."""
        return self._state

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that the function keeps alive by itself: those in closures and default values."""
        arrays = {id(array): array.nbytes for array in self._state.owned() if isinstance(array, np.ndarray)}
        return sum(arrays.values())

    def parts(self) -> list[Any]:
        """The captured data, and what its structures are made of."""
        found = self._state.data()
        for fingerprint in self._state.fingerprints:
            if type(fingerprint) is list:
                found += [part.value for _, part in fingerprint if type(part) is Itself]
        return found

    def read_afresh(self, inputs: Iterable[Any], observed: Observed) -> list[Any]:
        """The captured arrays of which the functions take nothing but what compiled code reads, as its ``inputs``."""
        state = self._state
        named = [(name, value) for *_, name, value in state.variables()]
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

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured the same, as a lambda does that is made anew."""
        places, codes, defaults = other._own
        state, known = self._state, other._state
        return (
            self._own == other._own
            and all(a is b for a, b in zip(self._reach.codes, other._reach.codes[:codes], strict=False))
            and state.equals(known, places)
            and same(state.defaults[:defaults], known.defaults[:defaults])
            and not self.changed()
            and not other.changed()
        )

    def changed(self) -> bool:
        """Whether anything was rebound since the state that counts; whoever forgets what relied on it settles anew."""
        if self._state.holds():
            return False
        now = State.now(self._reach)
        if not (now.equals(self._state) and now.fingerprints == self._state.fingerprints):
            return True
        self._settle_beside(now)  # other objects, of equal value
        return False
