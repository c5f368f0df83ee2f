"""Loops of a tape as loops in the function itself, for languages whose files have no functions for kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from yota.emit.language import Language
from yota.emit.names import Names
from yota.emit.tree import Assign, Break, Copy, Define, Loop, Scope, Statement, Variable
from yota.ir.regions import Region
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

Body: TypeAlias = Callable[[Tape, Sequence[str], Sequence[str]], list[Statement]]
"""Statements that compute the outputs of a tape, from texts of its inputs and names of its outputs."""


@dataclass(frozen=True, slots=True)
class LoopWriter:
    """Writes one loop.

    given: texts of the operands of the op.
    results: for each result of the op the name that it has in the function, None if nothing reads it.
    memory: declares a variable.
    """

    region: Region
    given: Sequence[str]
    results: Sequence[str | None]
    language: Language
    names: Names
    body: Body
    memory: Callable[[str, TensorType], Statement]
    before: list[Statement] = field(default_factory=list)
    trip: list[Statement] = field(default_factory=list)
    after: list[Statement] = field(default_factory=list)

    def run(self) -> Scope:
        """The statements of the loop."""
        region, tape, fresh = self.region, self.region.body, self.names.fresh
        count, given = region.carries, self.given[region.counted :]
        types = [tape.types[output] for output in tape.outputs]
        trip, round = fresh("trip"), ""
        carried = [
            self._carried(tape.names.get(output, "carried"), type, text)
            for output, type, text in zip(tape.outputs[:count], types, given, strict=False)
        ]
        invariants = given[count + region.slices :]
        stop = self._stop()
        if region.backwards:
            round = fresh("round")
            last = f"{stop} - 1" if region.trips is None or region.counted else str(region.trips - 1)
            self.trip.append(Define(self.language.size(), trip, f"{last} - {round}"))
        if region.condition is not None:
            self._leave(trip, carried, invariants)
        rows = [
            self._row(entry.name, tape.types[entry.variable], rows, trip)
            for entry, rows in zip(tape.inputs[1 + count :], given[count : count + region.slices], strict=False)
        ]
        outputs = [self._output(f"next_{name}", type) for name, type in zip(carried, types, strict=False)]
        stacked = [self._output("row", type) for type in types[count:]]
        self.trip.append(Scope(tuple(self.body(tape, [trip, *carried, *rows, *invariants], [*outputs, *stacked]))))
        for name, type, result in zip(stacked, types[count:], self.results[count:], strict=True):
            if result is not None:
                self.trip.append(self._stored(result, name, type, trip))
        for name, output, type in zip(carried, outputs, types, strict=False):
            self.trip.append(_moved(name, output, type))
        for name, result, type in zip(carried, self.results, types, strict=False):
            if result is not None:
                self.after.append(_moved(result, name, type))
        return Scope((*self.before, Loop(round or trip, "0", stop, tuple(self.trip)), *self.after))

    def _stop(self) -> str:
        """The number of trips, or the largest one."""
        region = self.region
        if region.trips is None and not region.counted:
            return self.language["endless"]
        if not region.counted:
            return str(region.trips)
        stop = self.names.fresh("trips")
        bound = self.given[0] if region.trips is None else self.language.smaller(f"{region.trips}", self.given[0])
        self.before.append(Define(self.language.size(), stop, bound))
        return stop

    def _declared(self, name: str, type: TensorType, place: list[Statement]) -> str:
        """A name for a value: arrays are made before the loop, numbers at the ``place`` where they are used."""
        name = self.names.fresh(name)
        (self.before if type.shape else place).append(self.memory(name, type))
        return name

    def _carried(self, name: str, type: TensorType, start: str) -> str:
        name = self.names.fresh(name)
        declared = self.memory(name, type)
        if isinstance(declared, Variable):
            self.before.append(replace(declared, value=start))
        else:
            self.before.extend([declared, Copy(name, start, type.size)])
        return name

    def _leave(self, trip: str, carried: Sequence[str], invariants: Sequence[str]) -> None:
        """The end of the loop where its condition does not hold."""
        condition = self.region.condition
        assert condition is not None
        goes_on = self._output("goes_on", condition.types[condition.outputs[0]])
        self.trip.append(Scope(tuple(self.body(condition, [trip, *carried, *invariants], [goes_on]))))
        self.trip.append(Break(self.language.applied("logical_not", np.dtype(bool), goes_on)))

    def _row(self, name: str, type: TensorType, rows: str, trip: str) -> str:
        """A row of a stacked input."""
        if not type.shape:
            name = self.names.fresh(name)
            self.trip.append(Define(self.language.type(type.dtype), name, self.language.element(rows, trip)))
            return name
        name = self._declared(name, type, self.before)
        self.trip.append(Copy(name, self.language.slice(rows, trip, type.size), type.size))
        return name

    def _output(self, name: str, type: TensorType) -> str:
        return self._declared(name, type, self.trip)

    def _stored(self, rows: str, row: str, type: TensorType, trip: str) -> Statement:
        """A row of a stacked output, put in its place."""
        if not type.shape:
            return Assign(self.language.element(rows, trip), row)
        return Copy(self.language.slice(rows, trip, type.size), row, type.size)


def _moved(target: str, source: str, type: TensorType) -> Statement:
    return Copy(target, source, type.size) if type.shape else Assign(target, source)


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
