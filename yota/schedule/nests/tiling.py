"""How one array is computed: which axes become loops, which are written out, and where the loops are cut."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from yota.ir.extents import Extent, require, tentative
from yota.ir.indexing import pattern_shape
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.schedule.nests.linear_index import CutError, Linear, Point, UnreachableError, spread
from yota.schedule.nests.pull import Pull
from yota.schedule.nests.stencils import source_of_parts

LONGEST_UNROLLED = 16
"""Extent up to which an axis may be written out."""
_MOST_LANES = 64
_MOST_PUT_TOGETHER = 1024
"""Lanes up to which an axis may be written out that is put together from many pieces."""
_PIECE = 4
"""Places that a loop is not worth."""
_MOST_SCALARS = 16_384
_MOST_REGIONS = 27
_MOST_VALUES = 20_000
_MOST_IN_SCALARS = 1_000_000


@dataclass(slots=True)
class Root:
    """An array to be computed.

    reduction: the op that reduces over loops, if any; ``shape`` is then its operand's shape.
    loops: axes of ``shape`` that are loops, in order.
    cuts: for each loop, where it must be cut.
    visited: variables that its computation goes through.
    places: where alone there is something else than zero, in an array of any size; None if that is not known.
    """

    variable: int
    shape: tuple[int, ...]
    reduction: Op | None
    loops: tuple[int, ...] = ()
    cuts: tuple[set[int], ...] = ()
    visited: dict[int, int] = field(default_factory=dict)
    values: int = 0
    places: tuple[tuple[int, ...], ...] | None = None

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the loops."""
        return tuple(self.shape[axis] for axis in self.loops)

    @property
    def scattered(self) -> bool:
        """Whether its elements are sums of what falls on them."""
        return self.reduction is not None and self.reduction.access == AccessMap.SCATTER

    @property
    def merge(self) -> str:
        """How the values of several points become one."""
        return "sum" if self.scattered else self.reduction.name if self.reduction else ""

    @property
    def reduced(self) -> list[bool]:
        """For each loop, whether the result is a reduction over it."""
        if self.scattered:
            return [True] * len(self.loops)
        over = self.reduction.keyword("axis") if self.reduction else ()
        return [axis in over for axis in self.loops]

    @property
    def lanes(self) -> Iterator[tuple[int, ...]]:
        """Positions along the axes that are written out."""
        if self.places is not None:
            return iter(self.places)
        return itertools.product(*(range(extent) for axis, extent in enumerate(self.shape) if axis not in self.loops))

    def point(self, lane: tuple[int, ...], region: Region) -> Point:
        """The element of ``shape`` at the loop counters and this lane."""
        fixed = iter(lane)
        found = []
        for axis in range(len(self.shape)):
            if axis in self.loops:
                number = self.loops.index(axis)
                start, stop = region[number]
                found.append(Linear(start) if stop == start + 1 else Linear(0, ((number, 1),)))
            else:
                found.append(Linear(next(fixed)))
        return tuple(found)


Region = tuple[tuple[int, int], ...]
"""For each loop, from where to where it runs."""


def regions(extents: tuple[int, ...], cuts: tuple[set[int], ...]) -> list[Region]:
    """The boxes that ``cuts`` cut a loop nest into."""
    intervals = []
    for extent, places in zip(extents, cuts, strict=True):
        inside = sorted((place for place in places if 0 < int(place) < int(extent)), key=int)
        intervals.append(list(itertools.pairwise([0, *inside, extent])))
        for start, stop in intervals[-1]:
            require(stop - start)
    return list(itertools.product(*intervals))


