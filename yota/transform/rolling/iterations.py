"""How iterations of a run hang together: where operands come from, and the rows of arrays that loops stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from yota.ir.indexing import GATHER, Index, Slice, layout
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType
from yota.optimize.rewrite import Rewriting
from yota.transform.rolling.periods import Columns, Integers, Run

_LONGEST_DELAY = 3
"""How many iterations back an operand may come from, however few there are."""
_CARRIED = 64
"""Iterations for each one that an operand comes from further back: what is carried costs time in each of them."""
_MOST_MOVED = 3
"""How many iterations a loop may begin later, or earlier, than where the ops begin to repeat."""

LARGEST_STACK = 2**26
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

    rows: by variable, a stacked array that has it, and the number of the row.
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
        for dropped in range(_MOST_MOVED):
            trips = run.trips - dropped
            if trips < 2:
                break
            found = self._planned(Run(run.start + dropped * run.period, run.period, trips))
            if found is not None:
                break
        if found is None:
            return None
        for _ in range(_MOST_MOVED):
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
                delay > max(_LONGEST_DELAY, run.trips // _CARRIED)
                or (not delay and last >= place)
                or (distances[delay:] != last).any()
                or (positions[:delay] >= run.start).any()
            ):
                return None
            origin = last % run.period
            initial = tuple(variables[:delay].tolist())
            type = self.tape.types[self.tape.ops[run.start + origin].result]
            fits = all(fits_in(self.tape, each, type) for each in initial) and not isinstance(type, TupleType)
            return Moved(origin, delay, initial) if fits or not delay else None
        if (positions >= run.start).any():
            return None
        if (variables == variables[0]).all():
            return Same(int(variables[0]))
        constants = self.columns.constants[variables]
        if constants[0] and (constants == constants[0]).all():
            if self._equal(variables):
                return Same(int(variables[0]))
            type, value = self.tape.types[int(variables[0])], self.tape.constants.get(int(variables[0]))
            # A product of an array that lies otherwise in memory may round otherwise.
            lies = isinstance(value, np.ndarray) and not value.flags.c_contiguous
            fits = type.size * type.dtype.itemsize * len(variables) <= LARGEST_STACK and not lies
            return Row(variables) if fits else None
        stacks = {self.rows.get(each, (-1, 0))[0] for each in variables.tolist()}
        if len(stacks) == 1 and -1 not in stacks:
            return Row(variables)
        return None

    def _equal(self, variables: Integers) -> bool:
        """Whether constant arrays have the same bits, such as zeros that each iteration makes."""
        values = [self.tape.constants.get(each) for each in dict.fromkeys(variables.tolist())]
        first = values[0]
        if not isinstance(first, np.ndarray):
            return False
        bits = first.tobytes()
        return all(isinstance(each, np.ndarray) and each.tobytes() == bits for each in values[1:])


def is_behind_slice(index: Index) -> bool:
    """Whether the first gathered axis lies behind one that is sliced."""
    return GATHER in index and any(isinstance(entry, Slice) for entry in index[: index.index(GATHER)])


def fits_in(tape: Tape, variable: int, type: TensorType) -> bool:
    """Whether a variable is of a type, or a Python number that gives way to it."""
    return tape.types[variable] == type or value_as(tape, variable, type) is not None


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


class Rolling(Rewriting):
    """A tape under reconstruction, some of whose variables are rows of stacked arrays."""

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns.tape)
        self.columns, tape = columns, columns.tape
        # Recordings name inputs by their numbers.
        builder = self.builder
        builder.inputs, builder.count = list(tape.inputs), max(tape.types, default=0)
        builder.types = {entry.variable: tape.types[entry.variable] for entry in tape.inputs}
        builder.captured, builder.statics = dict(tape.captured), tape.statics
        self.mapping = {entry.variable: entry.variable for entry in tape.inputs}
        self.inputs = frozenset(self.mapping)
        self.wide = all(type.dtype.char in "?lqdD" for type in columns.types())
        """Whether a Python number gives way to nothing narrower than itself."""
        self.rows: dict[int, tuple[int, int]] = {}
        """By variable of the tape that is read, the stacked array that has it, and the number of the row."""

    def __getitem__(self, variable: int) -> int:
        if variable in self.rows and variable not in self.mapping:
            stacked, row = self.rows[variable]
            whole = tuple([Slice(0, extent) for extent in self.type(stacked).shape[1:]])
            self.bind(variable, self.emit("getitem", (stacked,), {"index": (row, *whole)}))
        return super().__getitem__(variable)

    def operands(self, op: Op) -> tuple[int, ...]:
        """What stands for the operands of ``op``."""
        return tuple([self[operand] for operand in op.operands])

    def copied(self, start: int, stop: int) -> None:
        """Take over ops as they are."""
        for op in self.tape.ops[start:stop]:
            if op.access == AccessMap.STACK and any(operand in self.rows for operand in op.operands):
                self._stacked(op)
            else:
                self.copy(op)

    def stacked(self, inputs: Sequence[int]) -> int:
        """Inputs of the tape as the rows of one array."""
        return self.emit("stack", tuple(inputs), {"axis": 0})

    def _stacked(self, op: Op) -> None:
        """A stack of what loops stacked already."""
        self.builder.location = op.location
        type, axis = self.tape.types[op.result], op.keyword("axis")
        parts: list[int] = []
        runs: list[tuple[int, list[int]]] = []
        for operand in op.operands:
            stacked, row = self.rows.get(operand, (-1, 0))
            if runs and stacked >= 0 and runs[-1][0] == stacked:
                runs[-1][1].append(row)
            else:
                runs.append((stacked, [row if stacked >= 0 else operand]))
        kinds = {self.tape.types[operand] for operand in op.operands if operand in self.rows}
        kind = kinds.pop()
        fits = not kinds and kind.dtype == type.dtype and all(fits_in(self.tape, each, kind) for each in op.operands)
        # Along another axis the array would lie otherwise in memory, and its sums round otherwise.
        if axis or len(runs) * 4 > len(op.operands) or not fits:
            self.copy(op)
            return
        for stacked, numbers in runs:
            if stacked >= 0:
                parts.append(self.taken(stacked, np.array(numbers, np.int64)))
            else:
                parts.append(self.emit("reshape", (self.initial(numbers[0], kind),), {"shape": (1, *kind.shape)}))
        found = parts[0] if len(parts) == 1 else self.emit("concatenate", parts, {"axis": 0})
        self.bind(op.result, found)

    def taken(self, stacked: int, rows: Integers) -> int:
        """Rows of a stacked array."""
        shape = self.type(stacked).shape
        if np.array_equal(rows, np.arange(shape[0])):
            return stacked
        entry, arrays = self.entry(rows)
        index = (entry, *(Slice(0, extent) for extent in shape[1:]))
        return self.emit("getitem", (stacked, *arrays), {"index": index})

    def entry(self, numbers: Integers, *, sliced: bool = True) -> tuple[Any, list[int]]:
        """The entry of an index that takes these positions, with its index array."""
        steps = np.diff(numbers)
        if sliced and len(steps) and steps[0] and (steps == steps[0]).all():
            step, stop = int(steps[0]), int(numbers[-1])
            stop += 1 if step > 0 else -1
            return Slice(int(numbers[0]), None if stop < 0 else stop, step), []
        found = np.ascontiguousarray(numbers)
        found.flags.writeable = False
        return GATHER, [self.builder.constant(found)]

    def entries(self, op: Op, numbers: Integers) -> tuple[Index, list[int], int]:
        """The index of all trips at once: its entries, its index arrays, and the axis of the trips."""
        columns = iter(numbers.T)
        several = int((numbers != numbers[0]).any(axis=0).sum()) > 1
        parts: list[Any] = []
        arrays: list[int] = []
        axis = place = 0
        for entry in op.keyword("index"):
            if not isinstance(entry, int):
                parts.append(entry)
                place += 1
                continue
            column = next(columns)
            found: Any = int(column[0])
            made: list[int] = []
            if (column != column[0]).any():
                axis = place
                found, made = self.entry(column, sliced=not several)
            parts.append(found)
            arrays += made
        index = tuple(parts)
        return index, arrays, layout(index)[0] if arrays else axis

    def turned(self, variable: int, axis: int, to: int) -> int:
        """An array with one of its axes in another place."""
        ndim = self.type(variable).ndim
        order = [each for each in range(ndim) if each != axis]
        order.insert(to, axis)
        if order == list(range(ndim)):
            return variable
        return self.emit("transpose", (variable,), {"axes": tuple(order)})

    def initial(self, variable: int, type: TensorType) -> int:
        """What is carried into the first trip."""
        if self.tape.types[variable] == type:
            return self[variable]
        return self.builder.constant(value_as(self.tape, variable, type))
