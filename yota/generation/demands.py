"""What sizes must be for the reads of a function to lie inside of its arrays, as NumPy checks when it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from yota.ir.access import pieces
from yota.ir.indexing import GATHER, NEWAXIS, Slice
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape


def demand(tapes: Sequence[Tape], required: Callable[[Sequence[int]], None]) -> None:
    """Call ``required`` with values, one for each of the ``tapes`` of several sizes, that must not be negative."""
    for ops in zip(*(tape.ops for tape in tapes), strict=True):
        rows = [list(_distances(op, tape)) for op, tape in zip(ops, tapes, strict=True)]
        for values in zip(*rows, strict=True):
            required(values)


def _distances(op: Op, tape: Tape) -> Iterator[int]:
    """How far each read of an op is inside of its array, at one size."""
    if op.semantics.fold in ("maximum", "minimum"):
        shape = tape.types[op.operands[0]].shape
        yield from (shape[axis] - 1 for axis in op.keyword("axis"))
    for _, arrays, index in pieces(op):
        shape = tape.types[op.operands[0] if op.access == AccessMap.READ else op.result].shape
        yield from _inside(index, shape, [op.operands[each] for each in arrays], tape)


def _inside(index: Any, shape: Sequence[int], arrays: list[int], tape: Tape) -> Iterator[int]:
    extents = iter(shape)
    for entry in index:
        if entry is NEWAXIS:
            continue
        extent = next(extents)
        if entry is GATHER:
            yield from _positions(tape.constants.get(arrays.pop(0)), extent)
        elif isinstance(entry, Slice):
            yield from _sliced(entry, extent)
        else:
            yield from (int(entry), extent - 1 - int(entry))


def _positions(array: Any, extent: int) -> Iterator[int]:
    """Positions that are constants; those that are arguments are not known."""
    values = np.asarray(0 if array is None else array)
    if values.dtype.kind in "iu" and values.size:
        yield extent - 1 - int(values.max())
        yield extent + min(int(values.min()), 0)


def _sliced(entry: Slice, extent: int) -> Iterator[int]:
    start, stop = entry.start, entry.stop
    if entry.step > 0:
        stop = extent if stop is None else stop
        yield from (stop - start, extent - stop)
    else:
        yield from (extent - 1 - start, start - (-1 if stop is None else stop))
