"""Ops during recording: of ops that repeat, only the numbers in which they differ are stored, in columns."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, overload

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Primitive
from yota.ir.semantics import AccessMap
from yota.ir.tape import Keywords, Op, TapeBuilder
from yota.ir.types import NUMBERS, TensorType

_WINDOW = 4096
"""Ops in which a pattern is looked for that has been there twice."""
_LONGEST_WINDOW = 64
"""Neighbours that a trip may read, each trip others."""
_FEWEST = 1024
"""Ops that repeat from which on they are kept as columns."""
_PATIENCE = 8192
"""Ops of a pattern after which another way to record it may be worth its time."""
_LATE = 12_288
"""Variables after which, without a pattern too."""
_NEVER = sys.maxsize
_result = attrgetter("result")
_KINDS = {type: kind for kind, type in NUMBERS.items()}
"""The classes of numbers, by their types."""


def static_key(op: Op, number: int) -> Hashable:
    """What the static keywords of ops that repeat have in common; ``number`` for those that are like no others."""
    if op.access in (AccessMap.READ, AccessMap.WRITE):
        index = op.keyword("index")
        if op.access == AccessMap.READ and is_window(index):
            return ("window", index[0].stop - index[0].start, *index[1:])
        return tuple([int if isinstance(entry, int) else entry for entry in index])
    try:
        hash(op.static)
    except TypeError:
        return number
    # The text tells 0.0 from -0.0 and from False.
    return op.static, repr(op.static)


def is_window(index: tuple[Any, ...]) -> bool:
    """Whether an index is of some neighbours along the first axis."""
    first, *rest = index
    return (
        isinstance(first, Slice)
        and first.step == 1
        and first.stop is not None
        and 0 < first.stop - first.start <= _LONGEST_WINDOW
        and all(isinstance(entry, Slice) for entry in rest)
    )


class _Place:
    """An op of a pattern, and the place after it."""

    __slots__ = (
        *("arity", "code", "first", "following", "form", "is_element", "kind", "location", "moves", "number", "offset"),
        *("op", "primitive", "type", "writes"),
    )

    def __init__(self, number: int, op: Op, type: TensorType, first: int, moved: int) -> None:
        self.number, self.op, self.type = number, op, type
        self.primitive, self.location, self.arity = op.primitive, op.location, len(op.operands)
        self.first = first
        self.form = static_key(op, -1) if op.static else None
        index = op.keyword("index") if op.access in (AccessMap.READ, AccessMap.WRITE) else ()
        is_moving = any(isinstance(entry, int) for entry in index)
        is_moving = is_moving or (op.access == AccessMap.READ and bool(index) and is_window(index))
        self.moves = moved if is_moving else -1
        """The number of the place among those whose positions may be others each time; -1 if it is none of them."""
        self.is_element = self.moves >= 0 and self.form == (int,) and len(op.static) == 1
        """Whether one element of a vector is read or written."""
        self.following = self
        self.kind: Any = None
        """The class of results that are numbers, of few operands or read from vectors, and of vectors with one element
        written; None for other ops."""
        self.writes = self.is_element and op.access == AccessMap.WRITE
        if self.writes:
            self.kind = np.ndarray
        elif self.is_element or (self.arity in (1, 2) and not op.static):
            self.kind = _KINDS.get(type)
        self.code: Any = None
        """The code of `location` and its last instruction there; None until an op at the place was recorded."""
        self.offset = -1

    def fits(self, static: Keywords) -> bool:
        """Whether keywords are like those of the place."""
        if not isinstance(static, tuple):
            return False
        if self.is_element:
            index = static[0][1]
            return len(index) == 1 and type(index[0]) is int
        return bool(self.op.static and static) and static_key(Op(0, self.primitive, (), static), -2) == self.form


class Repeating:
    """Ops that are those of a pattern over and over, but for variables and positions.

    results, operands: the variables of all ops.
    statics: the keywords of all ops at places that move.
    """

    __slots__ = ("moving", "operands", "places", "results", "statics", "width")

    def __init__(self, pattern: Sequence[Op], types: Iterable[TensorType]) -> None:
        self.places: list[_Place] = []
        self.width = self.moving = 0
        for number, (op, type) in enumerate(zip(pattern, types, strict=True)):
            made = _Place(number, op, type, self.width, self.moving)
            self.width += made.arity
            self.moving += made.moves >= 0
            self.places.append(made)
        for number, place in enumerate(self.places):
            place.following = self.places[(number + 1) % len(self.places)]
        self.results: list[int] = []
        self.operands: list[int] = []
        self.statics: list[tuple[tuple[str, Any], ...]] = []

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, number: int) -> Op:
        trip, place = divmod(number, self.period)
        found = self.places[place]
        first = trip * self.width + found.first
        op = found.op
        static = op.static if found.moves < 0 else self.statics[trip * self.moving + found.moves]
        operands = tuple(self.operands[first : first + found.arity])
        return Op(self.results[number], op.primitive, operands, static, op.location)

    @property
    def period(self) -> int:
        """The length of the pattern."""
        return len(self.places)

    def __iter__(self) -> Iterator[Op]:
        return (self[number] for number in range(len(self)))

    def column(self, numbers: range) -> list[tuple[tuple[str, Any], ...]]:
        """The static keywords of some ops."""
        found = self.places[numbers.start % self.period]
        if numbers.step % self.period:
            return [self[number].static for number in numbers]
        if found.moves < 0:
            return [found.op.static] * len(numbers)
        first, step = (each // self.period * self.moving for each in (numbers.start, numbers.step))
        return self.statics[first + found.moves :: step][: len(numbers)]


class Recorded(Sequence[Op]):
    """A list of ops, some of which are in columns: parts of both kinds."""

    def __init__(self) -> None:
        self.tail: list[Op] = []
        """The last part, which ops are appended to."""
        self.parts: list[list[Op] | Repeating] = [self.tail]
        self._starts = [0]

    def __len__(self) -> int:
        return self._starts[-1] + len(self.parts[-1])

    @overload
    def __getitem__(self, number: int) -> Op: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Op, ...]: ...
    def __getitem__(self, number: int | slice) -> Op | tuple[Op, ...]:
        if isinstance(number, slice):
            return tuple([part[each] for part, some in self.within(range(len(self))[number]) for each in some])
        number = range(len(self))[number]
        place = bisect_right(self._starts, number) - 1
        return self.parts[place][number - self._starts[place]]

    def __iter__(self) -> Iterator[Op]:
        for part in self.parts:
            yield from part

    def __setitem__(self, number: int, op: Op) -> None:
        place = bisect_right(self._starts, number) - 1
        found = self.parts[place] = list(self.parts[place])
        found[number - self._starts[place]] = op
        if place == len(self.parts) - 1:
            self.tail = found

    def within(self, numbers: range) -> Iterator[tuple[list[Op] | Repeating, range]]:
        """The parts that ops with ascending ``numbers`` are in, with their numbers there."""
        for part, start in zip(self.parts, self._starts, strict=True):
            skipped = max(0, -((numbers.start - start) // numbers.step))
            some = range(numbers.start - start, min(numbers.stop - start, len(part)), numbers.step)[skipped:]
            if some:
                yield part, some

    def statics(self, numbers: range) -> list[tuple[tuple[str, Any], ...]]:
        """The static keywords of ops with ascending ``numbers``."""
        return [
            each
            for part, some in self.within(numbers)
            for each in (part.column(some) if isinstance(part, Repeating) else [part[number].static for number in some])
        ]

    def add(self, part: list[Op] | Repeating) -> None:
        """Append a part."""
        self._starts.append(len(self))
        self.parts.append(part)
        if isinstance(part, list):
            self.tail = part

    def outline(self) -> list[Op]:
        """The ops, of those in columns the first and the last trip."""
        found: list[Op] = []
        for part in self.parts:
            if isinstance(part, list):
                found += part
            else:
                every = range(len(part))
                found += [part[number] for number in sorted({*every[: part.period], *every[-part.period :]})]
        return found

    def find(self, variable: int) -> Op | None:
        """The op that defines ``variable``; variables ascend."""
        for part in reversed(self.parts):
            if isinstance(part, Repeating):
                number = bisect_left(part.results, variable)
            else:
                number = bisect_left(part, variable, key=_result)
            if number < len(part):
                found = part[number]
                if found.result == variable:
                    return found
        return None


class Recorder(TapeBuilder):
    """A builder that keeps ops that repeat as columns, once it is told that it may (`looks`)."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ops: Any = Recorded()
        self.looks = False
        self._next = self._wait = _WINDOW
        """The length of the tail at which a pattern is looked for; how many ops are awaited from a pattern's end."""
        self.place: _Place | None = None
        """The place in the pattern of what may come next."""
        self._repeating = Repeating((), ())
        self.alarm: Callable[[], None] | None = None
        """What is called where a pattern has been there for long, or the recording has become long without one."""
        self._due = _NEVER
        """The number of variables at which that is."""
        self._late = _LATE
        """The number of variables at which it is called without a pattern."""

    def emit(
        self, primitive: Primitive, operands: Iterable[int], static: Keywords = (), type: TensorType | None = None
    ) -> int:
        """Append an op; its type is inferred by default."""
        if not (type and isinstance(static, tuple) and isinstance(operands, tuple)):
            operands, static, type = self.completed(primitive, operands, static, type)
        place = self.place
        if place is not None:
            if (
                primitive is place.primitive
                and self.location is place.location
                and (type is place.type or type == place.type)
                and len(operands) == place.arity
                and (static is place.op.static or place.fits(static))
            ):
                return self.follow(place, operands, static)
            self._end()
        self.count = result = self.count + 1
        self.types[result] = type
        tail = self.ops.tail
        tail.append(Op(result, primitive, operands, static, self.location))
        if self.looks and len(tail) >= self._next:
            self._look()
        if result >= self._late and self.alarm is not None:
            self._late *= 2
            self.alarm()
        return result

    def follow(self, place: _Place, operands: tuple[int, ...], static: Any) -> int:
        """Append an op that is as the pattern has it at ``place``, where the pattern is."""
        self.count = result = self.count + 1
        self.types[result] = place.type
        found = self._repeating
        found.results.append(result)
        found.operands += operands
        if place.moves >= 0:
            found.statics.append(static)
        self.place = place.following
        if result >= self._due and self.alarm is not None:
            self._due = _NEVER
            self.alarm()
        return result

    def definition(self, variable: int) -> Op | None:
        """The op that defines ``variable``; None for inputs and constants."""
        found: Op | None = self.ops.find(variable)
        return found

    def finished(self) -> tuple[Op, ...]:
        """The ops so far; a sequence that makes those in columns when they are read."""
        return tuple(self.ops.tail) if len(self.ops.parts) == 1 else self.ops

    def _end(self) -> None:
        """What comes next is not of the pattern."""
        ops, found = self.ops, self._repeating
        self.place, self._due = None, _NEVER
        if len(found) < _FEWEST:
            del ops.parts[-1], ops._starts[-1]
            ops.tail += [found[number] for number in range(len(found))]
        else:
            ops.add([])
        self._wait = _WINDOW if len(found) > 4 * _WINDOW else 2 * self._wait
        self._next = len(ops.tail) + self._wait

    def _look(self) -> None:
        tail = self.ops.tail
        window = tail[-_WINDOW:]
        period = _period([self._key(number, op) for number, op in enumerate(window)])
        self._wait *= 2
        self._next = len(tail) + self._wait
        if period:
            pattern = window[-period:]
            self._repeating = Repeating(pattern, [self.types[op.result] for op in pattern])
            self.place = self._repeating.places[0]
            self.ops.add(self._repeating)
            self._due = self.count + _PATIENCE

    def _key(self, number: int, op: Op) -> Hashable:
        static = static_key(op, number) if op.static else None
        return op.primitive, id(op.location), self.types[op.result], len(op.operands), static


def _period(keys: Sequence[Hashable]) -> int:
    """The distance at which as many as possible of the last keys recur, two times at least; 0 if there is none."""
    known: dict[Hashable, int] = {}
    codes = [known.setdefault(key, number) for number, key in enumerate(reversed(keys))]
    # The longest border of each beginning (Knuth, Morris and Pratt).
    borders = [0]
    best = length = 0
    for number in range(1, len(codes)):
        while length and codes[number] != codes[length]:
            length = borders[length - 1]
        length += codes[number] == codes[length]
        borders.append(length)
        if 2 * (number + 1 - length) <= number + 1:
            best = number + 1 - length
    return best
