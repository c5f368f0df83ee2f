"""How iterations of a run hang together: where each operand comes from, in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.ir.tape import Tape
from yota.ir.types import TensorType, TupleType
from yota.passes.periods import Columns, Integers, Run

__all__ = ["Moved", "Plan", "Planner", "Refused", "Row", "Same", "value_as"]

_LONGEST_DELAY = 3
"""How many iterations back an operand may come from."""


_LARGEST_STACK = 2**26
"""Bytes of arrays that are copied into one, of which each trip reads a row."""


class Refused(Exception):
    """It could not be shown that the ops do the same in each iteration."""


@dataclass(frozen=True, slots=True)
class Moved:
    """An operand that comes from the op at ``origin`` of the iteration as many as ``delay`` before."""

    origin: int
    delay: int
    initial: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Same:
    """An operand from outside, the same in each iteration."""

    variable: int


@dataclass(frozen=True, slots=True)
class Row:
    """An operand that is another one from outside in each iteration: a constant, or a row of what a loop stacked."""

    variables: Integers


@dataclass(slots=True)
class Plan:
    """What the operands of a run are, by the column of `Columns.matrix`."""

    run: Run
    operands: list[Moved | Same | Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Planner:
    """Makes plans of runs.

    Parameters
    ----------
    columns
        The tape.
    rows
        By variable, a stacked array that has it, and the number of the row.
    """

    columns: Columns
    rows: Mapping[int, tuple[int, int]]

    @property
    def tape(self) -> Tape:
        """The tape that is read."""
        return self.columns.tape

    def plan(self, run: Run, done: int) -> Plan | None:
        """What a run is as a loop, with iterations ahead of it where they fit; None if it cannot be one."""
        found = None
        for dropped in range(_LONGEST_DELAY):
            trips = run.trips - dropped
            if trips < 2:
                break
            found = self._planned(Run(run.start + dropped * run.period, run.period, trips))
            if found is not None:
                break
        if found is None:
            return None
        for _ in range(_LONGEST_DELAY):
            run = found.run
            start = run.start - run.period
            keys = self.columns.keys
            if start < done or not np.array_equal(keys[start : run.start], keys[run.start : run.start + run.period]):
                break
            longer = self._planned(Run(start, run.period, run.trips + 1))
            if longer is None:
                break
            found = longer
        return found

    def _planned(self, run: Run) -> Plan | None:
        columns = self.columns
        if run.start < 0:
            return None
        plan = Plan(run)
        variables, places = columns.matrix(run), columns.places(run)
        starts = run.start + run.period * np.arange(run.trips)
        positions = columns.positions[variables]
        for number, place in enumerate(places.tolist()):
            found = self._operand(run, variables[:, number], positions[:, number], starts, place)
            if found is None:
                return None
            plan.operands.append(found)
        return plan

    def _operand(
        self, run: Run, variables: Integers, positions: Integers, starts: Integers, place: int
    ) -> Moved | Same | Row | None:
        distances = positions - starts
        last = int(distances[-1])
        if positions[-1] >= run.start:
            # From this iteration, or from one before it.
            delay = -(last // run.period)
            if (
                delay > _LONGEST_DELAY
                or (not delay and last >= place)
                or (distances[delay:] != last).any()
                or (positions[:delay] >= run.start).any()
            ):
                return None
            origin = last % run.period
            initial = tuple(variables[:delay].tolist())
            type = self.tape.types[self.tape.ops[run.start + origin].result]
            fits = all(self._fits(each, type) for each in initial) and not isinstance(type, TupleType)
            return Moved(origin, delay, initial) if fits or not delay else None
        if (positions >= run.start).any():
            return None
        if (variables == variables[0]).all():
            return Same(int(variables[0]))
        constants = self.columns.constants[variables]
        if constants[0] and (constants == constants[0]).all():
            type = self.tape.types[int(variables[0])]
            return Row(variables) if type.size * type.dtype.itemsize * len(variables) <= _LARGEST_STACK else None
        stacks = {self.rows.get(each, (-1, 0))[0] for each in variables.tolist()}
        if len(stacks) == 1 and -1 not in stacks:
            return Row(variables)
        return None

    def _fits(self, variable: int, type: TensorType) -> bool:
        found = self.tape.types[variable]
        return found == type or value_as(self.tape, variable, type) is not None


def value_as(tape: Tape, variable: int, type: TensorType) -> Any:
    """The value of a Python number as one of ``type``, to which it gives way; None if it is none, or rounds."""
    found = tape.types[variable]
    if variable not in tape.constants or not found.weak or type.shape or type.weak:
        return None
    value = tape.constants[variable]
    if type.dtype.kind not in "fc" or found.dtype.kind not in "if":
        return None
    made = type.dtype.type(value)
    return made if made == value else None