@tentative()
def studied(tape: Tape, definitions: dict[int, Op], variable: int, leaves: frozenset[int]) -> Root:
    """How ``variable`` is computed from ``leaves``; raises UnreachableError if generated C cannot."""
    op = definitions[variable]
    adds = op.access == AccessMap.SCATTER and len(op.operands) > len(op.keyword("indices"))
    reduction = op if (op.access == AccessMap.REDUCTION or adds) and variable not in leaves else None
    shape = tape.types[op.operands[0]].shape if reduction else tape.types[variable].shape
    if adds:
        (index,) = op.keyword("indices")
        arrays = [tape.types[each].shape for each in op.operands[1:]]
        shape = pattern_shape(index, arrays)
    size = math.prod(shape)
    if size == 0:
        raise UnreachableError
    loops = tuple(axis for axis, extent in enumerate(shape) if int(extent) > 1)
    small = int(size) <= LONGEST_UNROLLED and int(tape.types[variable].size) <= LONGEST_UNROLLED
    known = not adds or all(each in tape.constants for each in op.operands[1:])
    if (small and known) or _is_assembled(op, size):
        loops, reduction = (), None
        shape = tape.types[variable].shape
    root = Root(variable, shape, reduction, loops, tuple(set() for _ in loops))
    if not loops and isinstance(size, Extent):
        root.places = tuple(dict.fromkeys(op.keyword("indices")))
    mixed = False
    done: dict[Region, Pull] = {}
    limit = _MOST_VALUES if loops else _MOST_IN_SCALARS
    for _ in range(4 * _MOST_LANES):
        try:
            folded = _attempt(tape, definitions, root, leaves, limit, done)
        except CutError as cut:
            if not _apply(root, cut):
                raise UnreachableError from None
            continue
        except UnreachableError as error:
            if error.variable is None:
                error.variable = source_of_parts(tape, definitions, root.visited, variable)
            raise
        if not mixed and _mixes(root, folded):
            mixed = True
            _unroll(root, len(root.loops) - 1)
            continue
        return root
    raise UnreachableError


def _is_assembled(op: Op, size: int) -> bool:
    """Whether every element of the result is put in place by itself."""
    if not isinstance(size, Extent) and size > _MOST_SCALARS:
        return False
    if op.access == AccessMap.SCATTER and len(op.operands) == len(op.keyword("indices")):
        return all(isinstance(entry, int) for index in op.keyword("indices") for entry in index)
    return op.access == AccessMap.STACK and size == len(op.operands)


def _attempt(
    tape: Tape, definitions: dict[int, Op], root: Root, leaves: frozenset[int], limit: int, known: dict[Region, Pull]
) -> set[int]:
    """Go through all regions; those that a cut has left as they were are ``known``."""
    found = regions(root.extents, root.cuts)
    if len(found) > _MOST_REGIONS:
        raise UnreachableError
    root.visited, root.values = {}, 0
    for region in found:
        pull = known.get(region) or Pull(tape, definitions, leaves, dict(enumerate(region)), limit)
        source = root.reduction.operands[0] if root.reduction else root.variable
        try:
            for lane in root.lanes if region not in known else ():
                pull.at(source, spread(root.point(lane, region), tape.types[source].shape))
        finally:
            for variable, count in pull.visited.items():
                root.visited[variable] = max(root.visited.get(variable, 0), count)
        known[region] = pull
        root.values += len(pull.values)
    return {extent for region in found for extent in known[region].folded}


def _mixes(root: Root, folded: set[int]) -> bool:
    """Whether the last axis is also summed over on the way, so that its elements share that work."""
    if not root.loops or root.loops[-1] != len(root.shape) - 1 or len(root.loops) < 2:
        return False
    extent = root.shape[-1]
    return extent in folded and int(extent) <= LONGEST_UNROLLED and int(math.prod(root.extents[:-1])) >= 2 * extent


def _apply(root: Root, cut: CutError) -> bool:
    """Write the cut's axis out if it is short, else note the cut; False if that does not help."""
    whole = root.extents[cut.axis]
    extent = int(whole)
    lanes = math.prod(int(extent) for axis, extent in enumerate(root.shape) if axis not in root.loops)
    if extent <= LONGEST_UNROLLED and lanes * extent <= _MOST_LANES:
        _unroll(root, cut.axis)
        return True
    if cut.place in root.cuts[cut.axis] or not 0 < int(cut.place) < extent:
        return False
    root.cuts[cut.axis].add(cut.place)
    if isinstance(whole, Extent):
        return True
    many = math.prod(len(each) + 1 for each in root.cuts) > _MOST_REGIONS
    lanes *= extent
    deep = lanes * len(root.visited) > _MOST_VALUES
    if (many or len(root.cuts[cut.axis]) * _PIECE > extent) and lanes <= _MOST_PUT_TOGETHER and not deep:
        _unroll(root, cut.axis)
    return True


def _unroll(root: Root, number: int) -> None:
    root.loops = root.loops[:number] + root.loops[number + 1 :]
    # Cuts along the other loops are found again.
    root.cuts = tuple(set() for _ in root.loops)
