"""Loops of a tape as loops in a function of a standalone file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from yota.emit.language import Language
from yota.emit.names import Names
from yota.emit.tree import Alias, Assign, Break, Copy, Define, Fill, Loop, Scope, Statement, Variable, View
from yota.ir.extents import Extent
from yota.ir.regions import Region
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import cone

Body: TypeAlias = Callable[[Tape, Sequence[str], Sequence[str]], list[Statement]]
"""Statements that compute the outputs of a tape, from texts of its inputs and names of its outputs."""


@dataclass(frozen=True, slots=True)
class _Carry:
    """A carried value.

    next: what its next value is called, None for an array that takes over another one.
    sources: the carried arrays that it takes over in turn; its own number for one that stays.
    row: the number of the stacked output that it is a row of.
    room: the statement that declares the next value.
    is_placed: whether its last value is computed where the result is.
    is_copied: whether it gets the elements of its next value, without pointers.
    is_read: whether anything reads it.
    """

    name: str
    type: TensorType
    next: str | None
    sources: tuple[int, ...] = ()
    row: int | None = None
    room: Statement | None = None
    is_placed: bool = False
    is_copied: bool = False
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class LoopWriter:
    """Writes one loop.

    given: texts of the operands of the op; none for carried arrays that start as one number.
    results: for each result of the op the name that it has in the function, None if nothing reads it.
    array: declares an array ahead of all statements of the function.
    start: the statement that gives an array the elements of an operand, by its number.
    """

    region: Region
    given: Sequence[str]
    results: Sequence[str | None]
    language: Language
    names: Names
    body: Body
    array: Callable[[str, TensorType], None]
    start: Callable[[str, int], Statement]
    before: list[Statement] = field(default_factory=list)
    trip: list[Statement] = field(default_factory=list)
    stored: list[Statement] = field(default_factory=list)
    """Statements that put rows of stacked outputs in their places."""
    sources: list[tuple[int, ...]] = field(default_factory=list)
    """For each carried value, the carried arrays that it takes over in turn; see `_sources`."""
    needed: set[int] = field(default_factory=set)
    """Variables of the body that trips read, but for those that one carried array only takes over from another."""

    def run(self) -> Scope:
        """The statements of the loop."""
        region, tape, fresh = self.region, self.region.body, self.names.fresh
        count, given = region.carries, self.given[region.counted :]
        types = [tape.types[output] for output in tape.outputs]
        trip, round = fresh("trip"), ""
        self.sources.extend(self._sources())
        self.needed.update(cone(tape, [each for at, each in enumerate(tape.outputs) if not self._takes_over(at)]))
        stop = self._stop()
        counts = tape.inputs[0].variable in cone(tape, tape.outputs)
        if region.backwards and (counts or region.slices or len(tape.outputs) > count):
            round = fresh("round")
            last = f"{stop} - 1" if region.trips is None or region.counted else str(region.trips - 1)
            self.trip.append(Define(self.language.size(), trip, f"{last} - {round}"))
        carries = [
            self._carry(number, tape.names.get(output, "carried"), type, trip, round or trip)
            for number, (output, type) in enumerate(zip(tape.outputs[:count], types, strict=False))
        ]
        carried, invariants = [each.name for each in carries], given[count + region.slices :]
        if region.condition is not None:
            self._leave(trip, carried, invariants)
        rows = [
            self._row(entry.name, tape.types[entry.variable], rows, trip)
            for entry, rows in zip(tape.inputs[1 + count :], given[count : count + region.slices], strict=False)
        ]
        self.trip.extend([each.room for each in carries if each.room])
        outputs: list[str | None] = [each.next for each in carries]
        inside = {each.row for each in carries}
        outputs += [
            None if number in inside else self._output(type, result, trip)
            for number, (type, result) in enumerate(zip(types[count:], self.results[count:], strict=True), count)
        ]
        wanted = {number: name for number, name in enumerate(outputs) if name is not None}
        if wanted:
            made = replace(tape, outputs=tuple([tape.outputs[number] for number in wanted]))
            self._compute(made, [trip, *carried, *rows, *invariants], list(wanted.values()))
        self.trip.extend([*self.stored, *self._passed_on(carries)])
        after = [
            Copy(result, each.name, type.size) if type.shape else Assign(result, each.name)
            for each, result, type in zip(carries, self.results, types, strict=False)
            if result is not None and not each.is_placed
        ]
        return Scope((*self.before, Loop(round or trip, "0", stop, tuple(self.trip)), *after))

    def _passed_on(self, carries: Sequence[_Carry]) -> list[Statement]:
        """The statements that give carried values those of the next trip; arrays that others take over come last."""
        found: list[Statement] = []
        for each in sorted(carries, key=lambda each: -len(each.sources)):
            if not each.is_read:
                continue
            if each.sources:
                source = carries[each.sources[0]]
                found += [] if source is each else [Assign(each.name, source.name)]
            elif each.is_copied:
                found.append(Copy(each.name, each.next or "", each.type.size))
            elif each.next is not None:
                found.append(Assign(each.name, each.next))
        return found

    def _sources(self) -> Iterator[tuple[int, ...]]:
        """For each carried value, the arrays that it takes over, up to one that is computed; none for that one."""
        tape, carries = self.region.body, range(self.region.carries)
        places = {entry.variable: place for place, entry in enumerate(tape.inputs[1 : 1 + self.region.carries])}
        is_array = [bool(self.language["pointers"] and tape.types[tape.outputs[at]].shape) for at in carries]
        direct = [places.get(tape.outputs[at]) if is_array[at] else None for at in carries]
        for number in carries:
            found, source = [number], direct[number]
            while source is not None and source not in found:
                found.append(source)
                source = direct[source]
            if source is None:
                yield tuple(found[1:])
            else:
                # In a cycle each is copied; one by itself stays.
                yield (number,) if len(found) == 1 else ()

    def _takes_over(self, output: int) -> bool:
        """Whether an output of the body is a carried array that takes over another one, or stays as it is."""
        return output < self.region.carries and bool(self.sources[output])

    def _carry(self, number: int, name: str, type: TensorType, trip: str, counter: str) -> _Carry:
        """Declare a carried value, which starts as an operand, and find the place of its next one."""
        place, kind = self.region.counted + number, self._kind(type)
        if not type.shape:
            name = self.names.fresh(name)
            self.before.append(Variable(kind, name, self.given[place]))
            next = self.names.fresh(f"next_{name}")
            return _Carry(name, type, next, room=Variable(kind, next))
        if not self.language["pointers"]:
            name, next = self.names.fresh(name), self.names.fresh(f"next_{name}")
            self.array(name, type)
            self.array(next, type)
            self.before.append(self.start(name, place))
            return _Carry(name, type, next, is_copied=True)
        sources, name = self.sources[number], self.names.fresh(name)
        return self._passed(number, name, type, sources) if sources else self._placed(number, name, type, trip, counter)

    def _passed(self, number: int, name: str, type: TensorType, sources: tuple[int, ...]) -> _Carry:
        """A carried array that takes over another one, or stays as it is."""
        is_read = self._is_read(number)
        if is_read:
            self.before.append(Alias(self._kind(type), name, self._first(number, name, type)))
        return _Carry(name, type, None, sources, is_read=is_read)

    def _placed(self, number: int, name: str, type: TensorType, trip: str, counter: str) -> _Carry:
        """A carried array that is computed: in its row if it is stacked, else in turn in the result and in a room."""
        region, slice, choice = self.region, self.language.slice, self.language["choice"].format
        next, room = self.names.fresh(f"next_{name}"), self.names.fresh(f"{name}_room")
        is_open = region.counted or region.condition or isinstance(region.trips, Extent)
        trips = None if is_open else region.trips or None
        result = self.results[number] if trips else None
        row = self._row_of(number) if trips and not region.backwards else None
        is_read = row is not None or self._is_read(number, is_placed=result is not None)
        # As many as later trips read, and one to write.
        slots = 2 + max([len(each) for each in self.sources if number in each], default=0)
        start, rooms = "", slots - 1
        if row is not None:
            start, rooms = self.results[row] or "", int(not result)
            self.before.append(self.start(start, region.counted + number))
            text = choice(f"{counter} + 1", trips, slice(start, f"({trip} + 1)", type.size), result or room)
        elif result is None:
            text, rooms = slice(room, f"{counter} % {slots}", type.size), slots
        else:
            offset = (1 - (trips or 1)) % slots
            turn = f"({counter} + {offset}) % {slots}" if offset else f"{counter} % {slots}"
            text = choice(turn, 1, result, room if slots == 2 else slice(room, f"({turn} - 1)", type.size))
        if trips == 1:
            text, rooms = result or room, int(not result)
        if rooms:
            self.array(room, replace(type, shape=(rooms * type.size,)))
        if is_read:
            self.before.append(Alias(self._kind(type), name, start or self._first(number, name, type)))
        view = View(self._kind(type), next, text, type.size, True)
        return _Carry(name, type, next, (), row, view, result is not None, is_read=is_read)

    def _first(self, number: int, name: str, type: TensorType) -> str:
        """The array that a carried one starts as: an operand, or one of its own with the same number everywhere."""
        place = self.region.counted + number
        found = self.given[place]
        if not found:
            found = self.names.fresh(f"{name}_start")
            self.array(found, type)
            self.before.append(self.start(found, place))
        return found

    def _is_read(self, number: int, *, is_placed: bool = False) -> bool:
        """Whether anything reads a carried array; after the loop its result, unless that ``is_placed``, does."""
        condition, variable = self.region.condition, self.region.body.inputs[1 + number].variable
        if self.results[number] is not None and not is_placed:
            return True
        if condition is not None and condition.inputs[1 + number].variable in cone(condition, condition.outputs):
            return True
        users = [at for at, each in enumerate(self.sources) if at != number and each[:1] == (number,)]
        return variable in self.needed or any(map(self._is_read, users))

    def _row_of(self, number: int) -> int | None:
        """The number of the stacked output whose rows are a carried array as trips begin."""
        variable, outputs = self.region.body.inputs[1 + number].variable, self.region.body.outputs
        found = (at for at in range(self.region.carries, len(outputs)) if outputs[at] == variable and self.results[at])
        return next(found, None)

    def _kind(self, type: TensorType) -> str:
        return self.language.type(type.dtype)

    def _stop(self) -> str:
        """The number of trips, or the largest one."""
        region = self.region
        if region.trips is None and not region.counted:
            return self.language["endless"]
        if not region.counted:
            return str(region.trips)
        stop = self.names.fresh("trips")
        bound, most = self.given[0], region.trips
        if most is not None:
            bound = self.language.smaller(self.language.whole(most), bound)
        self.before.append(Define(self.language.size(), stop, bound))
        return stop

    def _named(self, name: str, type: TensorType) -> str:
        """A name for a value of a trip."""
        name = self.names.fresh(name)
        if type.shape:
            self.array(name, type)
        else:
            self.trip.append(Variable(self._kind(type), name))
        return name

    def _leave(self, trip: str, carried: Sequence[str], invariants: Sequence[str]) -> None:
        """The end of the loop where its condition does not hold."""
        condition = self.region.condition
        assert condition is not None
        goes_on = self._named("goes_on", condition.types[condition.outputs[0]])
        self._compute(condition, [trip, *carried, *invariants], [goes_on])
        self.trip.append(Break(self.language.applied("logical_not", np.dtype(bool), goes_on)))

    def _compute(self, tape: Tape, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Statements of a trip; loops over elements that stand in the function itself have names of their own."""
        body = self.body(tape, inputs, outputs)
        self.trip.extend([Scope(tuple(body))] if self.language.inlines else body)

    def _row(self, name: str, type: TensorType, rows: str, trip: str) -> str:
        """A row of a stacked input."""
        name = self.names.fresh(name)
        if type.shape:
            self.trip.append(View(self._kind(type), name, self.language.slice(rows, trip, type.size), type.size))
        else:
            self.trip.append(Define(self._kind(type), name, self.language.element(rows, trip)))
        return name

    def _output(self, type: TensorType, rows: str | None, trip: str) -> str:
        """What a row of a stacked output is called, which statements after those of the trip put in its place."""
        if rows is not None and not self.region.is_fixed:
            zero, count = self.language.literal(0, type.dtype), type.size * (self.region.trips or 0)
            self.before.append(Fill(rows, count, zero, True))
        if type.shape and rows is not None and self.language["pointers"]:
            name = self.names.fresh("row")
            view = View(self._kind(type), name, self.language.slice(rows, trip, type.size), type.size, True)
            self.trip.append(view)
            return name
        name = self._named("row", type)
        if rows is not None and type.shape:
            self.stored.append(Copy(self.language.slice(rows, trip, type.size), name, type.size))
        elif rows is not None:
            self.stored.append(Assign(self.language.element(rows, trip), name))
        return name


def with_constants(tape: Tape, op: Op) -> tuple[Region, tuple[int, ...]]:
    """The region of a loop with its invariants that are known numbers as constants, and the other operands."""
    region: Region = op.keyword("region")
    first = region.counted + region.carries + region.slices
    known = {
        number - first: tape.constants[operand]
        for number, operand in enumerate(op.operands)
        if number >= first and operand in tape.constants and not tape.types[operand].shape
    }
    body = _with_constants(region.body, region.first_invariant, known)
    condition = region.condition and _with_constants(region.condition, 1 + region.carries, known)
    operands = [operand for number, operand in enumerate(op.operands) if number - first not in known]
    return replace(region, body=body, condition=condition), tuple(operands)


def _with_constants(tape: Tape, first: int, known: Mapping[int, Any]) -> Tape:
    """``tape`` with inputs of these numbers, counted from ``first``, as constants."""
    constants = {tape.inputs[first + number].variable: value for number, value in known.items()}
    kept = tuple(entry for entry in tape.inputs if entry.variable not in constants)
    return replace(tape, inputs=kept, constants={**tape.constants, **constants})
