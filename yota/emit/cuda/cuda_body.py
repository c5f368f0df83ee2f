"""Writes the statements for the points of one CUDA kernel, and the loops around them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from yota.emit.c.dialect import c_type
from yota.emit.c.frame import Sink
from yota.emit.c.kernel_body import BodyWriter, check_kernel
from yota.emit.c.kernels import mentions
from yota.emit.c.lines import Needs, Writer, block
from yota.emit.cuda.thread_memory import Access, Layout, Memory, access_of
from yota.emit.cuda.threads import Counters, Shape, shape_of
from yota.emit.language import filled
from yota.emit.names import Names
from yota.emit.render import render_lines
from yota.emit.tree import Assign, Scope, Statement
from yota.ir.verify import is_on
from yota.schedule.nests.groups import Group, Schedule
from yota.schedule.nests.linear_index import Linear, flat
from yota.schedule.nests.pull import Pull
from yota.schedule.nests.tiling import Region, Root


@dataclass(frozen=True, slots=True)
class Total:
    """A value that threads add up: its name and type, the result it ends in, over all loops or not, and where in it."""

    name: str
    type: str
    sink: Sink
    full: bool
    target: str


_NARROW = 2**31 - 2**29
"""Offsets below this are counted in 32 bits, with room for one more round of all threads."""
_TOTALS = {"sum": "Sum", "prod": "Product", "max": "Largest", "min": "Smallest"}


class CudaBody(BodyWriter):
    """Writes one kernel.

    open: whether extents may be others when it runs.
    shape: None for straight code.
    """

    def __init__(
        self, plan: Schedule, group: Group, names: Names, needs: Needs, *, layout: Layout, threads: int, open: bool
    ) -> None:
        super().__init__(plan, group, names, needs, layout.tables)
        self.layout, self.threads, self.open, self.strides = layout, threads, open, layout.strides
        self.memory = Memory(plan.tape.types, self.arrays, self.results, layout, Access(threads))
        self.shape: Shape | None = None
        self.totals: dict[tuple[int, Linear], Total] = {}
        self.counters_of = Counters((), {}, "int")
        self.lines: list[str] = []

    def run(self) -> None:
        """Write all regions."""
        self._pull_all()
        if is_on():
            check_kernel(self, (), None, self.strides)
        inside = self.layout.inside
        self.places = {each: extent for each, extent in self.places.items() if each not in inside}
        self.memory.places = self.places
        if self.group.extents:
            self.lines = self._looped()
        else:
            self.lines = self.needs.language.printed(self._straight())
        if self.places:
            # Places outside of an axis are told in the end.
            self.lines = ["bool outside = false;", *self.lines, *block("if (outside)", ["*fault = 1;"])]

    def _looped(self) -> list[str]:
        """Loops over all points, or over what is kept and what is reduced."""
        group, axes = self.group, self.axes
        extents = self._extents(axes)
        shape = shape_of(group, axes, extents, self.threads, open=self.open)
        if not self.open and shape.flat and len(axes) == 1 and not self.several:
            access = self._access(self.pulled[0][1], self.pulled[0][2], shape)
            self.memory.reach(access, self.names)
            shape = shape_of(group, axes, extents, access.threads, access.width)
        self.shape = shape
        self.counters_of = Counters(self.counters, extents, "int64_t" if self.open or self._is_wide() else "int")
        hoisted, inner = self._points(shape)
        return self._nested(shape, hoisted, inner)

    def _nested(self, shape: Shape, hoisted: Sequence[Sequence[Statement]], inner: Sequence[Statement]) -> list[str]:
        """Loops around ``inner``, with ``hoisted`` ahead of all loops and of the inner one."""
        memory, counters, printed = self.memory, self.counters_of, self.needs.language.printed
        form = "packed" if memory.packs else "rows" if memory.held else "flat" if shape.flat else "folded"
        start = ("first + " if shape.splits > 1 else "") + "lane"
        if shape.deep == 1:
            start = "first" if shape.splits > 1 else "0"
        counter = counters.names[shape.kept[0]] if shape.kept else ""
        lines = printed(inner)
        return render_lines(
            f"cuda/loops/{form}.cu.jinja",
            memory=memory,
            counters=counters,
            shape=shape,
            hoisted=list(map(printed, hoisted)),
            inner=lines,
            totals=[total for total in self.totals.values() if total.full],
            own=[total for total in self.totals.values() if not total.full],
            index=counters.type,
            start=start,
            counter=counter,
            counts=mentions(lines, counter),
            packs=memory.all_packs(),
            rows=memory.all_rows(),
        )

    def _extents(self, axes: Sequence[int]) -> dict[int, int]:
        """Extents of the loops that are left, each with those that were merged into it."""
        found, first = {}, 0
        for axis in axes:
            found[axis] = math.prod(self.group.extents[first : axis + 1])
            first = axis + 1
        return found

    def _is_wide(self) -> bool:
        if math.prod(self.group.extents) >= _NARROW:
            return True
        whole = {axis: (0, extent) for axis, extent in enumerate(self.group.extents)}
        for _, pull, sinks in self.pulled:
            bounds = {**pull.bounds, **whole}
            forms = [value.offset for value in pull.values.items if value.offset is not None]
            if any(max(map(abs, form.reach(bounds))) >= _NARROW for form in [*forms, *(s.offset for s in sinks)]):
                return True
        return False

    def _access(self, pull: Pull, sinks: list[Sink], shape: Shape) -> Access:
        loads = (value for value in pull.values.items if value.kind == "load")
        read = [(value.data, value.offset) for value in loads if value.offset is not None]
        places = [*read, *((sink.root.variable, sink.offset) for sink in sinks if not sink.merge)]
        types = {variable: self.layout.type(variable, self.tape.types) for variable, _ in places}
        return access_of(places, types, self.axes[0], shape.points[0], self.threads, len(pull.values))

    # -- what BodyWriter asks for ------------------------------------------------------------------------

    def _sinks(self, pull: Pull, root: Root, box: Region) -> list[Sink]:
        found = super()._sinks(pull, root, box)
        if not any(root.reduced):
            return found
        assert root.reduction is not None
        over = root.reduction.keyword("axis")
        shape = tuple(extent for axis, extent in enumerate(root.shape) if axis not in over)
        whole = tuple((0, max(2, extent, key=int)) for extent in root.extents)
        offsets: dict[Linear, None] = {}
        for lane in root.lanes:
            point = root.point(lane, whole)
            offsets[flat(tuple(each for axis, each in enumerate(point) if axis not in over), shape)] = None
        return [replace(sink, offset=offset) for sink, offset in zip(found, offsets, strict=True)]

    def _depth(self, offset: Linear) -> int:
        """0 for what every point shares, 1 for what the points of one total share, else 2."""
        reduced = self.shape.reduced if self.shape else ()
        if any(axis in reduced for axis, _ in offset.terms):
            return 2
        return 1 if any(axis >= 0 for axis, _ in offset.terms) else 0

    def _element(self, variable: int, offset: Linear, place: str) -> str:
        return self.memory.read(variable, offset, place)

    def target(self, sink: Sink, numbers: Mapping[int, str] | None = None) -> str:
        """Where a result goes."""
        near = None if sink.merge else self.memory.near(sink.root.variable, sink.offset)
        return near or super().target(sink, numbers)

    # -- points ------------------------------------------------------------------------------------------

    def _points(self, shape: Shape) -> tuple[list[list[Statement]], list[Statement]]:
        """Statements ahead of all loops and of the inner one, and those for one point."""
        deepest = 1 if shape.flat else 2
        inner: list[Statement] = []
        for box, pull, sinks in self.pulled:
            writer = self._writer(pull, sinks)
            if not self.several:
                hoisted = [writer.lines(0), writer.lines(1) if deepest == 2 else []]
                return hoisted, [*writer.lines(deepest), *self._sunk(sinks, writer)]
            lines = [line for depth in range(deepest + 1) for line in writer.lines(depth)]
            lines += self._sunk(sinks, writer)
            if lines:
                inner.append(Scope(tuple(lines), self._inside(box)))
        return [[], []], inner

    def _inside(self, box: Region) -> str:
        tests = []
        for counter, (start, stop), extent in zip(self.counters, box, self.group.extents, strict=True):
            if stop == start + 1:
                tests.append(f"{counter} == {start!s}")
                continue
            if start:
                tests.append(f"{start!s} <= {counter}")
            if stop != extent:
                tests.append(f"{counter} < {stop!s}")
        return " && ".join(tests)

    def _sunk(self, sinks: list[Sink], writer: Writer) -> list[Statement]:
        before: list[Statement] = []
        found: list[Statement] = []
        for sink in sinks:
            text = self._told(sink, writer.text(sink.value, before))
            if sink.merge:
                found += filled(f"{self._total(sink).name}.add({text});")
            else:
                found.append(Assign(self.target(sink), text))
        return [*before, *found]

    def _told(self, sink: Sink, text: str) -> str:
        """What is computed with a place outside of an axis is not a number."""
        return f"unless({text}, outside)" if self.memory.places and sink.dtype.kind in "fc" else text

    def _total(self, sink: Sink) -> Total:
        key = sink.root.variable, sink.offset
        if key not in self.totals:
            base = self.results[sink.root.variable]
            name = self.names.fresh(f"{base}_{'sum' if sink.merge == 'sum' else 'so_far'}")
            kind = f"{_TOTALS[sink.merge]}<{c_type(sink.dtype)}>"
            self.totals[key] = Total(name, kind, sink, all(sink.root.reduced), self.target(sink))
        return self.totals[key]

    def is_private(self, root: Root) -> bool:
        """No thread writes into another's result."""
        return False
