"""Where the ops of a tape repeat: runs of iterations, and how an operand changes from one iteration to the next."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from yota.ir.compact_recording import Recorded, Repeating, static_key
from yota.ir.indexing import Index
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Part: TypeAlias = "Sequence[Op] | Repeating"

_CANDIDATES = 12
"""Periods that are tried for each length of a window."""
_LARGE = 8
"""Elements from which on an op that moves or combines them is a heavy one."""
_WINDOWS = 1, 16
"""Ops that are compared at a time where periods are looked for."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Lengths from which a run becomes a loop: below, straight code is the better one, and compiles soon enough.

    trips, ops: of the run; an op counts with its weight.
    heavy: the weight of an op that moves or combines elements. Elementwise ops have the weight 1: straight code
        computes any number of them in one pass over the elements.
    computed: ops of a run from which trips may compute positions, which are then not one kernel in C.
    written: elements of an array up to which trips carry it to read and write single elements.
    """

    trips: int = 16
    ops: int = 1024
    heavy: int = 8
    computed: int = 20_000
    written: int = 4096

    def __call__(self, trips: int, ops: int) -> bool:
        """Whether a run is long enough."""
        return trips >= self.trips and ops >= self.ops

    def weights(self, tape: Tape, ops: Iterable[Op]) -> list[int]:
        """The weight of each op."""
        return [1 if op.primitive.elementwise else self.heavy ** _is_heavy(op, tape.types) for op in ops]


@dataclass(frozen=True, slots=True)
class Run:
    """Ops that repeat: ``trips`` times ``period`` ops, from number ``start``."""

    start: int
    period: int
    trips: int

    @property
    def stop(self) -> int:
        """The number of the first op behind it."""
        return self.start + self.period * self.trips


class Columns:
    """A tape as columns of numbers, one row an op.

    keys: of each op a number that tells its primitive, its static keywords but for positions, its types and its line.
    operands, offsets: the operands of all ops, and the number of the first one of each op.
    positions: of each variable the number of the op that defines it, -1 for inputs and constants.
    constants: of each variable a number that tells the type of a constant, with how it lies in memory, or of an array
        that is an input; 0 for anything else.
    weights: the total weight of the ops ahead of each one.
    results: of each op its variable.
    last: of each op the number of the last op that reads its result; that of ops where it is an output or guarded.
    """

    def __init__(self, tape: Tape, worth: Worth) -> None:
        self.tape, self.worth = tape, worth
        self.parts: Sequence[Part] = tape.ops.parts if isinstance(tape.ops, Recorded) else [tape.ops]
        counted = [np.resize(np.array(worth.weights(tape, _pattern(part)), np.int64), len(part)) for part in self.parts]
        self.weights: Integers = np.cumsum([0, *np.concatenate(counted)])
        self.results: Integers = _joined([_results(part) for part in self.parts])
        outside = [*tape.constants, *(entry.variable for entry in tape.inputs)]
        count = max(max(outside, default=0), int(self.results.max(initial=0))) + 1
        self.positions: Integers = np.full(count, -1, np.int64)
        self.constants: Integers = np.zeros(count, np.int64)
        self.positions[self.results] = np.arange(len(tape.ops))
        kinds: dict[Hashable, int] = {}
        for variable in tape.constants:
            type = tape.types[variable]
            # A Python integer that its dtype does not hold is no element of an array.
            value = tape.constants[variable]
            if type.shape or type.dtype.kind != "i" or abs(value) < 2**63:
                strides = value.strides if type.shape and not value.flags.c_contiguous else None
                kind = type.dtype, type.shape, type.weak, strides
                self.constants[variable] = kinds.setdefault(kind, len(kinds) + 1)
        for entry in tape.inputs:
            type = tape.types[entry.variable]
            if type.shape:
                self.constants[entry.variable] = kinds.setdefault(("input", type), len(kinds) + 1)
        self.keys = self._numbered()
        self.operands: Integers = _joined([_operands(part) for part in self.parts])
        counts = _joined([_counts(part) for part in self.parts])
        self.offsets: Integers = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        readers = np.repeat(np.arange(len(tape.ops)), counts)
        last = np.full(count, -1, np.int64)
        np.maximum.at(last, self.operands, readers)
        last[[*tape.outputs, *(guard.variable for guard in tape.guards)]] = len(tape.ops)
        self.last = last[self.results]

    def _numbered(self) -> Integers:
        tape, types = self.tape, self.tape.types
        known: dict[Hashable, int] = {}
        # Lines by identity: most ops share theirs with others.
        lines, places = dict[Hashable, int](), dict[int, int]()
        found = list[Integers]()
        count = 0
        for part in self.parts:
            numbers = list[int]()
            for number, op in enumerate(_pattern(part), count):
                place = places.get(id(op.location))
                if place is None:
                    place = places[id(op.location)] = lines.setdefault(op.location, len(lines))
                type = types[op.result]
                key: Hashable = op.primitive, place, type.dtype.num, type.shape, type.weak, len(op.operands)
                if op.static:
                    key = key, static_key(op, number)
                numbers.append(known.setdefault(key, number))
            found.append(np.resize(np.array(numbers, np.int64), len(part)))
            count += len(part)
        keys = _joined(found)
        # What comes before a decision, which must be taken again, is like nothing else.
        for guard in tape.guards:
            if guard.after:
                keys[guard.after - 1] = -guard.after
        return keys

    @property
    def writes(self) -> bool:
        """Whether something is written into an array."""
        return any(op.access == AccessMap.WRITE for part in self.parts for op in _pattern(part))

    def types(self) -> Iterator[TensorType]:
        """The types of all variables, some more than once."""
        outside = ([entry.variable for entry in self.tape.inputs], self.tape.constants)
        made = ([op.result for op in _pattern(part)] for part in self.parts)
        return (self.tape.types[each] for variables in (*outside, *made) for each in variables)

    def indices(self, number: int, run: Run) -> list[Index]:
        """What the op with a number within an iteration reads or writes, in each trip."""
        numbers, ops = range(run.start + number, run.stop, run.period), self.tape.ops
        statics = ops.statics(numbers) if isinstance(ops, Recorded) else [ops[each].static for each in numbers]
        return [dict(each)["index"] for each in statics]

    def matrix(self, run: Run) -> Integers:
        """The operands of a run: a row for each iteration."""
        first, last = self.offsets[run.start], self.offsets[run.stop]
        return self.operands[first:last].reshape(run.trips, -1)

    def places(self, run: Run) -> Integers:
        """The number, within an iteration, of the op that reads each column of `matrix`."""
        counts = np.diff(self.offsets[run.start : run.start + run.period + 1])
        return np.repeat(np.arange(run.period), counts)


def _is_heavy(op: Op, types: Mapping[int, TensorType]) -> bool:
    if op.access == AccessMap.READ:
        sizes = [types[op.result].size]
    else:
        sizes = [types[each].size for each in (op.operands[1:2] if op.access == AccessMap.WRITE else op.operands)]
    return bool(max(sizes, default=0) >= _LARGE)


def _joined(columns: Sequence[Any]) -> Integers:
    found = [np.array(each, np.int64) for each in columns]
    return found[0] if len(found) == 1 else np.concatenate(found)


def _pattern(part: Part) -> Sequence[Op]:
    return part if not isinstance(part, Repeating) else [part[number] for number in range(min(part.period, len(part)))]


def _results(part: Part) -> Sequence[int]:
    return part.results if isinstance(part, Repeating) else [op.result for op in part]


def _operands(part: Part) -> Sequence[int]:
    return part.operands if isinstance(part, Repeating) else list(chain.from_iterable([op.operands for op in part]))


def _counts(part: Part) -> Any:
    return np.resize(np.array([len(op.operands) for op in _pattern(part)], np.int64), len(part))


def runs(columns: Columns) -> list[Run]:
    """Runs that repeat, in order; they do not overlap."""
    keys, worth = columns.keys, columns.worth
    known = [part.period for part in columns.parts if isinstance(part, Repeating)]
    # Where the period is known already, the first trips say enough of what else recurs.
    starts = np.cumsum([0, *map(len, columns.parts)]).tolist()
    few = [
        keys[start : start + (2 * part.period if isinstance(part, Repeating) else len(part))]
        for start, part in zip(starts, columns.parts, strict=False)
    ]
    periods = dict.fromkeys([*known, *_periods(np.concatenate(few), len(keys) // worth.trips)])
    found = [each for period in periods for each in _repeating(columns, period)]
    taken = np.zeros(len(columns.keys), bool)
    result: list[Run] = []
    for run in sorted(found, key=lambda each: (each.period * (1 - each.trips), each.start)):
        if taken[run.start : run.stop].any():
            continue
        for part in _steady(columns, run):
            result.append(part)
            taken[part.start : part.stop] = True
    return sorted(result, key=lambda each: each.start)


def _periods(keys: Integers, longest: int) -> list[int]:
    """Distances at which ops recur most, up to the longest."""
    codes = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    width, found = 1, list[int]()
    for window in _WINDOWS:
        while width < window < codes.size:
            factor = np.uint64(pow(0xC2B2AE3D27D4EB4F, width, 1 << 64))
            codes = codes[:-width] + factor * codes[width:]
            width *= 2
        order = np.argsort(codes, kind="stable")
        gaps = np.diff(order)[np.diff(codes[order]) == 0]
        gaps = gaps[gaps <= longest]
        periods, counts = np.unique(gaps, return_counts=True)
        best = np.argsort(-periods * counts, kind="stable")[:_CANDIDATES]
        found += [int(each) for each in periods[best] if each not in found]
    return found


def _repeating(columns: Columns, period: int) -> Iterator[Run]:
    """Runs of ops of which each has the key of the one a period later."""
    keys, worth, ahead = columns.keys, columns.worth, columns.weights
    starts, stops = _stretches(keys[period:] == keys[:-period])
    trips = (stops - starts) // period + 1
    ops = ahead[starts + period * trips] - ahead[starts]
    for number in np.flatnonzero((trips >= worth.trips) & (ops >= worth.ops)):
        yield Run(int(starts[number]), period, int(trips[number]))


def _stretches(truths: Any) -> tuple[Integers, Integers]:
    """Where truths are true without a break: each beginning and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], truths, [False]])))
    return edges[::2], edges[1::2]


