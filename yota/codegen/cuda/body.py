"""Writes the body of one CUDA kernel: grid-stride loops over its points, and totals that blocks leave in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from yota.codegen.c.body import BodyWriter
from yota.codegen.c.groups import Group
from yota.codegen.c.index import Bounds, Linear, Point, flat
from yota.codegen.c.lines import Needs, Writer, filled
from yota.codegen.c.nest import Sink
from yota.codegen.c.pull import Pull
from yota.codegen.c.regions import Region, Root, regions
from yota.codegen.c.types import c_type
from yota.codegen.cuda.access import Access, Place, access_of
from yota.codegen.cuda.loops import Loops, Total, shifted
from yota.codegen.cuda.shape import Shape, shape_of
from yota.codegen.cuda.spelling import CudaWriter
from yota.codegen.names import Names
from yota.ir.tape import Op, Tape

__all__ = ["CudaBody", "Text"]

_LIMIT = 2_000_000
_NARROW = 2**31 - 2**29
"""Offsets below this are counted in 32 bits, with room for one more round of all threads."""
_TOTALS = {"sum": "Sum", "prod": "Product", "max": "Largest", "min": "Smallest"}


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel's statements, its shape (None for straight code), and the totals that its blocks leave in parts."""

    lines: list[str]
    reads: set[int]
    shape: Shape | None
    totals: tuple[Total, ...]
    index: str


