"""The body of a loop, written from the first iteration of a run."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.compact_recording import is_window
from yota.ir.indexing import GATHER, Index, Slice, pattern_shape
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Rewrite, TapeBuilder
from yota.ir.types import TensorType, TupleType
from yota.transform.rolling.iterations import LARGEST_STACK, Moved, Plan, Refused, Rolling, Row, Same, is_behind_slice
from yota.transform.rolling.periods import Integers

_INT = np.dtype(np.int64)


class Looping:
    """Writes one loop.

    plan: where its operands come from.
    improve: what is done to its body, which may have loops of its own.
    """

    def __init__(self, rolling: Rolling, plan: Plan, improve: Rewrite) -> None:
        self.rolling, self.plan, self.run, self.improve = rolling, plan, plan.run, improve
        tape, run = rolling.tape, plan.run
        self.tape = tape
        self.ops = tape.ops[run.start : run.start + run.period]
        self.results: Integers = rolling.columns.results[run.start : run.stop].reshape(run.trips, run.period)
        self.outside = (rolling.columns.last[run.start : run.stop] >= run.stop).reshape(self.results.shape)
        self.body = TapeBuilder(tape.name)
        self.index = self.body.variable(TensorType(_INT, (), True))
        self.carries: dict[tuple[int, tuple[int, ...]], int] = {}
        self.inputs: dict[Any, int] = {}
        """Rows, by what they are rows of."""
        self.stacked: dict[int, int] = {}
        """The operands of which these are rows."""
        self.fixed: dict[int, int] = {}
        self.made: list[int] = []
        self.written: dict[int, tuple[int, Integers]] = {}
        """By the number of an op that writes, the row that it writes, and where."""
        self.first = np.concatenate([[0], np.cumsum([len(op.operands) for op in self.ops])]).tolist()
        self.readers: dict[int, list[int]] = {}
        for column, operand in enumerate(plan.operands):
            if isinstance(operand, Moved):
                self.readers.setdefault(operand.origin, []).append(column)

    def emit(self) -> None:
        """Append the loop to the tape."""
        for number, op in enumerate(self.ops):
            self.body.location = op.location
            self.made.append(self._op(number, op))
            if op.result in self.tape.names:
                self.body.names[self.made[-1]] = self.tape.names[op.result]
        self._emit_loop()

    def _op(self, number: int, op: Op) -> int:
        operands = self.plan.operands[self.first[number] : self.first[number + 1]]
        type = self.tape.types[op.result]
        numbers = self._positions(number, op)
        if numbers is None:
            return self.body.emit(op.primitive, [self._operand(each) for each in operands], op.static, type)
        index = op.keyword("index")
        if op.access == AccessMap.READ and is_window(index):
            return self._window(op, operands[0], numbers[:, 0], type)
        if op.access == AccessMap.READ and isinstance(operands[0], Same) and GATHER not in index:
            source = operands[0].variable
            key = source, tuple([int if isinstance(each, int) else each for each in index]), numbers.tobytes()
            return self._row(key, type, lambda: self._read(number, op, source, numbers))
        if op.access == AccessMap.WRITE and self._only_writes(number, operands, numbers):
            row = self._operand(operands[1])
            shape = pattern_shape(index)
            if self.body.types[row].shape != shape:
                row = self.body.emit(primitive("broadcast_to"), (row,), {"shape": shape})
            self.written[number] = row, numbers
            return row
        return self._computed(op, operands, numbers)

    def _positions(self, number: int, op: Op) -> Integers | None:
        """The positions that an op reads or writes, a row for each trip; None if they are always the same."""
        index = op.keyword("index") if op.access in (AccessMap.READ, AccessMap.WRITE) else ()
        places = [place for place, entry in enumerate(index) if isinstance(entry, int)]
        if op.access == AccessMap.READ and index and is_window(index):
            slices: list[Any] = [each[0] for each in self.rolling.columns.indices(number, self.run)]
            begins = np.array([[each.start] for each in slices], np.int64)
            return None if (begins == begins[0]).all() else begins
        if not places:
            return None
        indices = self.rolling.columns.indices(number, self.run)
        found = np.array([[index[place] for index in indices] for place in places], np.int64).T
        return None if (found == found[0]).all() else found

    def _window(self, op: Op, source: Moved | Same | Row, begins: Integers, type: TensorType) -> int:
        """Neighbours that move from trip to trip: a row of an array that has each of them for all trips."""
        if not isinstance(source, Same) or type.size * type.dtype.itemsize * len(begins) > LARGEST_STACK:
            raise Refused
        variable = source.variable
        key = "window", variable, op.keyword("index")[1:], type.shape, begins.tobytes()

        def outer() -> int:
            rolling, parts = self.rolling, []
            for shift in range(type.shape[0]):
                entry, arrays = rolling.entry(begins + shift)
                index = (entry, *op.keyword("index")[1:])
                parts.append(rolling.emit("getitem", (rolling[variable], *arrays), {"index": index}))
            return rolling.emit("stack", parts, {"axis": 1})

        return self._row(key, type, outer)

    def _only_writes(self, number: int, operands: Sequence[Any], numbers: Integers) -> bool:
        """Whether an array is only written in the loop, each trip elsewhere: then the rows are put there behind it."""
        own = isinstance(operands[0], Moved) and (operands[0].origin, operands[0].delay) == (number, 1)
        return (
            own
            and len(operands) == 2
            and self.readers.get(number) == [self.first[number]]
            and not self.outside[:-1, number].any()
            and len(np.unique(numbers, axis=0)) == len(numbers)
        )

    def _computed(self, op: Op, operands: Sequence[Any], numbers: Integers) -> int:
        """A read or write at a position that is computed in the trip."""
        if GATHER in op.keyword("index") or self.tape.types[op.operands[0]].size > self.rolling.columns.worth.written:
            raise Refused
        if self.run.period * self.run.trips <= self.rolling.columns.worth.computed:
            raise Refused
        columns = iter(numbers.T)
        index: list[Any] = []
        arrays: list[int] = []
        for entry in op.keyword("index"):
            if not isinstance(entry, int):
                index.append(entry)
                continue
            column = next(columns)
            if (column == column[0]).all():
                index.append(int(column[0]))
            else:
                index.append(GATHER)
                arrays.append(self._number(column.tolist(), TensorType(_INT, (), True)))
        given = [self._operand(each) for each in operands]
        return self.body.emit(op.primitive, [*given, *arrays], {"index": tuple(index)}, self.tape.types[op.result])

    def _operand(self, operand: Moved | Same | Row) -> int:
        if isinstance(operand, Moved):
            return self._carried(operand.origin, operand.initial) if operand.delay else self.made[operand.origin]
        if isinstance(operand, Same):
            return self._same(operand.variable)
        variables = operand.variables.tolist()
        if variables[0] in self.tape.constants:
            values = [self.tape.constants[each] for each in variables]
            if np.ndim(values[0]) and all(each.tobytes() == values[0].tobytes() for each in values):
                return self._same(variables[0])
            return self._number(values, self.tape.types[variables[0]])
        if variables[0] in self.rolling.inputs:
            type = self.tape.types[variables[0]]
            return self._row(("inputs", *variables), type, lambda: self.rolling.stacked(variables))
        rows = [self.rolling.rows[each] for each in variables]
        numbers = np.array([row for _, row in rows], np.int64)
        key = rows[0][0], numbers.tobytes()
        return self._row(key, self.tape.types[variables[0]], lambda: self.rolling.taken(rows[0][0], numbers))

    def _carried(self, origin: int, initial: tuple[int, ...]) -> int:
        key = origin, initial
        if key not in self.carries:
            if len(initial) > 1:
                self._carried(origin, initial[1:])
            self.carries[key] = self.body.variable(self.tape.types[self.ops[origin].result])
        return self.carries[key]

    def _same(self, variable: int) -> int:
        if variable not in self.fixed:
            self.fixed[variable] = made = self.body.variable(self.tape.types[variable])
            if self._is_own(variable):
                self.body.constants[made] = self.tape.constants[variable]
            if variable in self.tape.names:
                self.body.names[made] = self.tape.names[variable]
        return self.fixed[variable]

    def _is_own(self, variable: int) -> bool:
        """Whether a constant is one of the body: a number, or an index array, of which targets look at the numbers."""
        type = self.tape.types[variable]
        return variable in self.tape.constants and (not type.shape or type.dtype.kind in "iu")

    def _row(self, key: Any, type: TensorType, outer: Callable[[], int]) -> int:
        if key not in self.inputs:
            self.inputs[key] = made = self.body.variable(type)
            self.stacked[made] = outer()
        return self.inputs[key]

    def _number(self, values: Sequence[Any], type: TensorType) -> int:
        """A constant that is another one in each trip."""
        if type.weak and type.dtype == _INT:
            step = values[1] - values[0]
            if all(after - before == step for before, after in itertools.pairwise(values)):
                return self._affine(values[0], step)
        if type.weak and not self.rolling.wide:
            raise Refused
        found = np.array(values, type.dtype)
        found.flags.writeable = False
        type = TensorType(type.dtype, type.shape)
        return self._row((type, found.tobytes()), type, lambda: self.rolling.builder.constant(found))

    def _affine(self, start: int, step: int) -> int:
        key = "affine", start, step
        if key not in self.inputs:
            found, type = self.index, self.body.types[self.index]
            for name, number, neutral in (("multiply", step, 1), ("add", start, 0)):
                if number != neutral:
                    operands = found, self.body.constant(number)
                    found = self.body.emit(primitive(name), operands, (), type)
            self.inputs[key] = found
        return self.inputs[key]

    def _read(self, number: int, op: Op, source: int, numbers: Integers) -> int:
        rolling = self.rolling
        variable = rolling[source]
        rolling.builder.location = op.location
        index, arrays, axis = rolling.entries(op, numbers)
        if is_behind_slice(index):
            if not self._is_line_of_elements(number, index):
                raise Refused
            variable, index, axis = rolling.turned(variable, 1, 0), (GATHER, index[0]), 0
        shape = rolling.type(variable).shape
        if index == tuple([Slice(0, extent) for extent in shape]):
            return rolling.turned(variable, axis, 0)
        return rolling.turned(rolling.emit("getitem", (variable, *arrays), {"index": index}), axis, 0)

    def _is_line_of_elements(self, number: int, index: Index) -> bool:
        """Whether an op reads a column of a matrix for elementwise ops alone: others may round by its strides."""
        columns = [bisect_right(self.first, column) - 1 for column in self.readers.get(number, ())]
        elementwise = all(self.ops[each].access == AccessMap.ELEMENTWISE for each in columns)
        return len(index) == 2 and elementwise and not self.outside[:, number].any()

    def _emit_loop(self) -> None:
        rolling, body = self.rolling, self.body
        lasts, rows = self._wanted()
        if not (self.carries or rows):
            self._bind_reads()
            return
        carries = list(self.carries.items())
        outputs = [
            self.carries[origin, initial[1:]] if len(initial) > 1 else self.made[origin]
            for (origin, initial), _ in carries
        ]
        stacks = list(self.stacked.items())
        fixed = [(outer, made) for outer, made in self.fixed.items() if made not in body.constants]
        order = [
            self.index,
            *(made for _, made in carries),
            *(made for made, _ in stacks),
            *(made for _, made in fixed),
        ]
        body.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)]
        types = [self.body.types[self.made[number]] for number in (*rows, *lasts)]
        if any(isinstance(type, TupleType) for type in types) or (
            any(type.weak for type in types[: len(rows)]) and not rolling.wide
        ):
            raise Refused
        outputs += [self.made[number] for number in rows]
        tape = self.improve(body.finish(outputs))
        rolling.builder.location = self.ops[0].location
        operands = [self._initial(origin, initial) for (origin, initial), _ in carries]
        operands += [outer for _, outer in stacks] + [rolling[outer] for outer, _ in fixed]
        region = Region(tape, len(carries), len(stacks), self.run.trips, seen=self.run.trips)
        result = rolling.emit(LOOP, operands, {"region": region})
        items: dict[int, int] = {}

        def item(number: int) -> int:
            if number not in items:
                items[number] = item_of(rolling.builder, result, number)
            return items[number]

        places = {key: number for number, (key, _) in enumerate(carries)}
        for number, keys in lasts.items():
            for delay, key in keys.items():
                rolling.bind(int(self.results[-delay, number]), item(places[key]))
        for place, number in enumerate(rows):
            if number in self.written:
                self._write(number, item(len(carries) + place))
                continue
            self._bind_rows(number, item(len(carries) + place))
        self._bind_reads()

    def _bind_reads(self) -> None:
        """Let what trips only read stand for results that are read behind the loop."""
        for number, made in enumerate(self.made):
            if made in self.stacked and number not in self.written and self.outside[:, number].any():
                self._bind_rows(number, self.stacked[made])

    def _bind_rows(self, number: int, stacked: int) -> None:
        results = self.results[:, number].tolist()
        self.rolling.rows.update({each: (stacked, row) for row, each in enumerate(results)})

    def _initial(self, origin: int, initial: tuple[int, ...]) -> int:
        type = self.tape.types[self.ops[origin].result]
        if initial[0] >= 0:
            return self.rolling.initial(initial[0], type)
        zero = np.broadcast_to(np.zeros((), type.dtype), type.shape)
        return self.rolling.builder.constant(zero if type.shape else zero.item() if type.weak else zero[()])

    def _wanted(self) -> tuple[dict[int, dict[int, tuple[int, tuple[int, ...]]]], list[int]]:
        """Which results are read behind the loop: carried values, by number and delay, and the numbers of rows."""
        lasts: dict[int, dict[int, tuple[int, tuple[int, ...]]]] = {}
        rows = list(self.written)
        for number in np.flatnonzero(self.outside.any(axis=0)).tolist():
            if number in self.written or self.made[number] in self.stacked:
                continue
            delays = self.run.trips - np.flatnonzero(self.outside[:, number])
            known = {len(initial): (origin, initial) for origin, initial in self.carries if origin == number}
            if delays.max() == 1 and not known:
                known[1] = number, (-1,)
                self._carried(*known[1])
            if all(each in known for each in delays.tolist()):
                lasts[number] = {each: known[each] for each in delays.tolist()}
            else:
                rows.append(number)
        return lasts, rows

    def _write(self, number: int, stacked: int) -> None:
        rolling, op = self.rolling, self.ops[number]
        index, arrays, axis = rolling.entries(op, self.written[number][1])
        if is_behind_slice(index):
            raise Refused
        first = self.plan.operands[self.first[number]]
        assert isinstance(first, Moved)
        operands = rolling[first.initial[0]], rolling.turned(stacked, 0, axis), *arrays
        found = rolling.emit("setitem", operands, {"index": index}, self.tape.types[op.result])
        rolling.bind(int(self.results[-1, number]), found)
