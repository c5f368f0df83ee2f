"""Writes the loops over one region of a kernel, with sums in blocks so that they stay accurate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from yota.emit.c.dialect import suffix
from yota.emit.c.frame import Frame, Sink, streams
from yota.emit.c.lines import Writer
from yota.emit.tree import AddTo, Assign, Define, Loop, Room, Scope, Statement, Variable
from yota.ir.extents import Extent, Spelled
from yota.schedule.nests.tiling import Region

_BLOCK = 128
"""Elements that are added up without compensation: as many as in NumPy's pairwise sums."""
_SHORT = 256
"""Rounds of a loop that are few for vectors of bytes."""
_VECTOR = 64
"""Bytes of a vector."""


class Nest:
    """The loops over one region."""

    def __init__(self, body: Frame, box: Region, sinks: list[Sink], writer: Writer) -> None:
        self.body, self.box, self.sinks, self.writer = body, box, sinks, writer
        self.axes, self.several = body.axes, body.several
        self.language = body.needs.language
        self.totals = [sink for sink in sinks if sink.merge and sink.depth < len(self.axes)]
        for sink in self.totals:
            base = body.results[sink.root.variable]
            sink.name = body.names.fresh(f"{base}_sum" if sink.merge == "sum" else f"{base}_so_far")
        self.streams, rounds = ([], 0) if self.several else streams(body, sinks)
        self.block = rounds or _BLOCK
        last = len(self.axes) - 1
        start, stop = self._bounds(last)
        one_block = not isinstance(stop - start, Extent) and stop - start <= self.block
        for sink in self.totals:
            added = sink.merge == "sum" and not (one_block and sink.depth == last)
            sink.rest = body.names.fresh(f"{sink.name}_rest") if added else ""
        self.held: list[Sink] = []
        self.start = ""

    def _within_block(self, counter: str) -> str:
        return counter if self.start == "0" else f"{counter} - {self.start}"

    def _target(self, sink: Sink) -> str:
        return self.body.target(sink, self.writer.read_again(sink.offset))

    def lines(self) -> list[Statement]:
        """The loops."""
        lines = self._at(0)
        # Values and totals outside of all loops need a scope when there are several nests.
        return [Scope(tuple(lines))] if self.several else lines

    def _at(self, depth: int) -> list[Statement]:
        lines = self.writer.lines(depth)
        if depth == len(self.axes):
            return [*lines, *self._innermost()]
        own = [sink for sink in self.totals if sink.depth == depth]
        for sink in own:
            kind = self.language.type(self._total_type(sink))
            lines.append(Variable(kind, sink.name, self.body.neutral(sink.merge), sink.rest))
        return [*lines, *self._loop(depth), *map(self._finished, own)]

    def _total_type(self, sink: Sink) -> np.dtype[Any]:
        """Sums of single precision are kept in double precision between blocks."""
        if sink.merge != "sum":
            return sink.dtype
        return np.dtype(np.complex128 if sink.dtype.kind == "c" else np.float64)

    def _finished(self, sink: Sink) -> Statement:
        target = self.body.target(sink)
        value: str = sink.name
        if sink.rest:
            value = f"{self._part_function('total', sink)}({sink.name}, {sink.rest})"
        if sink.dtype != self._total_type(sink):
            value = self.language.cast(self._total_type(sink), sink.dtype, Spelled(value)) or value
        if self.body.is_private(sink.root) and (self.several or sink.depth):
            return self.body.joined(sink.merge, sink.dtype, target, value)
        return Assign(target, value)

    def _part_function(self, name: str, sink: Sink) -> str:
        name, dtype = (f"complex_{name}", "complex128") if sink.dtype.kind == "c" else (name, "float64")
        self.body.needs.parts.add((name, dtype))
        return name

    def _bounds(self, depth: int) -> tuple[int, int]:
        axis = self.axes[depth]
        if self.several:
            return self.box[axis]
        first = self.axes[depth - 1] + 1 if depth else 0
        return 0, math.prod(self.body.group.extents[first : axis + 1])

    def _range(self, depth: int) -> tuple[str, str]:
        start, stop = self._bounds(depth)
        if depth or stop == start + 1 or self.body.whole:
            return str(start), str(stop)
        if not self.several:
            return "first", "last"
        return f"first > {start} ? first : {start}", self.language.smaller("last", str(stop))

    def _loop(self, depth: int) -> list[Statement]:
        counter = self.body.counters[self.axes[depth]]
        start, stop = self._range(depth)
        innermost = depth == len(self.axes) - 1
        parts = self.totals if innermost else []
        scattered = [sink for sink in self.sinks if innermost and sink.root.scattered]
        lines: list[Statement] = []
        low, high = self.box[self.axes[depth]]
        if self.several and int(high - low) <= 1:
            # A loop of one round: its counter is a number in every index already.
            inner = self._at(depth + 1)
            if innermost:
                inner = [*self._parts_declared(), *inner, *self._parts_added()]
            return [Scope(tuple(inner), "" if depth or self.body.whole else f"first <= {low} && {low} < last")]
        if depth == 0 and self.several and not self.body.whole:
            size = self.language.size()
            lines += [Define(size, f"{counter}_first", start), Define(size, f"{counter}_last", stop)]
            start, stop = f"{counter}_first", f"{counter}_last"
        if not parts and not scattered and not self.streams:
            vector = self._width() if innermost and self._is_vector() else None
            return [*lines, Loop(counter, start, stop, tuple(self._at(depth + 1)), vector=vector)]
        return [*lines, *self._blocks(depth, counter, start, stop, parts, scattered)]

    def _is_vector(self) -> bool:
        """Whether the innermost loop may be run on vectors: no value depends on another round."""
        if not self.language["vectors"]:
            return False
        merged = [sink for sink in self.sinks if sink.merge and sink not in self.held]
        strided = any(sink.depth == len(self.axes) for sink in merged)
        return not strided or all(sink.offset.coefficient(self.axes[-1]) for sink in merged)

    def _part(self, sink: Sink) -> str:
        return f"{sink.name}_part"

    def _parts_declared(self) -> list[Statement]:
        return [
            Variable(self.language.type(sink.dtype), self._part(sink), self.body.neutral(sink.merge))
            for sink in self.totals
        ]

    def _parts_added(self) -> list[Statement]:
        lines: list[Statement] = []
        for sink in self.totals:
            part = self._part(sink)
            if sink.rest:
                function = self._part_function("add_to", sink)
                lines.append(AddTo(function, sink.name, sink.rest, part))
            else:
                lines.append(self.body.joined(sink.merge, sink.dtype, sink.name, part))
        return lines

    def _blocks(
        self, depth: int, counter: str, start: str, stop: str, parts: list[Sink], scattered: list[Sink]
    ) -> list[Statement]:
        known = start.isdigit() and stop.isdigit() and int(stop) - int(start) <= self.block
        first = start if known else self.body.names.fresh("block")
        end = stop if known else self.body.names.fresh("end")
        # What falls on one place must be added in turn, which vectors cannot: it is held until the block is computed.
        self.held, self.start = scattered, first
        for sink in scattered:
            sink.name = self.body.names.fresh(f"{self.body.results[sink.root.variable]}_held")
        inner = tuple(self._at(depth + 1))
        place = self._within_block(counter)
        held = (self.language.element(sink.name, place) for sink in scattered)
        added = tuple(Assign(self._target(sink), each, "+=") for sink, each in zip(scattered, held, strict=True))
        body: list[Statement] = [
            *self._parts_declared(),
            *(Room(self.language.type(sink.dtype), sink.name, self.block) for sink in scattered),
            *(line for stream in self.streams for line in stream.declared(first, self.block)),
            Loop(counter, first, end, inner, vector=self._clauses(parts)),
            *([Loop(counter, first, end, added)] if scattered else []),
            *(stream.written(first, end) for stream in self.streams),
            *self._parts_added(),
        ]
        self.held = []
        if known:
            return [Scope(tuple(body))]
        body.insert(0, Define(self.language.size(), end, self.language.smaller(f"{first} + {self.block}", stop)))
        outer = Loop(first, start, stop, tuple(body), str(self.block))
        return [outer, *(["finish_writing();"] if self.streams else [])]

    def _clauses(self, parts: list[Sink]) -> str | None:
        """What is said of running rounds together; None if they may not be."""
        if not self._is_vector() or any(sink.dtype.kind == "c" for sink in parts):
            return None
        symbols: dict[str, list[str]] = {}
        for sink in parts:
            end = suffix(sink.dtype)
            symbol = {"sum": "+", "prod": "*", "max": f"larger{end}", "min": f"smaller{end}"}[sink.merge]
            symbols.setdefault(symbol, []).append(self._part(sink))
        clauses = "".join(f" reduction({symbol} : {', '.join(each)})" for symbol, each in symbols.items())
        return f"{self._width()}{clauses}"

    def _width(self) -> str:
        """The length of vectors for a short loop, which else may be shorter than the vectors of its smallest type."""
        start, stop = self.box[self.axes[-1]]
        if isinstance(stop - start, Extent):
            return ""
        sizes = [np.dtype(value.dtype).itemsize for value in self.writer.values.items if value.kind != "literal"]
        if stop - start >= _SHORT or len(set(sizes)) < 2:
            return ""
        return f" simdlen({_VECTOR // max(sizes)})"

    def _stored(self, sink: Sink, counter: str) -> str:
        for stream in self.streams:
            if any(sink is each for each in stream.sinks):
                return stream.target(sink, counter, self.start)
        return self.body.target(sink)

    def _innermost(self) -> list[Statement]:
        found: list[Statement] = []
        before: list[Statement] = []
        counter = self.body.counters[self.axes[-1]]
        for sink in self.sinks:
            text = self.writer.text(sink.value, before)
            if not sink.merge:
                found.append(Assign(self._stored(sink, counter), text))
                continue
            if sink in self.held:
                found.append(Assign(self.language.element(sink.name, self._within_block(counter)), text))
                continue
            target = self._part(sink) if sink.depth < len(self.axes) else self._target(sink)
            found.append(self.body.joined(sink.merge, sink.dtype, target, text))
        return [*before, *found]
