"""Which arrays may share memory, which index arrays hold no number twice or below 0, and chains of writes."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.ir.extents import Extent, at_most
from yota.ir.indexing import GATHER, NEWAXIS, Index, Slice
from yota.ir.semantics import VIEWS, AccessMap, Positions
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType


def is_view(op: Op, types: Mapping[int, TensorType]) -> bool:
    """Whether the result of ``op`` is a view of its first operand, which costs nothing."""
    access = op.access
    if access == AccessMap.READ:
        return GATHER not in op.keyword("index")
    return access in VIEWS or (op.semantics.component != "" and types[op.operands[0]].is_complex)


def shares(op: Op, types: Mapping[int, TensorType]) -> tuple[int, ...]:
    """Operands whose memory the result may be; unknown functions are taken to share all."""
    if not types[op.result].shape:
        return ()
    if is_view(op, types) or op.semantics.component:
        return op.operands[:1]
    if op.access == AccessMap.CALL:
        return op.operands if op.keyword("form").view else ()
    # Of one operand an einsum is a view, or a sum.
    owns = op.semantics.owns or op.access == AccessMap.READ or (op.access == AccessMap.EINSUM and len(op.operands) > 1)
    return () if owns else op.operands


def roots(tape: Tape, apart: frozenset[int] = frozenset()) -> dict[int, frozenset[int]]:
    """For each variable, those whose memory it may share; itself if it owns its memory, as all in ``apart`` do."""
    found = {item.variable: frozenset((item.variable,)) for item in tape.inputs}
    found.update({variable: frozenset((variable,)) for variable in tape.constants})
    for op in tape.ops:
        operands = () if op.result in apart else shares(op, tape.types)
        shared = frozenset().union(*(found[operand] for operand in operands))
        own = frozenset() if is_view(op, tape.types) and shared else frozenset((op.result,))
        found[op.result] = shared | own
    return found


_PERMUTATIONS = (AccessMap.RESHAPE, AccessMap.TRANSPOSE)
_NONE: Mapping[int, Sequence[Any]] = MappingProxyType({})


def distinct(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Integer variables whose values, ``known`` at several sizes or constant, differ and are >= 0; and masks."""
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    found = {variable for variable, arrays in values.items() if all(_apart(np.asarray(each)) for each in arrays)}
    found.update(variable for variable, type in tape.types.items() if type.dtype.kind == "b" and type.shape)
    for op in tape.ops:
        kind = op.semantics.positions
        # Positions in an array are each there at most once; what only selects elements takes none twice.
        is_distinct = kind == Positions.TRUE or (kind == Positions.SORTED and tape.types[op.operands[0]].ndim == 1)
        selects = GATHER not in op.keyword("index") if op.access == AccessMap.READ else op.access in _PERMUTATIONS
        if is_distinct or (selects and op.operands[0] in found):
            found.add(op.result)
    return frozenset(found)


def unsigned(tape: Tape, known: Mapping[int, Sequence[Any]] = _NONE) -> frozenset[int]:
    """Constant arrays of integers, none below 0; ``known`` is that of `distinct`."""
    values = {**{variable: (value,) for variable, value in tape.constants.items()}, **known}
    found = {variable: tuple(map(np.asarray, arrays)) for variable, arrays in values.items()}
    return frozenset(
        variable
        for variable, arrays in found.items()
        if all(each.dtype.kind in "iu" and each.ndim > 0 and not np.any(each < 0) for each in arrays)
    )


def _apart(value: np.ndarray) -> bool:
    if value.dtype.kind not in "iu" or not value.size:
        return False
    ordered = np.sort(value, axis=None)
    return bool(ordered[0] >= 0 and np.all(ordered[1:] != ordered[:-1]))


_LONGEST_WALK = 64


@dataclass(slots=True)
class Chain:
    """An array and the writes into it, one after the other.

    rows: for a first index that is a number, no size: positions of the writes there.
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
        known = self.rows.setdefault(first[0], []) if first and type(first[0]) is int else self.wide
        known.append(position)
        return position

    def candidates(self, position: int, index: Index) -> Iterator[int]:
        """Positions up to ``position`` of writes that may meet ``index``, the latest first."""
        if not index or type(index[0]) is not int:
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
    return all(_overlap(a, b, n) for a, b, n in zip(one, two, shape, strict=True))


def covers(one: Index, two: Index, shape: tuple[int, ...]) -> bool:
    """Whether a basic index of an array of ``shape`` is certain to have all elements of another one."""
    return all(_covers(a, b, n) for a, b, n in zip(one, two, shape, strict=True))


def _covers(one: object, two: object, extent: int) -> bool:
    if one in (two, Slice(0, extent)):
        return True
    here, there = as_slice(one), as_slice(two)
    if is_sized(here, there):
        (low, high), (least, most) = here.ends(), there.ends()
        return here.step == 1 and at_most(low, least) and at_most(most, high)
    own, other = here.positions(extent), there.positions(extent)
    return not other or (other[0] in own and other[-1] in own and (len(other) == 1 or other.step % own.step == 0))


def _overlap(one: object, two: object, extent: int) -> bool:
    """Whether two entries may share an element of an axis; interleaved slices of the same step do not."""
    here, there = as_slice(one), as_slice(two)
    apart = here.start - there.start
    if here.step == there.step and type(apart) is int and apart % here.step:
        return False
    if is_sized(here, there):
        (low, high), (least, most) = here.ends(), there.ends()
        return not (at_most(high, least) or at_most(most, low))
    own, other = here.positions(extent), there.positions(extent)
    if not own or not other:
        return False
    return max(own[0], own[-1]) >= min(other[0], other[-1]) and max(other[0], other[-1]) >= min(own[0], own[-1])


def as_slice(entry: object) -> Slice:
    """A number as the slice of one element; a slice as it is."""
    if isinstance(entry, Slice):
        return entry
    assert isinstance(entry, int)
    return Slice(entry, entry + 1)


def is_sized(*parts: Slice) -> bool:
    """Whether slices depend on named sizes, so that what they have in common may depend on them too."""
    return any(isinstance(part.start, Extent) or isinstance(part.stop, Extent) for part in parts)
