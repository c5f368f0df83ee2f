"""Writes the statements for the points of one CUDA kernel, and the loops around them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from yota.emit.c.c_types import c_type
from yota.emit.c.coverage import check_kernel
from yota.emit.c.frame import Sink
from yota.emit.c.kernel_body import LIMIT, BodyWriter
from yota.emit.c.kernels import mentions
from yota.emit.c.lines import Needs, Writer, block
from yota.emit.cuda.thread_memory import Access, Layout, Memory, access_of
from yota.emit.cuda.threads import Counters, Shape, open_shape, shape_of
from yota.emit.language import filled
from yota.emit.names import Names
from yota.emit.render import render_lines
from yota.emit.tree import Assign, Scope, Statement
from yota.ir.verify import is_on
from yota.schedule.nests.groups import Group, Schedule
from yota.schedule.nests.linear_index import Bounds, Linear, flat
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


def _loops(
    memory: Memory,
    counters: Counters,
    shape: Shape,
    hoisted: Sequence[Sequence[str]],
    inner: Sequence[str],
    totals: Sequence[Total],
) -> list[str]:
    """A kernel's statements: loops around ``inner``, with ``hoisted`` ahead of all loops and of the inner one."""
    form = "packed" if memory.packs else "rows" if memory.held else "flat" if shape.flat else "folded"
    start = ("first + " if shape.splits > 1 else "") + "lane"
    if shape.deep == 1:
        start = "first" if shape.splits > 1 else "0"
    counter = counters.names[shape.kept[0]] if shape.kept else ""
    return render_lines(
        f"cuda/loops/{form}.cu.jinja",
        memory=memory,
        counters=counters,
        shape=shape,
        hoisted=hoisted,
        inner=list(inner),
        totals=[total for total in totals if total.full],
        own=[total for total in totals if not total.full],
        index=counters.type,
        start=start,
        counter=counter,
        counts=mentions(inner, counter),
        packs=memory.all_packs(),
        rows=memory.all_rows(),
    )


