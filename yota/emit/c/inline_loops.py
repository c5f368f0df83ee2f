"""Loops of a tape as loops in a function of a standalone file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from yota.emit.language import Language
from yota.emit.names import Names
from yota.emit.tree import Alias, Assign, Break, Copy, Define, Exchange, Fill, Loop, Scope, Statement, Variable, View
from yota.ir.regions import Region
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize.rewrite import cone

Body: TypeAlias = Callable[[Tape, Sequence[str], Sequence[str]], list[Statement]]
"""Statements that compute the outputs of a tape, from texts of its inputs and names of its outputs."""


@dataclass(frozen=True, slots=True)
class LoopWriter:
    """Writes one loop.

    given: texts of the operands of the op; those of carried arrays are not read.
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

    def run(self) -> Scope:
        """The statements of the loop."""
        region, tape, fresh = self.region, self.region.body, self.names.fresh
        count, given = region.carries, self.given[region.counted :]
        types = [tape.types[output] for output in tape.outputs]
        trip, round = fresh("trip"), ""
        carried = [
            self._carried(tape.names.get(output, "carried"), type, number)
            for number, (output, type) in enumerate(zip(tape.outputs[:count], types, strict=False), region.counted)
        ]
        invariants = given[count + region.slices :]
        stop = self._stop()
        counts = tape.inputs[0].variable in cone(tape, tape.outputs)
        if region.backwards and (counts or region.slices or len(tape.outputs) > count):
            round = fresh("round")
            last = f"{stop} - 1" if region.trips is None or region.counted else str(region.trips - 1)
            self.trip.append(Define(self.language.size(), trip, f"{last} - {round}"))
        if region.condition is not None:
            self._leave(trip, carried, invariants)
        rows = [
            self._row(entry.name, tape.types[entry.variable], rows, trip)
            for entry, rows in zip(tape.inputs[1 + count :], given[count : count + region.slices], strict=False)
        ]
        outputs = [self._named(f"next_{name}", type, self.trip) for name, type in zip(carried, types, strict=False)]
        pairs = zip(types[count:], self.results[count:], strict=True)
        stacked = [self._output(type, result, trip) for type, result in pairs]
        self._compute(tape, [trip, *carried, *rows, *invariants], [*outputs, *stacked])
        self.trip.extend(self.stored)
        for name, output, type in zip(carried, outputs, types, strict=False):
            exchange = Exchange(self._kind(type), name, output)
            self.trip.append(exchange if type.shape else Assign(name, output))
        after = [
            Copy(result, name, type.size) if type.shape else Assign(result, name)
            for name, result, type in zip(carried, self.results, types, strict=False)
            if result is not None
        ]
        return Scope((*self.before, Loop(round or trip, "0", stop, tuple(self.trip)), *after))

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

    def _named(self, name: str, type: TensorType, place: list[Statement]) -> str:
        """A name for a value of the loop; a number is declared at its ``place``."""
        name = self.names.fresh(name)
        if not type.shape:
            place.append(Variable(self._kind(type), name))
        elif self.language["pointers"]:
            room = self.names.fresh(f"{name}_room")
            self.array(room, type)
            self.before.append(Alias(self._kind(type), name, room))
        else:
            self.array(name, type)
        return name

    def _carried(self, name: str, type: TensorType, number: int) -> str:
        """A carried value, which starts as an operand."""
        if type.shape:
            name = self._named(name, type, self.before)
            self.before.append(self.start(name, number))
        else:
            name = self.names.fresh(name)
            self.before.append(Variable(self._kind(type), name, self.given[number]))
        return name

    def _leave(self, trip: str, carried: Sequence[str], invariants: Sequence[str]) -> None:
        """The end of the loop where its condition does not hold."""
        condition = self.region.condition
        assert condition is not None
        goes_on = self._named("goes_on", condition.types[condition.outputs[0]], self.trip)
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
        name = self._named("row", type, self.trip)
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
