"""What all loops of a kernel have in common: where results go, and how totals start and are merged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.emit.c.c_plan import Partial
from yota.emit.c.dialect import c_type, suffix
from yota.emit.c.lines import Needs, offset_text
from yota.emit.names import Names, identifier
from yota.emit.tree import Assign, Fill, Statement
from yota.ir.tape import Tape
from yota.schedule.nests.groups import Group, Schedule
from yota.schedule.nests.linear_index import Linear
from yota.schedule.nests.tiling import Root

_COUNTERS = "ijklmnopqrstuvw"
_NEUTRAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


@dataclass(slots=True)
class Sink:
    """What becomes of a value: stored, or added to a sum."""

    root: Root
    value: int
    offset: Linear
    dtype: np.dtype[Any]
    merge: str = ""
    depth: int = 0
    name: str = ""
    rest: str = ""


class ArrayNames(dict[int, str]):
    """Names of what a kernel reads, given when they are first needed."""

    def __init__(self, tape: Tape, names: Names) -> None:
        super().__init__()
        self._tape, self._names = tape, names
        self._inputs = {entry.variable: ".".join((entry.name, *map(str, entry.path))) for entry in tape.inputs}

    def __missing__(self, variable: int) -> str:
        hint = self._inputs.get(variable) or self._tape.names.get(variable)
        if not hint:
            hint = "table" if variable in self._tape.constants else f"v{variable}"
        name = self[variable] = self._names.fresh(hint)
        return name


def result_hint(tape: Tape, variable: int) -> str:
    """What a result may be called."""
    known = tape.names.get(variable)
    if known:
        return known
    if variable in tape.outputs:
        position = tape.outputs.index(variable)
        return "value" if position == 0 else "gradient" if len(tape.outputs) == 2 else f"gradient_{position - 1}"
    return f"v{variable}"


class Frame:
    """The kernel of one group.

    known: names of variables that stand fast.
    parameters: variables that get names first.
    whole: whether the outermost loop runs from end to end, rather than from ``first`` to ``last``.
    arrays, results: names of what it reads and of what it writes.
    several: whether there is more than one box.
    axes: the loops that are left when some were merged into the next one.
    strides: strides of arrays that are not in C order, in elements.
    rows: names of lengths of rows, by axis and length.
    """

    several = False
    axes: Sequence[int] = ()
    strides: Mapping[int, Sequence[int]] = {}
    rows: Mapping[tuple[int, int], str] = {}

    def __init__(
        self,
        plan: Schedule,
        group: Group,
        names: Names,
        needs: Needs,
        known: Mapping[int, str],
        parameters: Iterable[int] = (),
        *,
        whole: bool = False,
    ) -> None:
        tape = plan.tape
        self.plan, self.tape, self.group = plan, tape, group
        self.names, self.needs, self.whole = names, needs, whole
        self.arrays = ArrayNames(tape, names)
        self.arrays.update(known)
        for variable in parameters:
            self.arrays[variable]
        made = (root.variable for root in group.roots)
        self.results = {each: known.get(each) or names.fresh(result_hint(tape, each)) for each in made}
        # What the function calls its own are no counters.
        own = {identifier(name) for name in (*tape.names.values(), *(entry.name for entry in tape.inputs))}
        self.counters = names.among(_COUNTERS, len(group.extents), own)

    def target(self, sink: Sink, numbers: Mapping[int, str] | None = None) -> str:
        """Where a value goes, with the texts of what its place takes from index arrays."""
        name = self.results[sink.root.variable]
        if not self.tape.types[sink.root.variable].shape:
            return self.needs.language.result(name)
        return self.needs.language.element(name, self._text(sink.offset, numbers))

    def _text(self, offset: Linear, numbers: Mapping[int, str] | None = None) -> str:
        kept = Linear(offset.constant, tuple(term for term in offset.terms if term[0] in self.axes or term[0] < 0))
        return offset_text(kept, self.counters, numbers, self.rows)

    def is_private(self, root: Root) -> bool:
        """Whether every thread must have a result of its own, to be merged in the end."""
        reduced = root.reduced
        if not any(reduced):
            return False
        # Loops that are reduced must be the innermost ones for a sum to be complete when it is stored.
        return self.several or reduced[0] or reduced != sorted(reduced)

    def joined(self, merge: str, dtype: np.dtype[Any], target: str, value: str) -> Assign:
        """The statement by which a value, any expression, joins a total."""
        if merge == "sum" or (merge == "prod" and dtype.kind != "c"):
            return Assign(target, value, "+=" if merge == "sum" else "*=")
        part = {"prod": "complex_multiply", "max": "larger", "min": "smaller"}[merge]
        self.needs.parts.add((part, dtype.name))
        return Assign(target, f"{part}{suffix(dtype)}({target}, {value})")

    def neutral(self, merge: str) -> str:
        """What a total starts from."""
        return self.needs.language.literal(_NEUTRAL[merge], np.dtype(np.float64))

    def parts(self) -> tuple[list[Partial], list[Statement]]:
        """The results that every thread has a part of, and the statements that start these parts."""
        found: list[Partial] = []
        cleared: list[Statement] = []
        for root in filter(self.is_private, self.group.roots):
            type = self.tape.types[root.variable]
            name, size, neutral = self.results[root.variable], max(1, type.size, key=int), self.neutral(root.merge)
            part = f"{name}_parts[at + part * {size}]" if size != 1 else f"{name}_parts[part]"
            (joined,) = self.needs.language.printed([self.joined(root.merge, type.dtype, "so_far", part)])
            found.append(Partial(name, c_type(type.dtype), size, joined))
            if type.shape or size != 1:
                cleared.append(Fill(name, size, neutral, root.merge == "sum"))
            else:
                cleared.append(Assign(self.needs.language.result(name), neutral))
        return found, cleared


_LARGE = 1 << 25
"""Bytes of results that have left the caches before someone reads them."""
_AT_HAND = 1 << 15
"""Bytes of all blocks together that the nearest cache holds."""
_ROUNDS = (128, 64, 32, 16)
"""Lengths of blocks, in rounds of the loop."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A part of a result that one loop writes from its start to its end.

    start: the place that is written first.
    step: how many places are written in one round.
    held, to: names of the block at hand, and of what points to where the loop writes.
    sinks: what is written in one round, in the order of the places.
    row: the name of ``step``, if it has one.
    """

    result: str
    start: int
    step: int
    type: str
    held: str
    to: str
    sinks: tuple[Sink, ...]
    row: str

    def declared(self, block: str, rounds: int) -> list[str]:
        """Statements that make room for so many rounds, of which ``block`` is the first."""
        return [
            f"{self.type} {self.held}[{self.step * rounds}];",
            f"{self.type} *const {self.to} = at_hand({self.held}, {self._first(block)});",
        ]

    def target(self, sink: Sink, counter: str, block: str) -> str:
        """Where a value goes in one round."""
        further = sink.offset.constant - self.start
        return f"{self.to}[{self._place(f'{counter} - {block}', further, {(0, self.step): self.row})}]"

    def written(self, block: str, end: str) -> str:
        """The statement that writes the block."""
        rounds = f"({end} - {block})" if self.step == 1 else f"{self.step} * ({end} - {block})"
        return f"write_past_caches({self._first(block)}, {self.to}, {rounds} * sizeof *{self.to});"

    def _first(self, block: str) -> str:
        return f"{self.result} + {self._place(block, self.start)}"

    def _place(self, rounds: str, further: int, rows: Mapping[tuple[int, int], str] | None = None) -> str:
        counter = f"({rounds})" if " " in rounds and self.step > 1 else rounds
        return offset_text(Linear(further, ((0, self.step),)), [counter], rows=rows)


def streams(frame: Frame, sinks: Sequence[Sink]) -> tuple[list[Stream], int]:
    """What the only loop of a kernel writes in such an order, if it is much, and how many rounds a block has."""
    if frame.whole or len(frame.axes) != 1:
        return [], 0
    by_result: dict[int, list[Sink]] = {}
    for sink in sinks:
        if not sink.merge:
            by_result.setdefault(sink.root.variable, []).append(sink)
    runs = [run for each in by_result.values() for run in _runs(each, frame.axes[0])]
    size = sum(len(run) * run[0].dtype.itemsize for run in runs)
    rounds = next((each for each in _ROUNDS if size * each <= _AT_HAND), 0)
    if size * int(math.prod(frame.group.extents)) < _LARGE or not rounds:
        return [], 0
    frame.needs.parts.add(("past_caches", "uint8"))
    return [_stream(frame, run) for run in runs], rounds


def _runs(sinks: Sequence[Sink], axis: int) -> list[list[Sink]]:
    """The places that are neighbours in one round, and beside them those of the next round; empty if some are not."""
    step = sinks[0].offset.coefficient(axis)
    if step < 1 or len(sinks) % step or any(sink.offset.terms != ((axis, step),) for sink in sinks):
        return []
    ordered = sorted(sinks, key=lambda sink: sink.offset.constant)
    runs = [ordered[start : start + step] for start in range(0, len(ordered), step)]
    beside = all(sink.offset.constant == run[0].offset.constant + at for run in runs for at, sink in enumerate(run))
    return runs if beside else []


def _stream(frame: Frame, run: Sequence[Sink]) -> Stream:
    result = frame.results[run[0].root.variable]
    return Stream(
        result,
        run[0].offset.constant,
        len(run),
        c_type(run[0].dtype),
        frame.names.fresh(f"{result}_held"),
        frame.names.fresh(f"{result}_at"),
        tuple(run),
        frame.rows.get((frame.axes[0], len(run)), ""),
    )
