"""Writes the loops over one region of a kernel, with sums in blocks so that they stay accurate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from yota.codegen.c.frame import Frame, Sink, streams
from yota.codegen.c.lines import Writer, block, filled
from yota.codegen.c.regions import Region
from yota.codegen.c.types import c_type, suffix
from yota.ir.extents import Extent

_BLOCK = 128
"""Elements that are added up without compensation: as many as in NumPy's pairwise sums."""
_SHORT = 256
"""Rounds of a loop that are few for vectors of bytes."""
_VECTOR = 64
"""Bytes of a vector."""


class Nest:
    """The loops over one region."""

    def __init__(
        self, body: Frame, box: Region, sinks: list[Sink], axes: Sequence[int], several: bool, writer: Writer
    ) -> None:
        self.body, self.box, self.sinks = body, box, sinks
        self.axes, self.several, self.writer = axes, several, writer
        self.totals = [sink for sink in sinks if sink.merge and sink.depth < len(axes)]
        for sink in self.totals:
            base = body.results[sink.root.variable]
            sink.name = body.names.fresh(f"{base}_sum" if sink.merge == "sum" else f"{base}_so_far")
            sink.rest = body.names.fresh(f"{sink.name}_rest") if self._compensated(sink) else ""
        self.streams, rounds = ([], 0) if several else streams(body, sinks, axes)
        self.block = rounds or _BLOCK
        self.held: list[Sink] = []
        self.start = ""

    def _within_block(self, counter: str) -> str:
        return counter if self.start == "0" else f"{counter} - {self.start}"

    def _target(self, sink: Sink) -> str:
        return self.body.target(sink, self.axes, self.writer.read_again(sink.offset))

    def _compensated(self, sink: Sink) -> bool:
        return sink.merge == "sum"

    def lines(self) -> list[str]:
        """The loops."""
        lines = self._at(0)
        # Values and totals outside of all loops need a scope when there are several nests.
        return block("", lines) if self.several else lines

    def _at(self, depth: int) -> list[str]:
        """Statements inside of ``depth`` loops."""
        lines = self.writer.lines(depth)
        if depth == len(self.axes):
            return [*lines, *self._innermost(lines)]
        own = [sink for sink in self.totals if sink.depth == depth]
        for sink in own:
            lines.append(self._declaration(sink))
        lines += self._loop(depth)
        for sink in own:
            lines += self._finished(sink)
        return lines

    def _declaration(self, sink: Sink) -> str:
        kind = self._total_type(sink)
        neutral = self.body.neutral(sink.merge)
        rest = f", {sink.rest} = 0.0" if sink.rest else ""
        return f"{kind} {sink.name} = {neutral}{rest};"

    def _total_type(self, sink: Sink) -> str:
        """Sums of single precision are kept in double precision between blocks."""
        if sink.merge != "sum":
            return c_type(sink.dtype)
        return "complex128" if sink.dtype.kind == "c" else "double"

    def _finished(self, sink: Sink) -> list[str]:
        target = self.body.target(sink, self.axes)
        value = sink.name
        if sink.rest:
            value = f"{self._part_function('total', sink)}({sink.name}, {sink.rest})"
            if sink.dtype.name in ("float32", "complex64"):
                value = f"({c_type(sink.dtype)}){value}"
        if self.body.is_private(sink.root, self.several, self.axes) and (self.several or sink.depth):
            return filled(self.body.joined(sink.merge, sink.dtype, target, value))
        return [f"{target} = {value};"]

    def _part_function(self, name: str, sink: Sink) -> str:
        name, dtype = (f"complex_{name}", "complex128") if sink.dtype.kind == "c" else (name, "float64")
        self.body.needs.parts.add((name, dtype))
        return name

    def _range(self, depth: int) -> tuple[str, str]:
        axis = self.axes[depth]
        start, stop = self.box[axis]
        if not self.several:
            first = self.axes[depth - 1] + 1 if depth else 0
            start, stop = 0, math.prod(self.body.group.extents[first : axis + 1])
        if depth or stop == start + 1 or self.body.whole:
            return str(start), str(stop)
        if not self.several:
            return "first", "last"
        return f"first > {start} ? first : {start}", f"last < {stop} ? last : {stop}"

    def _loop(self, depth: int) -> list[str]:
        counter = self.body.counters[self.axes[depth]]
        start, stop = self._range(depth)
        innermost = depth == len(self.axes) - 1
        parts = self.totals if innermost else []
        scattered = [sink for sink in self.sinks if innermost and sink.root.scattered]
        lines: list[str] = []
        single = not self._is_loop(depth)
        if single:
            return self._single(depth)
        if depth == 0 and self.several and not self.body.whole:
            lines += [f"const ptrdiff_t {counter}_first = {start};", f"const ptrdiff_t {counter}_last = {stop};"]
            start, stop = f"{counter}_first", f"{counter}_last"
        if not parts and not scattered and not self.streams:
            pragma = [f"#pragma omp simd{self._width()}"] if innermost and self._is_vector() else []
            inner = self._at(depth + 1)
            head = f"for (ptrdiff_t {counter} = {start}; {counter} < {stop}; {counter}++)"
            return [*lines, *pragma, *block(head, inner)]
        return [*lines, *self._blocks(depth, counter, start, stop, parts, scattered)]

    def _is_loop(self, depth: int) -> bool:
        start, stop = self.box[self.axes[depth]]
        return stop > start + 1 or not self.several

    def _single(self, depth: int) -> list[str]:
        """A loop of one round: its counter is a number in every index already."""
        start, _ = self.box[self.axes[depth]]
        inner = self._at(depth + 1)
        if depth == len(self.axes) - 1:
            inner = [*self._parts_declared(), *inner, *self._parts_added()]
        return block("" if depth or self.body.whole else f"if (first <= {start} && {start} < last)", inner)

    def _is_vector(self) -> bool:
        """Whether the innermost loop may be run on vectors: no value depends on another round."""
        merged = [sink for sink in self.sinks if sink.merge and sink not in self.held]
        strided = any(sink.depth == len(self.axes) for sink in merged)
        return not strided or all(sink.offset.coefficient(self.axes[-1]) for sink in merged)

    def _part(self, sink: Sink) -> str:
        return f"{sink.name}_part"

    def _parts_declared(self) -> list[str]:
        return [f"{c_type(sink.dtype)} {self._part(sink)} = {self.body.neutral(sink.merge)};" for sink in self.totals]

    def _parts_added(self) -> list[str]:
        lines = []
        for sink in self.totals:
            part = self._part(sink)
            if sink.rest:
                function = self._part_function("add_to", sink)
                lines.append(f"{function}(&{sink.name}, &{sink.rest}, {part});")
            else:
                lines.append(self.body.joined(sink.merge, sink.dtype, sink.name, part))
        return lines

    def _blocks(
        self, depth: int, counter: str, start: str, stop: str, parts: list[Sink], scattered: list[Sink]
    ) -> list[str]:
        known = start.isdigit() and stop.isdigit() and int(stop) - int(start) <= self.block
        first = start if known else self.body.names.fresh("block")
        end = stop if known else self.body.names.fresh("end")
        # What falls on one place must be added in turn, which vectors cannot: it is held until the block is computed.
        self.held, self.start = scattered, first
        for sink in scattered:
            sink.name = self.body.names.fresh(f"{self.body.results[sink.root.variable]}_held")
        inner = self._at(depth + 1)
        head = f"for (ptrdiff_t {counter} = {first}; {counter} < {end}; {counter}++)"
        place = self._within_block(counter)
        added = [f"{self._target(sink)} += {sink.name}[{place}];" for sink in scattered]
        body = [
            *self._parts_declared(),
            *(f"{c_type(sink.dtype)} {sink.name}[{self.block}];" for sink in scattered),
            *(line for stream in self.streams for line in stream.declared(first, self.block)),
            *self._pragma(parts),
            *block(head, inner),
            *(block(head, added) if scattered else []),
            *(stream.written(first, end) for stream in self.streams),
            *self._parts_added(),
        ]
        self.held = []
        if known:
            return block("", body)
        body.insert(0, f"const ptrdiff_t {end} = {first} + {self.block} < {stop} ? {first} + {self.block} : {stop};")
        outer = f"for (ptrdiff_t {first} = {start}; {first} < {stop}; {first} += {self.block})"
        return [*block(outer, body), *(["finish_writing();"] if self.streams else [])]

    def _pragma(self, parts: list[Sink]) -> list[str]:
        if not self._is_vector() or any(sink.dtype.kind == "c" for sink in parts):
            return []
        symbols: dict[str, list[str]] = {}
        for sink in parts:
            symbol = {"sum": "+", "prod": "*", "max": "larger", "min": "smaller"}[sink.merge]
            if len(symbol) > 1:
                symbol += suffix(sink.dtype)
            symbols.setdefault(symbol, []).append(self._part(sink))
        clauses = "".join(f" reduction({symbol} : {', '.join(each)})" for symbol, each in symbols.items())
        return [f"#pragma omp simd{self._width()}{clauses}"]

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
        return self.body.target(sink, self.axes)

    def _innermost(self, lines: list[str]) -> list[str]:
        """What becomes of the values of one point."""
        found: list[str] = []
        before: list[str] = []
        counter = self.body.counters[self.axes[-1]]
        for sink in self.sinks:
            text = self.writer.text(sink.value, before)
            if not sink.merge:
                found += filled(f"{self._stored(sink, counter)} = {text};")
                continue
            if sink in self.held:
                found += filled(f"{sink.name}[{self._within_block(counter)}] = {text};")
                continue
            target = self._part(sink) if sink.depth < len(self.axes) else self._target(sink)
            found += filled(self.body.joined(sink.merge, sink.dtype, target, text))
        return [*before, *found]
