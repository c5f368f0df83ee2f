"""Records a loop by one trip: what is carried, what is read and written by rows, and the op on the tape."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError, TracingError
from yota.ir.callables import name_of
from yota.ir.catalog import primitive
from yota.ir.indexing import pattern_shape, to_numpy
from yota.ir.infer import sample
from yota.ir.inputs import Input, Leaf, spelled
from yota.ir.location import where
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import VIEWS, AccessMap
from yota.ir.tape import Tape
from yota.ir.types import TensorType, type_of
from yota.optimize import dce
from yota.tracing.current import current, paused
from yota.tracing.loop_arrays import Place, rows_read, stacked
from yota.tracing.record import record
from yota.tracing.replay import same
from yota.tracing.results import ResultForm, taken_apart
from yota.tracing.trace import Trace

_SMALL = 1024
"""Elements of an array up to which trips that write few of them carry all."""
_PART = 8
"""The part of the elements of a larger array, one of so many, that trips write at least."""


@dataclass
class LoopRecorder:
    """Records a loop onto the trace that runs in this thread.

    what, function: the public function, and the user's.
    trip: takes the number of the trip, what is carried and a row; gives what is carried, and what is stacked.
    rows, form: arrays of which each trip reads a row, and how a row is put together.
    checked: whether to refuse a trip that does not do the same when it is recorded again.
    moved: gives the numbers of the carried arrays into which a trip wrote, with those that they have after it.
    """

    what: str
    function: Callable[..., Any]
    trip: Callable[[Any, Any, Any], tuple[Any, Any]]
    carry: Any
    rows: Sequence[Any] = ()
    form: ResultForm | None = None
    count: Any = None
    condition: Callable[[Any], Any] | None = None
    checked: bool = False
    moved: Callable[[], dict[int, int]] = dict

    def run(self) -> tuple[Any, Any]:
        """What is carried at the end, and what is stacked."""
        trace = current()
        assert trace is not None
        self.initial: list[Any] = []
        self.carried = taken_apart(self.what, self.carry, self.initial)
        given = [trace.lift(each) for each in (*self.initial, *self.rows)]
        values = [trace.values[each] for each in given]
        rows = values[len(self.initial) :]
        firsts = [each[0] if len(each) else sample(TensorType(each.dtype, each.shape[1:])) for each in rows]
        carries = values[: len(self.initial)]
        counted = self.condition is None and trace.varies(self.count)
        self.most = sys.maxsize if counted or self.condition is not None else max(int(self.count), 1)
        known = trace.builder.count
        for _ in range(3):
            tape, outer, form = self._recorded(trace, carries, firsts)
            changed = self._settled(tape, carries)
            if changed is None:
                break
            carries = changed
        else:
            raise ArgumentError(f"{self.what}: the dtypes of what {name_of(self.function)} carries do not settle")
        if self.checked and not same(tape, self._recorded(trace, carries, firsts)[0]):
            raise TracingError(f"{name_of(self.function)} draws or counts something: its trips differ")
        initial = [
            each
            if type_of(value) == type_of(trace.values[variable])
            else trace.apply(primitive("astype"), (each,), {"dtype": np.dtype(value.dtype)})
            for each, variable, value in zip(self.initial, given, carries, strict=False)
        ]
        moved = self.moved()
        new = map(trace.builder.definition, range(known + 1, trace.builder.count + 1))
        # What a trip reads of arrays from outside may have been read there.
        self.read = {*map(trace.lift, outer), *(each for op in new if op is not None for each in op.operands)}
        arrays: list[tuple[int, Any, Sequence[Place]]] = []
        if not counted and self.condition is None:
            self.trips = max(int(self.count), 0)
            tape, arrays = self._without_written(trace, tape, initial, outer, moved)
            tape = self._with_rows(tape, outer, len(initial))
        self._check_written(trace, tape, moved)
        operands = [trace.lift(each) for each in (*initial, *self.rows, *outer)]
        region = self._region(trace, tape, len(initial), counted)
        if counted:
            operands.insert(0, trace.lift(self.count))
        with paused():
            found, seen = region.run_counted([trace.values[each] for each in operands])
        if self.condition is not None:
            region = replace(region, seen=seen)
        results = trace.record(LOOP, tuple(operands), {"region": region}, found)
        last = [*results[: region.carries]]
        rows = iter(results[region.carries :])
        ys = form.filled([next(rows) for _ in form.paths()])
        for _, array, places in arrays:
            for place in places:
                array[self._at(place)] = next(rows)
        for number, array, _ in reversed(arrays):
            last.insert(number, array)
        self._write(last, moved)
        return self.carried.filled(last[: len(self.initial)]), ys

    def _check_written(self, trace: Trace, tape: Tape, moved: dict[int, int]) -> None:
        """Refuse arrays into which trips write that have other names, or of which they write little."""
        if self.condition is not None and any(number != after for number, after in moved.items()):
            raise TracingError("trips exchange arrays, and their number is not known")
        for number, after in moved.items():
            array = self.initial[number]
            others = [each for place, each in enumerate(self.initial) if place != number]
            if array._base is not None or _is_shared(trace, array, self.read, others):
                raise TracingError("a trip writes an array that has other names")
            if array.size > _SMALL and _writes_little(tape, tape.inputs[1 + number].variable, tape.outputs[after]):
                raise TracingError("a trip writes little of a large array")

    def _write(self, last: list[Any], moved: dict[int, int]) -> None:
        """Write what the arrays hold after the loop."""
        values = [*last]
        for number in moved:
            cycle = [number]
            while moved[cycle[-1]] != number:
                cycle.append(moved[cycle[-1]])
            place = cycle[self.trips % len(cycle)] if len(cycle) > 1 else number
            last[place] = self.initial[number]
            last[place][...] = values[place]

    def _with_rows(self, tape: Tape, outer: list[Any], carries: int) -> Tape:
        """Reads of arrays from outside at the number of the trip become rows, whose adjoints are rows too."""
        first = 1 + carries + len(self.rows)
        sources = {entry.variable: value for entry, value in zip(tape.inputs[first:], outer, strict=True)}
        reads = [*rows_read(tape, sources, self.trips)]
        self.rows = [*self.rows, *(sources[op.operands[0]][self._at(place)] for op, place in reads)]
        made = [Input(op.result, 0, f"row{number}") for number, (op, _) in enumerate(reads)]
        inputs = [*tape.inputs[:first], *made, *tape.inputs[first:]]
        inputs = [Input(each.variable, number, each.name) for number, each in enumerate(inputs)]
        rows = {op.result for op, _ in reads}
        return replace(tape, ops=tuple([op for op in tape.ops if op.result not in rows]), inputs=tuple(inputs))

    def _at(self, place: Place) -> tuple[Any, ...]:
        """The index of the elements or rows of all trips."""
        found = place.positions(self.trips)
        stop = found.stop if found.stop >= 0 else None
        return slice(found.start, stop, found.step), *to_numpy(place.tail, ())

    def _without_written(
        self, trace: Trace, tape: Tape, initial: list[Any], outer: list[Any], moved: dict[int, int]
    ) -> tuple[Tape, list[tuple[int, Any, Sequence[Place]]]]:
        """A body that gives rows in the place of arrays whose rows trips write; these, with the places of the rows."""
        found: list[tuple[int, Any, Sequence[Place]]] = []
        for number in sorted((each for each in moved if moved[each] == each), reverse=True):
            try:
                made = stacked(tape, number, len(initial), self.trips)
            except TracingError:
                continue
            array = initial.pop(number)
            if array._base is not None or _is_shared(trace, array, self.read, initial):
                raise TracingError("a trip writes an array that has other names")
            del moved[number]
            initial += [array[(place.shift, *to_numpy(place.tail, ()))] for place in made.first]
            outer.append(array)
            tape = made.tape
            found.append((number, array, made.written))
        return dce.run(tape), found

    def _region(self, trace: Trace, tape: Tape, carries: int, counted: bool) -> Region:
        """The loop of what was recorded."""
        slices = len(self.rows)
        if self.condition is None:
            seen = max(int(trace.values[trace.lift(self.count)] if counted else int(self.count)), 0)
            return Region(tape, carries, slices, None if counted else seen, counted=counted, seen=seen)
        body = dce.run(replace(tape, outputs=tape.outputs[:carries]))
        condition = dce.run(replace(tape, outputs=tape.outputs[-1:]))
        return Region(body, carries, slices, None, condition)

    def _recorded(
        self, trace: Trace, carries: Sequence[Any], firsts: Sequence[Any]
    ) -> tuple[Tape, list[Any], ResultForm]:
        """The tape of a trip, what it reads besides, and the form of what is stacked."""
        forms: list[ResultForm] = []

        def flat(index: Any, *values: Any) -> Any:
            carry = self.carried.filled(values[: len(carries)])
            row = None if self.form is None else self.form.filled(values[len(carries) :])
            # A trip may write into what it is given.
            tests = [] if self.condition is None else [self.condition(carry)]
            after, y = self.trip(index, carry, row)
            y = (y, self._failures()) if self.checked else y
            found: list[Any] = []
            self._refuse_structure(taken_apart(self.what, after, found))
            forms.append(taken_apart(self.what, y, found))
            return (*found, *tests)

        flat.__name__ = name_of(self.function)
        leaves = [
            Leaf(each, number, f"c{number}" if number else "i") for number, each in enumerate((0, *carries, *firsts))
        ]
        found = record(flat, leaves, tuple, registry=trace.registry, trips=self.most, rolls=trace.rolls)
        tape = found.tape
        for guard in tape.guards:
            if not guard.signs:
                raise TracingError(
                    f"{where(guard.location)}{name_of(self.function)} decides by a traced value in a loop, and each "
                    "trip may decide otherwise; write the choice with np.where, or take the decision before the loop"
                )
        tape, arrays = _without_arrays(replace(tape, guards=()))
        return tape, [*found.outer.values(), *arrays], forms[-1]

    def _failures(self) -> tuple[Any, ...]:
        """Whether a trip of the user's raises an error, by each of the conditions for that."""
        trace = current()
        assert trace is not None
        if trace.failures and self.condition is not None:
            raise TracingError("a trip of a loop of unknown length may raise an error")
        return tuple(trace.failures)

    def _refuse_structure(self, found: ResultForm) -> None:
        before, after = list(self.carried.paths()), list(found.paths())
        if before != after:
            parts = [[spelled("carry", path) for path in each] for each in (before, after)]
            raise ArgumentError(
                f"{self.what}: {name_of(self.function)} was given {', '.join(parts[0]) or 'nothing'} and returned "
                f"{', '.join(parts[1]) or 'nothing'}; every trip keeps the structure of what is carried"
            )

    def _settled(self, tape: Tape, carries: Sequence[Any]) -> list[Any] | None:
        """None if a trip keeps the types of what it carries; else first values of other types. Raises ArgumentError."""
        pairs = list(zip((each.variable for each in tape.inputs[1:]), tape.outputs, carries, strict=False))
        if all(tape.types[before] == tape.types[after] for before, after, _ in pairs):
            return None
        found = []
        for (before, after, value), path in zip(pairs, self.carried.paths(), strict=True):
            one, other = tape.types[before], tape.types[after]
            if one.shape != other.shape or (one != other and not one.weak and not other.weak):
                raise ArgumentError(
                    f"{self.what}: {name_of(self.function)} changed {spelled('carry', path)} from {one} to {other}; "
                    "every trip keeps dtype and shape of what is carried"
                )
            # A Python number gives way to what it meets, in the first trip as here.
            dtype = np.result_type(one.dtype, other.dtype)
            found.append(value if one == other else dtype.type(value))
        return found


