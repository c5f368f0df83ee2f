"""Checks of one kernel: it reads inside of its arrays, nothing that it writes itself, and writes every element once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from yota.emit.c.frame import Sink
from yota.errors import ScheduleError
from yota.ir.tape import Tape
from yota.schedule.nests.groups import Group
from yota.schedule.nests.linear_index import Bounds, Linear
from yota.schedule.nests.pull import Pull
from yota.schedule.nests.tiling import Region, Root

Pulled = tuple[Region, Pull, list[Sink]]
"""A box of a loop nest, the values at its points, and where they go."""
_MOST = 1 << 22
"""Elements of a result up to which each is looked at; of longer ones, how many are written is compared."""


def check_kernel(
    tape: Tape,
    group: Group,
    pulled: Sequence[Pulled],
    axes: Sequence[int],
    cleared: Callable[[Root], bool] | None,
    strided: Iterable[int] = (),
) -> None:
    """Refuse a kernel whose loops leave elements out, write one twice, or read what they write.

    A result whose elements are written once each has no element that two threads write.

    pulled: all boxes.
    axes: the loops that are left when some were merged into the next one.
    cleared: whether a root's result, or each thread's part of it, is cleared and then added to. None where totals are
        merged in other ways, which are not looked at.
    strided: variables that do not lie in C order.
    Raises ScheduleError if it is one.
    """
    _check_reads(tape, group, pulled, frozenset(strided))
    for root in group.roots:
        sinks = [(box, sink, pull) for box, pull, each in pulled for sink in each if sink.root is root]
        for box, sink, pull in sinks:
            _check_inside(tape, "writes", root.variable, sink.offset, {**pull.bounds, **dict(enumerate(box))})
        merged = any(sink.merge for _, sink, _ in sinks)
        if merged and (cleared is None or cleared(root)):
            continue
        _check_once(tape, root, [(box, sink, _outer(sink, axes)) for box, sink, _ in sinks])


def _check_reads(tape: Tape, group: Group, pulled: Sequence[Pulled], strided: frozenset[int]) -> None:
    results = {root.variable for root in group.roots}
    for box, pull, _ in pulled:
        for value in pull.values.items:
            if value.offset is None:
                continue
            if value.data in results:
                raise ScheduleError(f"a kernel reads %{value.data}, which it computes itself")
            if value.data not in strided:
                _check_inside(tape, "reads", value.data, value.offset, {**pull.bounds, **dict(enumerate(box))})


def _check_inside(tape: Tape, what: str, variable: int, offset: Linear, bounds: Bounds) -> None:
    low, high = offset.reach(bounds)
    if low < 0 or high >= tape.types[variable].size:
        raise ScheduleError(f"a kernel {what} %{variable}, {tape.types[variable]}, from {low} to {high}")


def _check_once(tape: Tape, root: Root, sinks: Sequence[tuple[Region, Sink, int]]) -> None:
    """Each element is stored by one point, or by one total."""
    if root.places is not None:  # the others are cleared
        return
    size = int(tape.types[root.variable].size)
    counts = np.zeros(size if size <= _MOST else 0, np.int64)
    stored = 0
    for box, sink, outer in sinks:
        places = _places(sink.offset, box[:outer], counted=size <= _MOST)
        stored += places if isinstance(places, int) else places.size
        if not isinstance(places, int):
            counts += np.bincount(places.reshape(-1), minlength=size)
    wrong = np.flatnonzero(counts != 1)
    if stored != size or wrong.size:
        where = f"; element {wrong[0]} is stored {counts[wrong[0]]} times" if wrong.size else ""
        raise ScheduleError(f"a kernel stores {stored} elements of %{root.variable}, which has {size}{where}")


def _outer(sink: Sink, axes: Sequence[int]) -> int:
    """How many of the loops, merged ones among them, stand around the statement that stores."""
    if not sink.merge:
        return len(sink.root.loops)
    return axes[sink.depth - 1] + 1 if sink.depth else 0


def _places(offset: Linear, box: Region, *, counted: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int:
    """Where the rounds of the loops of a box store; only how many there are, if they are not to be ``counted``."""
    if not counted:
        return int(np.prod([stop - start for start, stop in box], dtype=np.int64))
    found = np.full([stop - start for start, stop in box], offset.constant, np.int64)
    for axis, (start, stop) in enumerate(box):
        # A counter that stands still is a number in the offset already.
        steps = offset.coefficient(axis) * np.arange(start, stop)
        found += steps.reshape([-1 if each == axis else 1 for each in range(len(box))])
    return found
