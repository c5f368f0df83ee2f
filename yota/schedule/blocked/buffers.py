"""Assigns arrays with limited lives to few reusable slots of memory."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


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
        """Choose a slot."""
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
