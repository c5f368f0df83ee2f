"""Assigns arrays with limited lives to few reusable slots of memory."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Request", "Slot", "assign"]


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


@dataclass(slots=True)
class _Open:
    dtype: np.dtype[Any]
    size: int
    holder: Hashable
    stop: int


def assign(requests: Sequence[Request]) -> tuple[dict[Hashable, int], tuple[Slot, ...]]:
    """A slot for each request, and the slots.

    First choice is the slot of an operand that dies, then the free slot of nearest size, then a fresh one.

    Examples
    --------
    >>> f8 = np.dtype(float)
    >>> first, second = Request("a", f8, 8, 0, 1), Request("b", f8, 8, 1, 2, takes_over=("a",))
    >>> assign([first, second])
    ({'a': 0, 'b': 0}, (Slot(dtype=dtype('float64'), size=8),))
    """
    slots: list[_Open] = []
    chosen: dict[Hashable, int] = {}
    for request in sorted(requests, key=lambda request: request.start):
        number = _choose(slots, request)
        if number is None:
            number = len(slots)
            slots.append(_Open(request.dtype, request.size, request.key, request.stop))
        slot = slots[number]
        slot.size = max(slot.size, request.size)
        slot.holder, slot.stop = request.key, request.stop
        chosen[request.key] = number
    return chosen, tuple(Slot(slot.dtype, slot.size) for slot in slots)


def _choose(slots: Sequence[_Open], request: Request) -> int | None:
    free: list[tuple[float, int]] = []
    for number, slot in enumerate(slots):
        if slot.dtype != request.dtype:
            continue
        if slot.holder in request.takes_over and slot.stop <= request.start:
            return number
        if slot.stop < request.start:
            # A slot that must grow is a worse choice than one that is too large.
            have, need = slot.size + 1, request.size + 1
            misfit = have / need if have >= need else 2 * need / have
            free.append((misfit, number))
    return min(free)[1] if free else None
