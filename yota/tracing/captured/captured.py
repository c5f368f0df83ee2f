"""Detects changes of the data and functions that a function reads, so that outdated code is dropped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from yota.structures import PLAIN, children
from yota.tracing.captured.checks import Fingerprint, State, same
from yota.tracing.captured.mentions import Observed, mentions
from yota.tracing.captured.reach import Reach
from yota.tracing.memory import owner_of
from yota.tracing.observation import Running
from yota.tracing.randomness import state_of


class Captured:
    """The data and functions that a function, and the functions that it calls, read besides their arguments.

    The content of arrays is not compared here: compiled code reads them, or compares them; see `yota.run.specialise`.

    given: the user's callable, if it is another object that runs ``function``.
    changes: how often compiled code was dropped because of a change.
    """

    __slots__ = ("_function", "_given", "_later", "_own", "_reach", "_sized", "changes", "state")

    def __init__(self, function: Callable[..., Any], given: Any = None) -> None:
        self._function, self._given = function, given
        self._later: dict[int, Any] = {}
        self._sized: tuple[State | None, int] = None, 0
        self.changes = 0
        self.settle()

    def take(self, roots: Iterable[Any]) -> None:
        """Track what ``roots`` read too, from the next reference state on."""
        found = list(roots)
        # Code that ran may be tracked already.
        self._later.update((id(each.code if isinstance(each, Running) else each), each) for each in found)
        self._reach.take(found)

    def adopt(self, other: Captured) -> None:
        """Track what ``other``, which captured equal data, tracks in addition."""
        self.take(other._later.values())
        self.state = State.now(self._reach)

    def settle(self) -> None:
        """Take the present state of everything reachable as the reference."""
        self._reach = self._reached()
        self.state = State.now(self._reach)

    def _reached(self) -> Reach:
        reach = Reach()
        reach.take([self._function])
        self._own = len(reach.dependencies), len(reach.codes), len(reach.defaults)
        if self._given is not None:
            reach.take_receiver(self._given)
        reach.take(self._later.values())
        return reach

    def absorb(self) -> None:
        """Accept changes that the function made while it ran; changes by other threads are still to be detected."""
        every = [mentions(code) for code in self._reach.codes]
        # Without another thread, all changes are the function's own.
        if len(sys._current_frames()) == 1 or any(each.writes_any for each in every):
            self.settle()
        else:
            stored = frozenset().union(*(each.stored for each in every))
            self._settle_merged(self.state, stored, any(each.writes for each in every))

    def _settle_merged(self, known: State, stored: frozenset[str] = frozenset(), writes: bool = False) -> None:
        """Take the present state as the reference, except earlier values that the function has not written itself."""
        reach = self._reached()
        # One assignment, because other threads read the reference state.
        self._reach, self.state = reach, State.now(reach).merged_with(known, stored, writes=writes)

    @property
    def nbytes(self) -> int:
        """Total size of the arrays that only the function keeps alive, in closures and defaults."""
        state = self.state
        if self._sized[0] is not state:
            arrays = {id(array): array.nbytes for array in state.owned() if isinstance(array, np.ndarray)}
            self._sized = state, sum(arrays.values())
        return self._sized[1]

    def parts(self) -> list[Any]:
        """The captured data, with the parts of structures."""
        known: set[int] = set()
        found = self.state.data()
        for each in self.state.fingerprints:
            if type(each) is Fingerprint:
                found += each.objects(known)
        return found

    def read_each_call(self, inputs: Iterable[Any], observed: Observed) -> list[Any]:
        """The captured arrays that compiled code reads at each call, as its ``inputs``."""
        state = self.state
        named = [(name, value) for *_, name, value in state.variables()]
        elsewhere = {id(part) for part in self.parts()[len(named) :]}
        owners = {id(owner_of(each)) for each in inputs}
        found: list[Any] = []
        for _, array in named:
            if issubclass(type(array), np.ndarray) and id(owner_of(array)) in owners and id(array) not in elsewhere:
                names = dict.fromkeys(name for name, value in named if value is array)
                if observed.only_records(array, names, self._reach.codes):
                    found.append(array)
        return found

    def generators(self, arguments: Iterable[Any] = ()) -> list[Any]:
        """The generators of random numbers among captured data and ``arguments``."""
        return generators([*self.parts(), *arguments])

    def agrees(self, other: Captured) -> bool:
        """Whether another function of the same code captured equal data, such as a lambda that is created again."""
        dependencies, codes, defaults = other._own
        state, known = self.state, other.state
        return (
            self._own == other._own
            and all(a is b for a, b in zip(self._reach.codes, other._reach.codes[:codes], strict=False))
            and state.equals(known, dependencies)
            and same(state.defaults[:defaults], known.defaults[:defaults])
            and not self.changed()
            and not other.changed()
        )

    def changed(self) -> bool:
        """Whether anything has been rebound since the reference state."""
        if self.state.holds():
            return False
        now = State.now(self._reach)
        if not (now.equals(self.state) and now.fingerprints == self.state.fingerprints):
            return True
        self._settle_merged(now)  # other objects, of equal value
        return False


def generators(values: Iterable[Any]) -> list[Any]:
    """The generators of random numbers among values and the parts of structures."""
    pending, seen, found = list(values), dict[int, Any](), []
    while pending:
        each = pending.pop()
        if type(each) not in PLAIN and id(each) not in seen:
            seen[id(each)] = each
            if state_of(each) is not None:
                found.append(each)
            else:
                pending += [part for _, part in children(each) or ()]
    return found


def reached_generators(function: Callable[..., Any], arguments: Iterable[Any]) -> list[Any]:
    """The generators of random numbers that a function can reach, and those among its arguments."""
    reach = Reach()
    reach.take([function])
    return generators([*reach.variables(), *reach.defaults, *arguments])