class _Pull(Pull):
    """Elements of arrays whose strides in memory are known."""

    def __init__(
        self,
        tape: Tape,
        definitions: dict[int, Op],
        leaves: frozenset[int],
        bounds: Bounds,
        strides: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__(tape, definitions, leaves, bounds, _LIMIT)
        self._strides = strides

    def place(self, variable: int, point: Point) -> Linear:
        """Where in memory an element lies, from the first one."""
        if variable not in self._strides:
            return super().place(variable, point)
        total = Linear(0)
        for each, step in zip(point, self._strides[variable], strict=True):
            total = total + each.scaled(step)
        return total


class CudaBody(BodyWriter):
    """Writes one kernel.

    Parameters
    ----------
    pointers
        Variables without axes that kernels find in memory, rather than as an argument's value.
    strides
        Strides of arrays that are not in C order, in elements.
    threads
        Threads of a block.
    """

    def __init__(
        self,
        tape: Tape,
        definitions: dict[int, Op],
        leaves: frozenset[int],
        group: Group,
        arrays: Mapping[int, str],
        results: Mapping[int, str],
        names: Names,
        needs: Needs,
        *,
        pointers: frozenset[int],
        strides: Mapping[int, Sequence[int]],
        threads: int,
    ) -> None:
        super().__init__(tape, definitions, leaves, group, arrays, results, names, needs)
        self.pointers, self.strides, self.threads = pointers, strides, threads
        self._reduced: frozenset[int] = frozenset()
        self._wide = False
        self._axes_left: Sequence[int] = ()
        self.extents: Mapping[int, int] = {}
        self.reach = Access(threads)
        self.packs: dict[Place, str] = {}
        self.held: dict[int, str] = {}

    def text(self) -> Text:
        """The kernel's text."""
        group = self.group
        cuts: tuple[set[int], ...] = tuple(set() for _ in group.extents)
        for root in group.roots:
            for own, places, extent in zip(cuts, root.cuts, root.extents, strict=True):
                own.update({*places, extent})
        boxes = regions(group.extents, cuts)
        pulled = [(box, *self._pulled(box)) for box in boxes]
        if not group.extents:
            ((_, pull, sinks),) = pulled
            lines = self._straight(pull, sinks)
            return Text(lines, self.reads, None, (), "int")
        axes = self._axes([sinks for _, _, sinks in pulled], [pull for _, pull, _ in pulled], len(boxes) > 1)
        self._axes_left = axes
        extents = self.extents = self._extents(axes)
        shape = shape_of(group, axes, extents, self.threads)
        if shape.flat and len(axes) == 1 and len(boxes) == 1:
            self.reach = self._access(pulled[0][1], pulled[0][2], axes[0], shape)
            self.threads = self.reach.threads
            shape = shape_of(group, axes, extents, self.threads, self.reach.width)
        self._reduced = frozenset(shape.reduced)
        self._wide = self._is_wide(pulled)
        totals: dict[tuple[int, Linear], Total] = {}
        self._name_places()
        inner, hoisted = self._points(pulled, shape, totals)
        found = tuple(totals.values())
        lines = Loops(self, shape, hoisted, inner, found).lines()
        return Text(lines, self.reads, shape, found, self.index)

    @property
    def index(self) -> str:
        """The type of counters."""
        return "int64_t" if self._wide else "int"

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
        return access_of([*read, *written], self.tape.types, axis, points, self.threads, len(pull.values))

    def _name_places(self) -> None:
        """Names for what is reached by way of registers or of shared memory."""
        for variable, place in sorted(self.reach.packed, key=lambda each: (each[0], each[1].constant)):
            self.packs[variable, place] = self.names.fresh(f"{self.array_name(variable)}_pack")
        for variable in self.reach.rows:
            self.held[variable] = self.names.fresh(f"{self.array_name(variable)}_rows")

    def array_name(self, variable: int) -> str:
        """The name of an array that is read or written."""
        return self.results[variable] if variable in self.results else self.arrays[variable]

    # -- what BodyWriter asks for ------------------------------------------------------------------------

    def _pull(self, bounds: Bounds) -> Pull:
        return _Pull(self.tape, self.definitions, self.leaves, bounds, self.strides)

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

    def _written_by(self) -> type[Writer]:
        return CudaWriter

    def _depth(self, offset: Linear, axes: Sequence[int]) -> int:
        """0 for what every point shares, 1 for what the points of one total share, else 2."""
        if any(axis in self._reduced for axis, _ in offset.terms):
            return 2
        return 1 if offset.terms else 0

    def _reader(self, axes: Sequence[int]) -> Callable[[int, Linear, Mapping[int, str]], str]:
        def read(variable: int, offset: Linear, numbers: Mapping[int, str]) -> str:
            self.reads.add(variable)
            return self._near(variable, offset) or self._element(variable, self._text(offset, axes, numbers))

        return read

    def target(self, sink: Sink, axes: Sequence[int], numbers: Mapping[int, str] | None = None) -> str:
        """Where a result goes."""
        near = None if sink.merge else self._near(sink.root.variable, sink.offset)
        return near or super().target(sink, axes, numbers)

    def _near(self, variable: int, offset: Linear) -> str | None:
        """An element in a register or in shared memory, if that is where the kernel has it."""
        if (variable, offset) in self.packs:
            return f"{self.packs[variable, offset]}[step]"
        if variable in self.held:
            pitch = self.reach.rows[variable].pitch
            return f"{self.held[variable]}[{shifted(f'{pitch} * place', offset.constant)}]" if offset.terms else None
        return None

    def _element(self, variable: int, place: str) -> str:
        pointed = self.tape.types[variable].shape or variable in self.pointers
        return f"{self.arrays[variable]}[{place}]" if pointed else self.arrays[variable]

    # -- what finishing needs ----------------------------------------------------------------------------

    def counter_of(self, axes: Sequence[int]) -> str:
        """The counter over all points along ``axes``."""
        return self.counters[axes[0]] if len(axes) == 1 else "point"

    def decomposed(self, axes: Sequence[int], counter: str) -> list[str]:
        """Counters of single axes out of one over all of them; nothing where that is the only one."""
        lines = []
        step = math.prod(self.extents[axis] for axis in axes)
        for position, axis in enumerate(axes if len(axes) > 1 else ()):
            step //= self.extents[axis]
            text = counter if step == 1 else f"{counter} / {step}"
            if position:
                text = f"{text} % {self.extents[axis]}"
            lines.append(f"const {self.index} {self.counters[axis]} = {text};")
        return lines

    def stored(self, total: Total) -> str:
        """Where a total over some of the loops goes."""
        return self.target(total.sink, self._axes_left)

    # -- points ------------------------------------------------------------------------------------------

    def _points(
        self,
        pulled: list[tuple[Region, Pull, list[Sink]]],
        shape: Shape,
        totals: dict[tuple[int, Linear], Total],
    ) -> tuple[list[str], list[list[str]]]:
        """Statements for one point, and those that stand ahead of the inner and of the outer loop."""
        several = len(pulled) > 1
        inner: list[str] = []
        hoisted: list[list[str]] = [[], []]
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
                inner += [f"if ({self._inside(box)}) {{", *(f"    {line}" for line in lines), "}"]
        return inner, hoisted

    def _inside(self, box: Region) -> str:
        """Whether the point lies in a region."""
        tests = []
        for counter, (start, stop), extent in zip(self.counters, box, self.group.extents, strict=True):
            if stop == start + 1:
                tests.append(f"{counter} == {start}")
                continue
            if start:
                tests.append(f"{start} <= {counter}")
            if stop < extent:
                tests.append(f"{counter} < {stop}")
        return " && ".join(tests)

    def _sunk(self, sinks: list[Sink], writer: Writer, totals: dict[tuple[int, Linear], Total]) -> list[str]:
        """What becomes of the values of one point."""
        before: list[str] = []
        found: list[str] = []
        for sink in sinks:
            text = writer.text(sink.value, before)
            if sink.merge:
                found += filled(f"{self._total(sink, totals).name}.add({text});")
            else:
                found += filled(f"{self.target(sink, self._axes_left)} = {text};")
        return [*before, *found]

    def _total(self, sink: Sink, totals: dict[tuple[int, Linear], Total]) -> Total:
        key = sink.root.variable, sink.offset
        if key not in totals:
            base = self.results[sink.root.variable]
            name = self.names.fresh(f"{base}_{'sum' if sink.merge == 'sum' else 'so_far'}")
            kind = f"{_TOTALS[sink.merge]}<{c_type(sink.dtype)}>"
            totals[key] = Total(name, kind, sink, all(sink.root.reduced))
        return totals[key]

    def is_private(self, root: Root, several: bool, axes: Sequence[int]) -> bool:
        """No thread writes into another's result."""
        return False
