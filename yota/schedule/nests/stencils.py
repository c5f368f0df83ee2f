"""Results that their readers look at in several places, as the steps of a stencil do: each is kept in memory.

Loops that computed them again for every reader would do a multiple of the work with each step.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from yota.ir.access_maps import pieces
from yota.ir.indexing import Index
from yota.ir.semantics import JOINS, AccessMap
from yota.ir.tape import Op, Tape
from yota.optimize.array_writes import is_basic, is_view, meet

SMALLEST = 65
"""Elements; smaller arrays are written out, in short functions."""
_FEWEST, _MOST_WRITTEN = 17, 10_000
"""Elements from which on an array is kept in long functions: where elements times ops are more than so many."""
_MOST_PLACES = 16
_LARGE = 4
"""A part of at least the fourth of an array is large."""
_MOST_WORK = 10_000
_PARTS = frozenset((AccessMap.READ, AccessMap.WRITE, AccessMap.SCATTER))
_TOGETHER = JOINS | {AccessMap.WRITE, AccessMap.SCATTER}

Place: TypeAlias = tuple[str, tuple[int, ...], Index]
"""Whether elements are taken from the index or put there, in an array of which shape."""


def read_apart(tape: Tape, wanted: Collection[int], costs: Mapping[int, int], most: int) -> set[int]:
    """Which results among ``wanted`` are looked at in places that overlap, directly or through elementwise ops.

    What ops make of what is in memory is not kept if that costs at most ``most`` (of ``costs``).
    """
    alone, _ = _work(tape, costs, frozenset(), most)
    smallest = min(SMALLEST, max(_FEWEST, _MOST_WRITTEN // max(1, len(tape.ops))))
    large = {each for each in wanted if int(tape.types[each].size) >= smallest}
    read = {operand for op in tape.ops for operand in op.operands}
    worthy = {each for each in large & read if alone.get(each, 0) > most}
    if not worthy:  # as in scalar code, however long
        return set()
    return _work(tape, costs, _candidates(tape, worthy, costs, alone, most), most)[1]


def _candidates(
    tape: Tape, worthy: Collection[int], costs: Mapping[int, int], work: Mapping[int, int], most: int
) -> set[int]:
    """What is read apart, as long as nothing that it is made from is kept."""
    read: dict[int, _Read] = {}
    found: set[int] = set()
    ends = {*tape.outputs, *(guard.variable for guard in tape.guards)}
    for op in reversed(tape.ops):
        own = read.pop(op.result, None) or _Read()
        is_apart = own.is_apart
        cost = own.cost + costs.get(op.result, 0)
        if is_apart and op.result in worthy and not (cost <= most and _only_source(tape, op, work) in worthy):
            found.add(op.result)
            is_apart, own, cost = False, _Read(), 0
        own.whole |= op.result in found or op.result in ends
        for operand, place in _looks(tape, op):
            read.setdefault(operand, _Read()).places[place] = None
        sizes = [int(tape.types[each].size) for each in (op.result, *op.operands[:1])]
        if op.access == AccessMap.READ and sizes[0] * _LARGE >= sizes[1]:
            read.setdefault(op.operands[0], _Read()).in_part = True
        for operand in _origins(tape, op):
            read.setdefault(operand, _Read()).take(own, is_apart, cost if is_apart else 0)
        if not _is_local(tape, op) and op.access not in _TOGETHER:
            for operand in op.operands:
                read.setdefault(operand, _Read()).whole = True
    return found


def _only_source(tape: Tape, op: Op, work: Mapping[int, int]) -> int | None:
    """Of what is cheaply made of one other result: that one, which can be kept in its place."""
    sources = {operand for operand in op.operands if work.get(operand)}
    if len(sources) != 1 or not _is_local(tape, op):
        return None
    return next((each for each in _origins(tape, op) if each in sources), None)


@dataclass(slots=True)
class _Read:
    """How others read a result.

    places: where they look at it.
    whole, in_part: whether something of its shape is made of it that is needed as a whole, and whether some look at a
        large part.
    apart: whether an element is needed for several places of what is made of it.
    cost: work of what is made of it and then read apart.
    """

    places: dict[Place, None] = field(default_factory=dict)
    whole: bool = False
    in_part: bool = False
    apart: bool = False
    cost: int = 0

    @property
    def is_apart(self) -> bool:
        return self.apart or (self.whole and self.in_part) or _overlap(list(self.places)[:_MOST_PLACES])

    def take(self, other: _Read, apart: bool, cost: int) -> None:
        """Add how something is read that is made of this, element by element."""
        self.places.update(other.places)
        self.apart |= apart
        self.whole |= other.whole
        self.in_part |= other.in_part
        self.cost = max(self.cost, cost)


def _origins(tape: Tape, op: Op) -> Iterator[int]:
    """What an op that does little by itself is made from, element by element."""
    if op.primitive.elementwise:
        shape = tape.types[op.result].shape
        yield from (operand for operand in op.operands if tape.types[operand].shape == shape)
    elif is_view(op, tape.types):
        yield op.operands[0]


def _is_local(tape: Tape, op: Op) -> bool:
    return op.primitive.elementwise or is_view(op, tape.types)


def _work(
    tape: Tape, costs: Mapping[int, int], candidates: Collection[int], most: int
) -> tuple[dict[int, int], set[int]]:
    """The work for one element of each result from what is in memory, and what is kept there of ``candidates``."""
    found: dict[int, int] = {}
    kept: set[int] = set()
    for op in tape.ops:
        before = [0 if operand in kept else found.get(operand, 0) for operand in op.operands]
        own = 0 if op.access in _TOGETHER else costs.get(op.result, 0)
        found[op.result] = min(own + _through(tape, op, before), _MOST_WORK)
        if op.result in candidates and found[op.result] > most:
            kept.add(op.result)
    return found, kept


def _through(tape: Tape, op: Op, before: list[int]) -> int:
    """The work behind the operands of an op, for one element of its result."""
    if op.access == AccessMap.WRITE:
        return max(before)
    if op.access in _TOGETHER:
        sizes = [int(tape.types[operand].size) for operand in op.operands]
        total: int = sum(map(operator.mul, sizes, before))
        return -(-total // max(1, int(tape.types[op.result].size)))
    return sum(before)


def _looks(tape: Tape, op: Op) -> Iterator[tuple[int, Place]]:
    """What an op takes apart or puts together, and where."""
    looks = pieces(op)
    if not any(arrays for _, arrays, _ in looks):
        way, whole = ("from", op.operands[0]) if op.access == AccessMap.READ else ("into", op.result)
        shape = tape.types[whole].shape
        yield from ((op.operands[number], (way, shape, index)) for number, _, index in looks if is_basic(index))


def _overlap(places: list[Place]) -> bool:
    return any(one[:2] == two[:2] and meet(one[2], two[2], one[1]) for one, two in itertools.combinations(places, 2))


def source_of_parts(tape: Tape, definitions: Mapping[int, Op], visited: Collection[int], variable: int) -> int | None:
    """Half way to ``variable``, a result that is taken apart or put together again, if there is one."""
    parts = (definitions[each] for each in {*visited, variable} if each in definitions)
    sources = {operand for op in parts if op.access in _PARTS for operand in op.operands} & set(visited)
    found = [
        each
        for each in sources
        if int(tape.types[each].size) >= SMALLEST and not is_view(definitions[each], tape.types)
    ]
    return sorted(found)[len(found) // 2] if found else None