def _steady(columns: Columns, run: Run) -> Iterator[Run]:
    """Parts of a run in which each operand goes on as it began, cut where the fewest values go from trip to trip."""
    lengths = _lengths(columns, run)
    open_parts = [(0, run.trips)]
    while open_parts:
        low, high = open_parts.pop()
        within = np.minimum(lengths[low:high], np.arange(high - low, 0, -1))
        first = low + int(np.argmax(within)) if high > low else low
        trips = int(within[first - low]) if high > low else 0
        part = Run(run.start + first * run.period, run.period, trips)
        if not columns.worth(trips, int(columns.weights[part.stop] - columns.weights[part.start])):
            continue
        open_parts += [(low, first), (first + trips, high)]
        cut = _cut(columns, part)
        yield Run(part.start + cut, part.period, part.trips - (cut > 0))


def _lengths(columns: Columns, run: Run) -> Integers:
    """How many trips from each one on all operands go on as they do there."""
    variables = columns.matrix(run)
    positions, constants = columns.positions[variables], columns.constants[variables]
    steps = np.diff(positions, axis=0)
    inside = (positions[:-1] >= 0) & (positions[1:] >= 0)
    ways = [
        variables[1:] == variables[:-1],
        (steps == run.period) & inside,
        (constants[1:] == constants[:-1]) & (constants[1:] > 0),
    ]
    found = np.arange(run.trips, 0, -1)
    # Most operands go on in one way from the first trip to the last.
    open_ = ~np.any([way.all(axis=0) for way in ways], axis=0)
    if open_.any():
        steps, inside = steps[:, open_], inside[:, open_]
        # Results of another loop, one after the other.
        rows = _ends((np.diff(steps, axis=0) == 0) & inside[1:] & inside[:-1]) + 1
        rows = np.concatenate([rows, np.ones((1, rows.shape[1]), np.int64)])
        lengths = np.maximum.reduce([rows, *(_ends(way[:, open_]) for way in ways)])
        found = np.minimum(found, lengths.min(axis=1))
    return found