def _is_shared(trace: Trace, array: Any, read: Collection[int], others: Sequence[Any]) -> bool:
    """Whether some of what a trip reads or carries besides shares memory with an array."""
    return any(_is_view(trace, each, trace.lift(array)) for each in read) or id(array) in map(_root, others)


def _is_view(trace: Trace, variable: int, array: int) -> bool:
    """Whether a variable may share memory with an array, by what made it."""
    while variable != array:
        op = trace.builder.definition(variable)
        if op is None or not trace.builder.types[variable].shape or op.access not in VIEWS | {AccessMap.READ}:
            return False
        variable = op.operands[0]
    return True


def _writes_little(tape: Tape, array: int, last: int) -> bool:
    """Whether ops that make ``last`` of an array write but a small part of its elements."""
    size, written = tape.types[array].size, 0
    for op in tape.ops:
        if op.access == AccessMap.WRITE and op.operands[0] == array:
            arrays = [tape.types[each].shape for each in op.operands[2:]]
            written += math.prod(map(int, pattern_shape(op.keyword("index"), arrays)))
            array = op.result
    return array == last and written < int(size) // _PART


def _root(value: Any) -> int:
    """The identity of the array that a traced value is a view of."""
    while getattr(value, "_base", None) is not None:
        value = value._base
    return id(value)


def _without_arrays(tape: Tape) -> tuple[Tape, list[Any]]:
    """``tape`` with inputs in the place of constant arrays, and these."""
    arrays = {each: value for each, value in tape.constants.items() if isinstance(value, np.ndarray) and value.ndim}
    if not arrays:
        return tape, []
    first = len(tape.inputs)
    inputs = [Input(each, first + number, f"table{number}") for number, each in enumerate(arrays)]
    constants = {each: value for each, value in tape.constants.items() if each not in arrays}
    return replace(tape, inputs=(*tape.inputs, *inputs), constants=constants), list(arrays.values())
