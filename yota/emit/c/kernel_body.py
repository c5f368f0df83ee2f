"""Writes one kernel: a loop nest over each region, with straight-line code at each depth; and checks its accesses."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from yota.emit.c.c_plan import Partial
from yota.emit.c.dialect import cost
from yota.emit.c.frame import Frame, Sink
from yota.emit.c.lines import Writer
from yota.emit.c.nest import Nest
from yota.emit.tree import Assign, Define, Fill, Statement
from yota.errors import ScheduleError
from yota.ir.extents import Extent, require
from yota.ir.tape import Op, Tape
from yota.ir.verify import is_on
from yota.schedule.nests.groups import Group
from yota.schedule.nests.linear_index import Bounds, Linear, flat, merged, spread
from yota.schedule.nests.pull import Pull
from yota.schedule.nests.tiling import Region, Root, regions

Pulled = tuple[Region, Pull, list[Sink]]
"""A box of a loop nest, the values at its points, and where they go."""
_MOST = 1 << 22
"""Elements of a result up to which each is looked at; of longer ones, how many are written is compared."""


def check_kernel(
    body: BodyWriter, axes: Sequence[int], cleared: Callable[[Root], bool] | None, strided: Iterable[int] = ()
) -> None:
    """Refuse a kernel whose loops leave elements out, write one twice, or read what they write.

    A result whose elements are written once each has no element that two threads write.

    axes: the loops that are left when some were merged into the next one.
    cleared: whether a root's result, or each thread's part of it, is cleared and then added to. None where totals are
        merged in other ways, which are not looked at.
    strided: variables that do not lie in C order.
    Raises ScheduleError if it is one.
    """
    tape, pulled = body.tape, body.pulled
    _check_reads(tape, body.group, pulled, frozenset(strided))
    for root in body.group.roots:
        sinks = [(box, sink, pull) for box, pull, each in pulled for sink in each if sink.root is root]
        for box, sink, pull in sinks:
            _check_inside(tape, "writes", root.variable, sink.offset, {**pull.bounds, **dict(enumerate(box))})
        merged = any(sink.merge for _, sink, _ in sinks)
        if merged and (cleared is None or cleared(root)):
            continue
        _check_once(tape, root, [(box, sink, _outer(sink, axes)) for box, sink, _ in sinks])


def _check_reads(tape: Tape, group: Group, pulled: Sequence[Pulled], strided: frozenset[int]) -> None:
    results = {root.variable for root in group.roots}
    for box, pull, _ in pulled:
        for value in pull.values.items:
            if value.kind != "load" or value.offset is None:
                continue
            if value.data in results:
                raise ScheduleError(f"a kernel reads %{value.data}, which it computes itself")
            if value.data not in strided:
                _check_inside(tape, "reads", value.data, value.offset, {**pull.bounds, **dict(enumerate(box))})


def _check_inside(tape: Tape, what: str, variable: int, offset: Linear, bounds: Bounds) -> None:
    low, high = offset.reach(bounds)
    if low < 0 or high >= tape.types[variable].size:
        raise ScheduleError(f"a kernel {what} %{variable}, {tape.types[variable]}, from {low} to {high}")


def _check_once(tape: Tape, root: Root, sinks: Sequence[tuple[Region, Sink, int]]) -> None:
    """Each element is stored by one point, or by one total."""
    if root.places is not None:  # the others are cleared
        return
    size = int(tape.types[root.variable].size)
    counts = np.zeros(size if size <= _MOST else 0, np.int64)
    stored = 0
    for box, sink, outer in sinks:
        places = _places(sink.offset, box[:outer], counted=size <= _MOST)
        stored += places if isinstance(places, int) else places.size
        if not isinstance(places, int):
            counts += np.bincount(places.reshape(-1), minlength=size)
    wrong = np.flatnonzero(counts != 1)
    if stored != size or wrong.size:
        where = f"; element {wrong[0]} is stored {counts[wrong[0]]} times" if wrong.size else ""
        raise ScheduleError(f"a kernel stores {stored} elements of %{root.variable}, which has {size}{where}")


def _outer(sink: Sink, axes: Sequence[int]) -> int:
    """How many of the loops, merged ones among them, stand around the statement that stores."""
    if not sink.merge:
        return len(sink.root.loops)
    return axes[sink.depth - 1] + 1 if sink.depth else 0


def _places(offset: Linear, box: Region, *, counted: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | int:
    """Where the rounds of the loops of a box store; only how many there are, if they are not to be ``counted``."""
    if not counted:
        return int(np.prod([stop - start for start, stop in box], dtype=np.int64))
    found = np.full([stop - start for start, stop in box], offset.constant, np.int64)
    for axis, (start, stop) in enumerate(box):
        # A counter that stands still is a number in the offset already.
        steps = offset.coefficient(axis) * np.arange(start, stop)
        found += steps.reshape([-1 if each == axis else 1 for each in range(len(box))])
    return found


_WORTH = 2
"""Additions of a point for each element that it reads or writes, from which reads of single elements are worth it."""
LIMIT = 2_000_000
"""Values of one kernel."""


class BodyWriter(Frame):
    """Writes the body of one kernel.

    reads, places: what it reads, and index arrays among that with extents of the axes that they have places on.
    outer, work: where the outermost loop ends, 0 without loops, and about how many operations there are.
    """

    statements: list[Statement]
    partials: list[Partial]

    def run(self) -> None:
        """Write all regions."""
        self._pull_all()
        if self.group.extents:
            self.partials, self.statements = self.parts()
            self.rows = self._rows()
            size = self.needs.language.size()
            self.statements += [Define(size, name, f"row_of({length})") for (_, length), name in self.rows.items()]
            self.statements += [line for box, pull, sinks in self.pulled for line in self._nest(box, pull, sinks)]
            self.outer = math.prod(self.group.extents[: self.axes[0] + 1])
        else:
            self.statements = self._straight()
        if is_on():
            check_kernel(self, self.axes, self._is_cleared)

    def _pull_all(self) -> None:
        """Find the values at the points of each box, and the loops that are left."""
        self.reads: set[int] = set()
        self.partials = []
        self.outer = self.work = 0
        self.pulled: list[Pulled] = [(box, *self._pulled(box)) for box in self._boxes()]
        self.several = len(self.pulled) > 1
        self.places = {array: size for _, pull, _ in self.pulled for array, size in pull.places.items()}
        axes = list(range(len(self.group.extents)))
        if not self.several and len(axes) > 1:
            # Those are merged that every access walks in step.
            forms = [each.offset for _, pull, _ in self.pulled for each in pull.values.items if each.offset is not None]
            forms += [sink.offset for _, _, sinks in self.pulled for sink in sinks]
            found = merged(forms, axes, dict(enumerate(self.group.extents)))
            axes = [axis for axis in axes if axis not in found]
        self.axes = axes

    def _rows(self) -> dict[tuple[int, int], str]:
        """Names of the lengths of rows that the innermost loop walks along, if GCC uses no vectors for such rows.

        Of a length that it does not know, it reads single elements, which the work of a point must pay for.
        """
        axis, lengths = self.axes[-1], set[int]()
        for _, pull, sinks in self.pulled if self.needs.language["rows"] else ():
            loads = [each for each in pull.values.items if each.kind == "load"]
            places = {(each.data, each.offset) for each in loads if each.offset is not None}
            places.update((sink.root.variable, sink.offset) for sink in sinks)
            work = sum(cost(each.data, each.dtype) for each in pull.values.items if each.kind == "apply")
            steps = Counter((variable, offset.coefficient(axis)) for variable, offset in places)
            if work >= _WORTH * len(places):
                lengths.update(step for (_, step), count in steps.items() if count > 1 and not isinstance(step, Extent))
        odd = sorted(each for each in lengths if each > 4 and each & (each - 1))
        if odd:
            self.needs.parts.add(("row_of", "int64"))
        return {(axis, each): self.names.fresh("row") for each in odd}

    def _is_cleared(self, root: Root) -> bool:
        return root.scattered or self.is_private(root)

    def _boxes(self) -> list[Region]:
        """The boxes in which all roots are computed in one way each."""
        cuts: tuple[set[int], ...] = tuple(set() for _ in self.group.extents)
        for root in self.group.roots:
            for own, places, extent in zip(cuts, root.cuts, root.extents, strict=True):
                own.update({*places, extent})
        return regions(self.group.extents, cuts)

    def _pulled(self, box: Region) -> tuple[Pull, list[Sink]]:
        pull = Pull(self.tape, self.plan.definitions, self.plan.leaves, dict(enumerate(box)), LIMIT, self.strides)
        sinks = []
        for root in self.group.roots:
            if all(stop <= extent for (_, stop), extent in zip(box, root.extents, strict=True)):
                sinks += self._sinks(pull, root, box)
        return pull, sinks

    def _sinks(self, pull: Pull, root: Root, box: Region) -> list[Sink]:
        op, type = root.reduction, self.tape.types[root.variable]
        pull.leaves = self.plan.leaves - {root.variable}
        if op is None:
            points = [root.point(lane, box) for lane in root.lanes]
            made = [pull.values.cast(pull.at(root.variable, point), type.dtype) for point in points]
            return [
                Sink(root, value, flat(point, type.shape), type.dtype)
                for value, point in zip(made, points, strict=True)
            ]
        if root.scattered:
            return self._scattered(pull, root, box, op)
        found: dict[Linear, list[int]] = {}
        over = op.keyword("axis")
        merge = op.name if any(root.reduced) else ""
        for lane in root.lanes:
            point = root.point(lane, box)
            kept = tuple(each for axis, each in enumerate(point) if axis not in over)
            shape = tuple(extent for axis, extent in enumerate(root.shape) if axis not in over)
            value = pull.values.cast(pull.at(op.operands[0], point), type.dtype)
            found.setdefault(flat(kept, shape), []).append(value)
        return [
            Sink(root, pull.fold(op.semantics.fold, each, type.dtype), offset, type.dtype, merge)
            for offset, each in found.items()
        ]

    def _scattered(self, pull: Pull, root: Root, box: Region, op: Op) -> list[Sink]:
        """Values that are added where index arrays say."""
        piece, *arrays = op.operands
        (index,) = op.keyword("indices")
        type = self.tape.types[root.variable]
        found = []
        for lane in root.lanes:
            point = root.point(lane, box)
            value = pull.values.cast(pull.at(piece, spread(point, self.tape.types[piece].shape)), type.dtype)
            offset = flat(pull.gathered(point, index, arrays, type.shape), type.shape)
            found.append(Sink(root, value, offset, type.dtype, "sum"))
        return found

    def _depth(self, offset: Linear) -> int:
        return max((self.axes.index(axis) + 1 for axis, _ in offset.terms if axis in self.axes), default=0)

    def _read(self, variable: int | None, offset: Linear, numbers: Mapping[int, str]) -> str:
        if variable is None:
            return self._text(offset, numbers)
        self.reads.add(variable)
        return self._element(variable, offset, self._text(offset, numbers))

    def _element(self, variable: int, offset: Linear, place: str) -> str:
        name = self.arrays[variable]
        return self.needs.language.element(name, place) if self.tape.types[variable].shape else name

    def _writer(self, pull: Pull, sinks: list[Sink]) -> Writer:
        values = pull.values
        wanted = [sink.value for sink in sinks]
        writer = Writer(values, wanted, self._depth, self._read, self.names, self.needs)
        each = sum(
            cost(value.data, value.dtype) if value.kind == "apply" else 1
            for number, value in enumerate(values.items)
            if number in writer.uses
        )
        self.work += each * max(
            1, int(math.prod(stop - start for axis, (start, stop) in pull.bounds.items() if axis >= 0))
        )
        return writer

    def _straight(self) -> list[Statement]:
        ((_, pull, sinks),) = self.pulled
        self._keep_apart(sinks)
        writer = self._writer(pull, sinks)
        lines = writer.lines(0)
        sparse = self._cleared_results(pull, sinks)
        stores: list[Statement] = []
        for sink in sinks:
            target = self.target(sink, writer.read_again(sink.offset))
            if sink.root.variable in sparse and pull.values.is_literal(sink.value, 0):
                continue
            assign = "+=" if sink.root.scattered else "="
            stores.append(Assign(target, self._told(sink, writer.text(sink.value, lines)), assign))
        return [*lines, *sparse.values(), *stores]

    def _keep_apart(self, sinks: Sequence[Sink]) -> None:
        """Demand sizes at which no two values go to one place."""
        for root in self.group.roots:
            places = sorted((sink.offset.constant for sink in sinks if sink.root is root), key=int)
            for one, other in itertools.pairwise(places):
                require(other - one - 1)

    def _told(self, sink: Sink, text: str) -> str:
        """The text of what is stored; another dialect of C may have to say that it is nothing."""
        return text

    def _cleared_results(self, pull: Pull, sinks: list[Sink]) -> dict[int, Fill]:
        """Long results that are mostly zeros are cleared first."""
        found = {}
        for root in self.group.roots:
            own = [sink for sink in sinks if sink.root is root]
            zeros = sum(pull.values.is_literal(sink.value, 0) for sink in own)
            if zeros > 8 or root.scattered or root.places is not None:
                size = max(1, self.tape.types[root.variable].size, key=int)
                found[root.variable] = Fill(self.results[root.variable], size, self.neutral("sum"), True)
        return found

    def _nest(self, box: Region, pull: Pull, sinks: list[Sink]) -> list[Statement]:
        axes = self.axes
        for sink in sinks:
            if sink.root.scattered:
                sink.depth = len(axes)
            elif sink.merge:
                inner = sink.root.reduced[axes[-1]]
                kept = [axes.index(axis) + 1 for axis, _ in sink.offset.terms if axis in axes]
                sink.depth = max(kept, default=0) if inner else len(axes)
        return Nest(self, box, sinks, self._writer(pull, sinks)).lines()