_NARROW = 2**31 - 2**29
"""Offsets below this are counted in 32 bits, with room for one more round of all threads."""
_TOTALS = {"sum": "Sum", "prod": "Product", "max": "Largest", "min": "Smallest"}


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel's statements, its shape (None for straight code), and the totals that its blocks leave in parts.

    ``checked`` are the index arrays of which it tells places outside of an axis.
    """

    lines: list[str]
    reads: set[int]
    shape: Shape | None
    totals: tuple[Total, ...]
    counters: Counters
    checked: Mapping[int, int]


class CudaBody(BodyWriter):
    """Writes one kernel.

    layout: how arguments and results lie in memory.
    threads: threads of a block.
    open: whether extents may be others when it runs.
    """

    def __init__(
        self,
        plan: Schedule,
        group: Group,
        arrays: Mapping[int, str],
        results: Mapping[int, str],
        names: Names,
        needs: Needs,
        *,
        layout: Layout,
        threads: int,
        open: bool = False,
    ) -> None:
        super().__init__(plan, group, arrays, results, names, needs)
        self.layout, self.threads, self.open = layout, threads, open
        self.memory = Memory(plan.tape.types, arrays, results, layout, threads)
        self._reduced: frozenset[int] = frozenset()
        self._axes_left: Sequence[int] = ()

    def text(self) -> Text:
        """The kernel's text."""
        group = self.group
        boxes = self._boxes()
        pulled = [(box, *self._pulled(box)) for box in boxes]
        if is_on():
            check_kernel(self.tape, group, pulled, (), None, self.layout.strides)
        checked = self.memory.places
        for _, pull, _ in pulled:
            checked.update({v: extent for v, extent in pull.places.items() if v not in self.layout.inside})
        if not group.extents:
            ((_, pull, sinks),) = pulled
            lines = self._telling(self.needs.language.printed(self._straight(pull, sinks)))
            return Text(lines, self.reads, None, (), Counters((), {}, "int"), checked)
        axes = self._axes([sinks for _, _, sinks in pulled], [pull for _, pull, _ in pulled], len(boxes) > 1)
        self._axes_left = axes
        extents = self._extents(axes)
        shape = (open_shape if self.open else shape_of)(group, axes, extents, self.threads)
        if not self.open and shape.flat and len(axes) == 1 and len(boxes) == 1:
            access = self._access(pulled[0][1], pulled[0][2], axes[0], shape)
            self.memory.reach(access, self.names)
            shape = shape_of(group, axes, extents, access.threads, access.width)
        self._reduced = frozenset(shape.reduced)
        counters = Counters(self.counters, extents, "int64_t" if self.open or self._is_wide(pulled) else "int")
        totals: dict[tuple[int, Linear], Total] = {}
        inner, *hoisted = map(self.needs.language.printed, self._points(pulled, shape, totals))
        found = tuple(totals.values())
        lines = self._telling(_loops(self.memory, counters, shape, hoisted, inner, found))
        return Text(lines, self.reads, shape, found, counters, checked)

    def _telling(self, lines: list[str]) -> list[str]:
        """Statements that tell of places outside of an axis in the end."""
        if not self.memory.places:
            return lines
        return ["bool outside = false;", *lines, *block("if (outside)", ["*fault = 1;"])]

    def _extents(self, axes: Sequence[int]) -> dict[int, int]:
        """Extents of the loops that are left, each with those that were merged into it."""
        found, first = {}, 0
        for axis in axes:
            found[axis] = math.prod(self.group.extents[first : axis + 1])
            first = axis + 1
        return found

    def _is_wide(self, pulled: list[tuple[Region, Pull, list[Sink]]]) -> bool:
        if math.prod(self.group.extents) >= _NARROW:
            return True
        whole = {axis: (0, extent) for axis, extent in enumerate(self.group.extents)}
        for _, pull, sinks in pulled:
            bounds = {**pull.bounds, **whole}
            forms = [value.offset for value in pull.values.items if value.offset is not None]
            if any(max(map(abs, form.reach(bounds))) >= _NARROW for form in [*forms, *(s.offset for s in sinks)]):
                return True
        return False

    def _access(self, pull: Pull, sinks: list[Sink], axis: int, shape: Shape) -> Access:
        read = [(value.data, value.offset) for value in pull.values.items if value.offset is not None]
        written = [(sink.root.variable, sink.offset) for sink in sinks if not sink.merge]
        points = shape.points[0]
        types = {variable: self.layout.type(variable, self.tape.types) for variable, _ in (*read, *written)}
        return access_of([*read, *written], types, axis, points, self.threads, len(pull.values))

    # -- what BodyWriter asks for ------------------------------------------------------------------------

    def _pull(self, bounds: Bounds) -> Pull:
        return Pull(self.tape, self.plan.definitions, self.plan.leaves, bounds, LIMIT, self.layout.strides)

    def _sinks(self, pull: Pull, root: Root, box: Region) -> list[Sink]:
        """Sinks; totals are stored after the loops, whatever region their terms come from."""
        found = super()._sinks(pull, root, box)
        if not any(root.reduced):
            return found
        assert root.reduction is not None
        over = root.reduction.keyword("axis")
        shape = tuple(extent for axis, extent in enumerate(root.shape) if axis not in over)
        whole = tuple((0, max(2, extent)) for extent in root.extents)
        offsets: dict[Linear, None] = {}
        for lane in root.lanes:
            point = root.point(lane, whole)
            offsets[flat(tuple(each for axis, each in enumerate(point) if axis not in over), shape)] = None
        return [replace(sink, offset=offset) for sink, offset in zip(found, offsets, strict=True)]

    def _depth(self, offset: Linear, axes: Sequence[int]) -> int:
        """0 for what every point shares, 1 for what the points of one total share, else 2."""
        if any(axis in self._reduced for axis, _ in offset.terms):
            return 2
        return 1 if any(axis >= 0 for axis, _ in offset.terms) else 0

    def _reader(self, axes: Sequence[int]) -> Callable[[int, Linear, Mapping[int, str]], str]:
        def read(variable: int, offset: Linear, numbers: Mapping[int, str]) -> str:
            self.reads.add(variable)
            return self.memory.read(variable, offset, self._text(offset, axes, numbers))

        return read

    def target(self, sink: Sink, axes: Sequence[int], numbers: Mapping[int, str] | None = None) -> str:
        """Where a result goes."""
        near = None if sink.merge else self.memory.near(sink.root.variable, sink.offset)
        return near or super().target(sink, axes, numbers)

    # -- points ------------------------------------------------------------------------------------------

    def _points(
        self, pulled: list[tuple[Region, Pull, list[Sink]]], shape: Shape, totals: dict[tuple[int, Linear], Total]
    ) -> Iterator[list[Statement]]:
        """Statements for one point, and those that stand ahead of all loops and of the inner one."""
        several = len(pulled) > 1
        inner: list[Statement] = []
        hoisted: list[list[Statement]] = [[], []]
        for box, pull, sinks in pulled:
            writer = self._writer(pull, sinks, self._axes_left)
            deepest = 1 if shape.flat else 2
            if not several:
                hoisted = [writer.lines(0), writer.lines(1) if deepest == 2 else []]
                inner += [*writer.lines(deepest), *self._sunk(sinks, writer, totals)]
                continue
            lines = [line for depth in range(deepest + 1) for line in writer.lines(depth)]
            lines += self._sunk(sinks, writer, totals)
            if lines:
                inner.append(Scope(tuple(lines), self._inside(box)))
        yield inner
        yield from hoisted

    def _inside(self, box: Region) -> str:
        """Whether the point lies in a region."""
        tests = []
        for counter, (start, stop), extent in zip(self.counters, box, self.group.extents, strict=True):
            if stop == start + 1:
                tests.append(f"{counter} == {start!s}")
                continue
            if start:
                tests.append(f"{start!s} <= {counter}")
            if stop < extent:
                tests.append(f"{counter} < {stop!s}")
        return " && ".join(tests)

    def _sunk(self, sinks: list[Sink], writer: Writer, totals: dict[tuple[int, Linear], Total]) -> list[Statement]:
        """What becomes of the values of one point."""
        before: list[Statement] = []
        found: list[Statement] = []
        for sink in sinks:
            text = self._told(sink, writer.text(sink.value, before))
            if sink.merge:
                found += filled(f"{self._total(sink, totals).name}.add({text});")
            else:
                found.append(Assign(self.target(sink, self._axes_left), text))
        return [*before, *found]

    def _told(self, sink: Sink, text: str) -> str:
        """What is computed with a place outside of an axis is not a number."""
        return f"unless({text}, outside)" if self.memory.places and sink.dtype.kind in "fc" else text

    def _total(self, sink: Sink, totals: dict[tuple[int, Linear], Total]) -> Total:
        key = sink.root.variable, sink.offset
        if key not in totals:
            base = self.results[sink.root.variable]
            name = self.names.fresh(f"{base}_{'sum' if sink.merge == 'sum' else 'so_far'}")
            kind = f"{_TOTALS[sink.merge]}<{c_type(sink.dtype)}>"
            full = all(sink.root.reduced)
            target = self.target(sink, () if full else self._axes_left)
            totals[key] = Total(name, kind, sink, full, target)
        return totals[key]

    def is_private(self, root: Root, several: bool, axes: Sequence[int]) -> bool:
        """No thread writes into another's result."""
        return False
