"""Chains of writes into one array: `simplify` finds the write to an index without a walk over all of them."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, TapeBuilder

_LONGEST_WALK = 64


@dataclass(slots=True)
class Chain:
    """An array and the writes into it, one after the other.

    base: the array before the first write.
    ops: the writes in their order.
    rows: for a first index that is a number: positions of the writes there.
    wide: positions of the other writes.
    """

    base: int
    ops: list[Op] = field(default_factory=list)
    rows: dict[int, list[int]] = field(default_factory=dict)
    wide: list[int] = field(default_factory=list)

    def append(self, op: Op) -> int:
        """Add a write; its position."""
        position = len(self.ops)
        self.ops.append(op)
        first = op.keyword("index")[:1]
        known = self.rows.setdefault(first[0], []) if first and isinstance(first[0], int) else self.wide
        known.append(position)
        return position

    def candidates(self, position: int, index: Index) -> Iterator[int]:
        """Positions up to ``position`` of writes that may meet ``index``, the latest first."""
        if not index or not isinstance(index[0], int):
            return iter(range(position, -1, -1))
        both = (self.rows.get(index[0], []), self.wide)
        ahead = (reversed(known[: bisect_right(known, position)]) for known in both)
        return heapq.merge(*ahead, reverse=True)


class Chains:
    """The chains of writes on a tape under construction."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Chain, int]] = {}

    def ending_in(self, builder: TapeBuilder, variable: int) -> tuple[Chain, int] | None:
        """The chain whose write at the position given makes ``variable``; None if no write does."""
        pending: list[Op] = []
        op = builder.definition(variable)
        while op is not None and op.access == AccessMap.WRITE and op.result not in self._known:
            pending.append(op)
            op = builder.definition(op.operands[0])
        for op in reversed(pending):
            chain, position = self._known.get(op.operands[0], (None, -1))
            if chain is None or position != len(chain.ops) - 1:
                chain = Chain(op.operands[0])
            self._known[op.result] = chain, chain.append(op)
        return self._known.get(variable)

    def meeting(
        self, builder: TapeBuilder, variable: int, index: Index, shape: tuple[int, ...]
    ) -> tuple[int, Op | None]:
        """The array before all writes that do not meet ``index``, and the write that does, which made that array."""
        for _ in range(_LONGEST_WALK):
            found = self.ending_in(builder, variable)
            if found is None:
                break
            chain, position = found
            for tried, candidate in enumerate(chain.candidates(position, index)):
                op = chain.ops[candidate]
                written = op.keyword("index")
                if tried == _LONGEST_WALK or not is_basic(written) or meet(written, index, shape):
                    return op.result, op
            variable = chain.base
        return variable, None


def is_basic(index: Index) -> bool:
    """Whether an index is of numbers and slices alone."""
    return GATHER not in index and NEWAXIS not in index


def meet(one: Index, two: Index, shape: tuple[int, ...]) -> bool:
    """Whether two basic indices of an array of ``shape`` may share an element."""
    return all(overlap(positions(a, n), positions(b, n)) for a, b, n in zip(one, two, shape, strict=True))


def covers(one: Index, two: Index, shape: tuple[int, ...]) -> bool:
    """Whether a basic index of an array of ``shape`` has all elements of another one."""
    ranges = ((positions(a, n), positions(b, n)) for a, b, n in zip(one, two, shape, strict=True))
    return all(
        not there or (there[0] in here and there[-1] in here and (len(there) == 1 or there.step % here.step == 0))
        for here, there in ranges
    )


def positions(entry: object, extent: int) -> range:
    """What a number or slice covers of an axis."""
    if isinstance(entry, Slice):
        return entry.positions(extent)
    assert isinstance(entry, int)
    return range(entry, entry + 1)


def overlap(one: range, two: range) -> bool:
    """Whether two ranges may share a number; interleaved ones of the same step do not."""
    if not one or not two:
        return False
    if one.step == two.step and (one.start - two.start) % one.step:
        return False
    return max(one[0], one[-1]) >= min(two[0], two[-1]) and max(two[0], two[-1]) >= min(one[0], one[-1])
