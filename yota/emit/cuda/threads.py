"""How the threads of a kernel share out the points of a loop nest, and the counters of its loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from yota.schedule.nests.groups import Group

THREADS = 256
"""Threads of a block."""
_WARP = 32
_MOST_BLOCKS = 1024
"""Blocks of a kernel that leaves parts of totals, which one more kernel adds up."""
_ENOUGH_BLOCKS = 128
"""Blocks that keep a GPU busy, so that splitting rows would not pay for one more kernel."""
OPEN_BLOCKS = 512
"""Blocks of a kernel whose loops are of any length."""
_MOST_FLAT = 1 << 16
"""Blocks of a kernel without totals."""
_ROUNDS = 8
"""Points that a thread adds up at the least before it is worth another block."""
_LONG_ROW = 1024
"""Extent from which a row has a whole block rather than a warp."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Loop axes and threads.

    kept, reduced: loop axes in order; no axis is reduced in a flat nest.
    across, deep: threads of a block along the kept and along the reduced points.
    splits: parts into which the reduced points are cut, each for other blocks.
    rows: whether neighbouring threads are neighbours along the reduced points.
    open: whether there may be more or fewer points than these when the kernel runs.
    """

    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    threads: int
    across: int
    deep: int
    splits: int
    blocks: int
    rows: bool
    points: tuple[int, int]
    open: bool = False

    @property
    def flat(self) -> bool:
        """Whether there is but one loop, over all points."""
        return not self.reduced

    @property
    def once(self) -> bool:
        """Whether no thread of a flat nest has more points than one."""
        return not self.open and self.blocks * self.threads >= self.points[0]

    @property
    def chunk(self) -> int:
        """Reduced points of one part."""
        return -(-self.points[1] // self.splits)


def separated(group: Group) -> list[Group]:
    """The group, cut where its results are reduced over different loops."""
    found: dict[tuple[bool, ...], Group] = {}
    free = []
    for root in group.roots:
        pattern = tuple(root.reduced)
        if any(pattern) and not all(pattern):
            found.setdefault(pattern, replace(group, roots=[])).roots.append(root)
        else:
            free.append(root)
    if not found:
        return [group]
    first, *_ = found.values()
    first.roots[:0] = free
    return list(found.values())


def shape_of(
    group: Group, axes: Sequence[int], extents: Mapping[int, int], threads: int, width: int = 1, *, open: bool = False
) -> Shape:
    """The shape of a kernel for ``group``, whose results are reduced over the same loops, over all, or over none."""
    partial = next((root.reduced for root in group.roots if any(root.reduced) and not all(root.reduced)), None)
    total = math.prod(extents[axis] for axis in axes)
    if partial is None:
        if open:
            return Shape(tuple(axes), (), threads, threads, 1, 1, OPEN_BLOCKS, False, (total, 1), True)
        totals = any(any(root.reduced) for root in group.roots)
        most = min(_MOST_BLOCKS, -(-total // (threads * _ROUNDS))) if totals else _MOST_FLAT
        blocks = max(1, min(most, -(-total // (threads * width))))
        return Shape(tuple(axes), (), threads, threads, 1, 1, blocks, False, (total, 1))
    reduced = tuple(axis for axis in axes if partial[axis])
    kept = tuple(axis for axis in axes if not partial[axis])
    outer = math.prod(extents[axis] for axis in kept)
    inner = total // outer
    rows = partial[axes[-1]]
    if open:
        across = threads // _WARP if rows else _WARP
        return Shape(kept, reduced, threads, across, threads // across, 1, OPEN_BLOCKS, rows, (outer, inner), True)
    deep = _deep(outer, inner, threads, rows)
    across = threads // deep
    columns = -(-outer // across)
    splits = 1 if columns >= _ENOUGH_BLOCKS else max(1, min(inner // (deep * _ROUNDS), _MOST_BLOCKS // columns))
    # A part that would be empty is left out.
    splits = -(-inner // -(-inner // splits))
    return Shape(kept, reduced, threads, across, deep, splits, min(columns, _MOST_FLAT) * splits, rows, (outer, inner))


def _deep(outer: int, inner: int, threads: int, rows: bool) -> int:
    """Threads of a block along the reduced points: a power of two."""
    if rows:
        return min(threads, _WARP if inner <= _LONG_ROW else threads)
    if outer >= threads * _MOST_BLOCKS // 4:
        return 1
    across = min(_WARP, 1 << (outer - 1).bit_length())
    return max(1, min(threads // across, 1 << (inner.bit_length() - 1)))


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one kernel.

    extents: extents of the loops that are left, each with those that were merged into it.
    type: wide enough for all offsets.
    """

    names: Sequence[str]
    extents: Mapping[int, int]
    type: str

    def over(self, axes: Sequence[int], several: str) -> str:
        """The counter over all points along ``axes``, called ``several`` if it is not that of a single axis.

        >>> Counters(("i", "j"), {0: 4, 1: 5}, "int").over((1,), "point")
        'j'
        """
        return self.names[axes[0]] if len(axes) == 1 else several

    def decomposed(self, axes: Sequence[int], counter: str) -> list[str]:
        """Statements for the counters of single axes out of one over all; none where that is the only one.

        >>> Counters(("i", "j"), {0: 4, 1: 5}, "int").decomposed((0, 1), "point")
        ['const int i = point / 5;', 'const int j = point % 5;']
        """
        lines = []
        step = math.prod(self.extents[axis] for axis in axes)
        for position, axis in enumerate(axes if len(axes) > 1 else ()):
            step //= self.extents[axis]
            text = counter if step == 1 else f"{counter} / {step}"
            if position:
                text = f"{text} % {self.extents[axis]}"
            lines.append(f"const {self.type} {self.names[axis]} = {text};")
        return lines
