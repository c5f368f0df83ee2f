"""Assigns arrays with limited lives to few slots of memory, and checks that what is read there was written last.

A schedule is given as actions in their order. Memory is simulated: for each buffer, which rows hold elements of which
value. No generated text is read.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ScheduleError

Rows = tuple[float, float]
"""From which row to which: along the axis that a loop cuts, whose ends ``WHOLE`` stands for."""
WHOLE: Rows = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Access:
    """Rows of a buffer, and the value that they hold: before the action if it reads them, afterwards if it writes."""

    buffer: Hashable
    value: Hashable
    rows: Rows = WHOLE


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What rows of a total hold until it is complete; only what reads them may write over them."""

    total: Hashable

    def __str__(self) -> str:
        return f"unfinished {self.total}"


@dataclass(frozen=True, slots=True)
class Action:
    """What happens at once.

    over: buffers that it may write while it reads them: it writes an element when it has read it, or reads all first.
    frees: buffers that hold nothing afterwards.
    """

    what: str
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    over: frozenset[Hashable] = frozenset()
    frees: tuple[Hashable, ...] = ()


def simulate(actions: Iterable[Action]) -> None:
    """Go through ``actions``.

    Raises ScheduleError if one reads what is not there: never written, freed, or overwritten by then.

    >>> write = Action("exp", writes=(Access("a", "v"),))
    >>> simulate([write, Action("sum", reads=(Access("a", "v"),))])
    >>> over = Action("setitem", reads=(Access("a", "v"),), writes=(Access("a", "w"),), over=frozenset("a"))
    >>> simulate([write, over, Action("sum", reads=(Access("a", "v"),))])
    Traceback (most recent call last):
        ...
    yota.errors.ScheduleError: sum reads v in buffer a, which holds w: setitem has written over it
    """
    memory: dict[Hashable, _Buffer] = {}
    for action in actions:
        for access in action.reads:
            memory.setdefault(access.buffer, _Buffer()).check(action, access)
        read = {access.buffer for access in action.reads} - action.over
        for access in action.writes:
            if access.buffer in read:
                raise ScheduleError(
                    f"{action.what} writes {access.value} to buffer {access.buffer} while it reads from there"
                )
            memory.setdefault(access.buffer, _Buffer()).write(action, access)
        for buffer in action.frees:
            memory[buffer] = _Buffer(by=action.what)


class _Buffer:
    """Rows that hold something, in order, with what it is and what has written it; touching equal ones are one."""

    def __init__(self, by: str = "") -> None:
        self.held: list[tuple[Rows, Hashable, str]] = []
        self.freed_by = by

    def check(self, action: Action, access: Access) -> None:
        """Refuse a read of rows that hold anything else."""
        first, last = access.rows
        for (start, stop), value, by in self.held:
            if stop <= first or start >= last:
                continue
            if start > first:
                break
            if value != access.value:
                raise ScheduleError(f"{_told(action, access)}, which holds {value}: {by} has written over it")
            first = stop
            if first >= last:
                return
        if first < last:
            gone = f"{self.freed_by} has freed it" if self.freed_by else "nothing has written it"
            where = "" if access.rows == WHOLE else f" from row {first}"
            raise ScheduleError(f"{_told(action, access)}{where}, where nothing is: {gone}")

    def write(self, action: Action, access: Access) -> None:
        first, last = access.rows
        found: list[tuple[Rows, Hashable, str]] = [((first, last), access.value, action.what)]
        kept = {each.value for each in action.reads if each.buffer == access.buffer}
        for (start, stop), value, by in self.held:
            if isinstance(value, Unfinished) and start < last and stop > first and value not in kept:
                raise ScheduleError(f"{action.what} writes over {value} in buffer {access.buffer}")
            found += [((start, min(stop, first)), value, by)] if start < first else []
            found += [((max(start, last), stop), value, by)] if stop > last else []
        found.sort(key=lambda each: each[0])
        self.held = []
        for rows, value, by in found:
            if self.held and self.held[-1][0][1] == rows[0] and self.held[-1][1] == value:
                self.held[-1] = ((self.held[-1][0][0], rows[1]), value, by)
            else:
                self.held.append((rows, value, by))


def _told(action: Action, access: Access) -> str:
    return f"{action.what} reads {access.value} in buffer {access.buffer}"


@dataclass(frozen=True, slots=True)
class Request:
    """An array that lives from time ``start`` (when it is written) to ``stop`` (when it is last read).

    ``takes_over`` names arrays whose memory it may use from ``start`` on although they are read at that very
    time: an elementwise op may write over an operand.
    """

    key: Hashable
    dtype: np.dtype[Any]
    size: int
    start: int
    stop: int
    takes_over: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Slot:
    """Memory for ``size`` elements of ``dtype``."""

    dtype: np.dtype[Any]
    size: int


def assign(requests: Sequence[Request]) -> tuple[dict[Hashable, int], tuple[Slot, ...]]:
    """A slot for each request, and the slots.

    First choice is the slot of an operand that dies, then the free slot of nearest size, then a fresh one.

    >>> f8 = np.dtype(float)
    >>> first, second = Request("a", f8, 8, 0, 1), Request("b", f8, 8, 1, 2, takes_over=("a",))
    >>> assign([first, second])
    ({'a': 0, 'b': 0}, (Slot(dtype=dtype('float64'), size=8),))
    """
    pool = _Pool()
    for request in sorted(requests, key=lambda request: request.start):
        pool.serve(request)
    return pool.chosen, tuple(Slot(dtype, size) for dtype, size in zip(pool.dtypes, pool.sizes, strict=True))


class _Pool:
    """Slots in use, by the time at which they are free again, and free ones."""

    def __init__(self) -> None:
        self.dtypes: list[np.dtype[Any]] = []
        self.sizes: list[int] = []
        self.chosen: dict[Hashable, int] = {}
        self._stop: dict[Hashable, int] = {}
        self._holder: dict[int, Hashable] = {}
        self._busy: list[tuple[int, int]] = []
        self._free: dict[np.dtype[Any], set[int]] = {}

    def serve(self, request: Request) -> None:
        while self._busy and self._busy[0][0] < request.start:
            stop, idle = heapq.heappop(self._busy)
            # A slot that was taken over is held for longer than its old entry says.
            if self._stop[self._holder[idle]] == stop:
                self._free.setdefault(self.dtypes[idle], set()).add(idle)
        number = self._taken_over(request)
        if number is None:
            number = self._nearest(request)
        if number is None:
            number = len(self.sizes)
            self.dtypes.append(request.dtype)
            self.sizes.append(0)
        self.sizes[number] = max(self.sizes[number], request.size)
        self.chosen[request.key] = number
        self._holder[number] = request.key
        self._stop[request.key] = request.stop
        heapq.heappush(self._busy, (request.stop, number))

    def _taken_over(self, request: Request) -> int | None:
        for key in request.takes_over:
            number = self.chosen.get(key)
            dying = number is not None and self._holder[number] == key and self._stop[key] <= request.start
            if dying and number is not None and self.dtypes[number] == request.dtype:
                self._free.get(request.dtype, set()).discard(number)
                return number
        return None

    def _nearest(self, request: Request) -> int | None:
        free = self._free.get(request.dtype)
        if not free:
            return None

        def misfit(number: int) -> tuple[float, int]:
            have, need = self.sizes[number] + 1, request.size + 1
            # A slot that must grow is a worse choice than one that is too large.
            return (have / need if have >= need else 2 * need / have), number

        number = min(free, key=misfit)
        free.remove(number)
        return number
