"""The workspace of a generated function: slots of memory, and the arrays that look at them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.emit.names import Names
from yota.emit.numpy_literals import dtype_argument
from yota.emit.python.formatting import LONGEST, wrapped
from yota.emit.python.function_plan import Buffer, Workspace
from yota.emit.python.storage import Storage
from yota.rules.language.statics import inverse

_KEPT = ((1 << 26, 4), (1 << 30, 1), (math.inf, 0))
"""How many workspaces may wait for the next call, by their size in bytes."""


class Looks:
    """Names for arrays in the workspace, one for each slot, shape and order in memory."""

    def __init__(self, storage: Storage, names: Names) -> None:
        self._storage, self._names = storage, names
        self._looks: dict[Any, tuple[str, str]] = {}

    def look(
        self, key: Any, shape: tuple[int, ...], scope: Any = None, order: tuple[int, ...] | None = None
    ) -> str | None:
        """Name of the workspace array of ``key``, its axes in memory in ``order``; None if it has no slot."""
        slot = self._storage.slot.get(key)
        if slot is None:
            return None
        if (slot, shape, scope, order) not in self._looks:
            size = int(np.prod(shape, dtype=np.int64))
            text = f"s{slot}" if size == self._storage.slots[slot].size else f"s{slot}[:{size}]"
            if order is not None:
                extents = ", ".join(str(shape[axis]) for axis in order)
                text = turned(f"{text}.reshape({extents})", inverse(order))
            elif len(shape) > 1:
                text = f"{text}.reshape({', '.join(map(str, shape))})"
            self._looks[slot, shape, scope, order] = (self._names.numbered("t"), text)
        return self._looks[slot, shape, scope, order][0]

    def plan(self) -> tuple[Workspace, ...]:
        """The workspace, if anything lives in one."""
        if not self._looks:
            return ()
        buffers = []
        for number, slot in enumerate(self._storage.slots):
            buffers.append(Buffer(f"s{number}", f"np.empty({slot.size}{dtype_argument(slot.dtype)})"))
        total = sum(slot.size * slot.dtype.itemsize for slot in self._storage.slots)
        kept = next(kept for limit, kept in _KEPT if total <= limit)
        names = [name for name, _ in self._looks.values()]
        unpack = f"{', '.join(names)} = work" if len(names) > 1 else f"({names[0]},) = work"
        looks = [text for _, text in self._looks.values()]
        return (Workspace(kept, tuple(buffers), _packed(looks), wrapped([unpack], 4)),)


def _packed(looks: list[str]) -> tuple[str, ...]:
    """The statement that returns all looks, which the function unpacks; too long, it has a line for each."""
    line = f"return ({', '.join(looks)}{',' if len(looks) == 1 else ''})"
    return (line,) if len(line) <= LONGEST - 4 else ("return (", *(f"    {look}," for look in looks), ")")


def turned(text: str, order: tuple[int, ...]) -> str:
    """``text`` with its axes in this order."""
    if order == (1, 0):
        return f"{text}.T"
    return f"{text}.transpose({', '.join(map(str, order))})"