def _ends(equal: Any) -> Integers:
    """For each row and column, how many rows in a row agree from there on, with a last row that agrees with none."""
    count = len(equal) + 1
    breaks = np.concatenate(
        [np.where(equal, count, np.arange(count - 1)[:, None]), np.full((1, equal.shape[1]), count)]
    )
    breaks[-1] = count - 1
    following = np.minimum.accumulate(breaks[::-1], axis=0)[::-1]
    return following - np.arange(count)[:, None] + 1


def _cut(columns: Columns, run: Run) -> int:
    """Where an iteration best begins."""
    period = run.period
    second = Run(run.stop - 2 * period, period, 2)
    variables, places = columns.matrix(second), columns.places(second)
    positions = columns.positions[variables]
    moving = (positions[1] - positions[0] == period) & (positions[0] >= 0)
    distances = positions[1][moving] - (second.start + period)
    origins, uses = distances % period, places[moving] - period * (distances // period)
    ends = np.arange(period)
    np.maximum.at(ends, origins, uses)
    counts = np.zeros(period + 1, np.int64)
    for origin, end in enumerate(ends.tolist()):
        whole, rest = divmod(end - origin, period)
        counts += whole
        # Cuts behind the origin, up to the last use.
        stop = origin + 1 + rest
        counts[origin + 1 : min(stop, period)] += 1
        counts[: max(0, stop - period)] += 1
    return int(np.argmin(counts[:period]))
