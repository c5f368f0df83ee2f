"""Arrays that the trips of a loop read and write at affine positions, as rows that go in and come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from yota.errors import TracingError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, Index, Slice
from yota.ir.inputs import Input
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.tracing.indices import affine


class Place(NamedTuple):
    """An element or row of an array, at the position ``scale * trip + shift`` of its first axis.

    tail: the index of the other axes.
    """

    scale: int
    shift: int
    tail: Index

    def positions(self, trips: int) -> range:
        """The positions in all trips; empty if they are the same."""
        return range(self.shift, self.shift + self.scale * trips, self.scale) if self.scale else range(0)

    def fits(self, trips: int, type: TensorType) -> bool:
        """Whether the positions differ, and are in an array of this type."""
        found = self.positions(trips)
        return bool(found) and 0 <= min(found) <= max(found) < type.shape[0]


def place_of(builder: TapeBuilder, op: Op) -> Place | None:
    """The place that an op reads or writes; None if that is no element or row which moves with the trip."""
    index = op.keyword("index", ())
    if op.access not in (AccessMap.READ, AccessMap.WRITE) or not index or index[0] is not GATHER:
        return None
    if any(not isinstance(entry, (int, Slice)) for entry in index[1:]):
        return None
    found = affine(builder, op.operands[-1])
    return None if found is None else Place(*found, index[1:])


def rows_read(tape: Tape, sources: Mapping[int, Any], trips: int) -> Iterator[tuple[Op, Place]]:
    """The ops that read a row of a source, another one in each trip."""
    builder = tape.builder()
    for op in tape.ops:
        if op.access == AccessMap.READ and op.operands[0] in sources:
            place = place_of(builder, op)
            if place is not None and place.fits(trips, tape.types[op.operands[0]]):
                yield op, place


@dataclass(frozen=True, slots=True)
class Stacked:
    """A body of which an array is no longer carried.

    tape: takes the carried values and then those that were written in earlier trips, and, last of all, the array as it
        was before the loop. It gives all these values, and what a trip writes, after its other outputs.
    first: the places of what was written in earlier trips, in the array before the loop.
    written: the places that are written.
    """

    tape: Tape
    first: Sequence[Place]
    written: Sequence[Place]


def stacked(tape: Tape, number: int, carries: int, trips: int) -> Stacked:
    """``tape`` without the carried array ``number``, of which trips write elements or rows that move with the trip.

    Raises TracingError if trips do something else with the array.
    """
    return _Stacking(_by_rows(tape, number), number, carries, trips).run()


def _by_rows(tape: Tape, number: int) -> Tape:
    """``tape`` with whole rows of a carried array read and written, where parts of rows overlap."""
    chain, builder = {tape.inputs[1 + number].variable}, tape.builder()
    uses = list[Op]()
    for op in tape.ops:
        if op.operands and op.operands[0] in chain and place_of(builder, op) is not None:
            uses.append(op)
            if op.access == AccessMap.WRITE:
                chain.add(op.result)
    tails = {op.keyword("index")[1:] for op in uses}
    if all(one == other or _apart(one, other) for one in tails for other in tails):
        return tape
    changed = {op.result for op in uses}
    builder.ops = ops = list[Op]()
    for op in tape.ops:
        if op.result not in changed:
            ops.append(op)
            continue
        builder.location = op.location
        array, position, tail = op.operands[0], op.operands[-1], op.keyword("index")[1:]
        shape = tape.types[array].shape[1:]
        whole = {"index": (GATHER, *(Slice(0, extent) for extent in shape))}
        row = builder.emit(primitive("getitem"), (array, position), whole, TensorType(tape.types[array].dtype, shape))
        if op.access == AccessMap.READ:
            ops.append(replace(op, operands=(row,), static=(("index", tail),)))
        else:
            row = builder.emit(primitive("setitem"), (row, op.operands[1]), {"index": tail}, builder.types[row])
            ops.append(replace(op, operands=(array, row, position), static=tuple(whole.items())))
    return replace(tape, ops=tuple(ops), types=builder.types)


class _Stacking:
    def __init__(self, tape: Tape, number: int, carries: int, trips: int) -> None:
        self.tape, self.number, self.carries, self.trips = tape, number, carries, trips
        self.array = tape.inputs[1 + number].variable
        self.builder = tape.builder()
        self.writes: dict[Place, int] = {}
        """The ops that write, by their places."""
        self.values: dict[Place, int] = {}
        """What the trip has written so far."""
        self.earlier: dict[Place, list[int]] = {}
        """Of each place that is written, inputs that hold what was written there one trip before, two trips, ...."""
        self.known: dict[int, int] = {}
        """What reads of the array become."""

    def run(self) -> Stacked:
        tape, chain, kept = self.tape, {self.array}, list[Op]()
        last = self.array
        for op in tape.ops:
            if op.access == AccessMap.WRITE and op.operands[0] == last:
                self._write(op)
                chain.add(last := op.result)
        last = self.array
        for op in tape.ops:
            op = replace(op, operands=tuple([self.known.get(each, each) for each in op.operands]))
            if chain.isdisjoint(op.operands):
                kept.append(op)
            elif op.access == AccessMap.READ and op.operands[0] == last and op.operands[-1] not in chain:
                self._read(op, kept)
            elif op.access == AccessMap.WRITE and op.operands[0] == last and chain.isdisjoint(op.operands[1:]):
                self._keep(op, kept)
                last = op.result
            else:
                raise TracingError("a trip uses the whole of an array that it writes")
        outputs = [self.known.get(each, each) for each in tape.outputs]
        if outputs.pop(self.number) != last or not chain.isdisjoint(outputs):
            raise TracingError("a trip keeps the whole of an array that it writes")
        return self._made(kept, outputs)

    def _write(self, op: Op) -> None:
        place = place_of(self.builder, op)
        if place is None or not place.fits(self.trips, self.tape.types[self.array]):
            raise TracingError("a trip writes where it cannot be told from other trips")
        for other in self.writes:
            if other.tail != place.tail and not _apart(other.tail, place.tail):
                raise TracingError("a trip writes an element in two ways")
            if other.tail == place.tail and other != place and not _never_meet(other, place):
                raise TracingError("two trips write one element")
        self.writes[place] = op.result

    def _keep(self, op: Op, kept: list[Op]) -> None:
        place, value = place_of(self.builder, op), op.operands[1]
        assert place is not None
        type, given = self.tape.types[self.array], self.builder.types[value]
        row = TensorType(type.dtype, tuple(_extents(place.tail, type.shape[1:])))
        if given != row:
            if given.shape != row.shape or given.dtype.kind not in "biuf" or row.dtype.kind not in "fc":
                raise TracingError("a trip writes a value of another type than that of the array")
            value = self.builder.emit(primitive("astype"), (value,), {"dtype": row.dtype}, row)
            kept.append(self.builder.ops[-1])
        self.values[place] = value

    def _read(self, op: Op, kept: list[Op]) -> None:
        place = place_of(self.builder, op)
        if place is None:
            raise TracingError("a trip reads an array that it writes at a position that is not known")
        for written in self.writes:
            if written.tail != place.tail:
                if not _apart(written.tail, place.tail):
                    raise TracingError("a trip reads of an array more than it writes")
                continue
            if written == place and place in self.values:
                self.known[op.result] = self.values[place]
                return
            if written.scale != place.scale:
                raise TracingError("a trip reads an array that it writes at a position that other trips write")
            trips, rest = divmod(written.shift - place.shift, written.scale)
            if not rest and trips > 0:
                self.known[op.result] = self._earlier(written, trips, op)
                return
        # No trip before has written this.
        kept.append(replace(op, operands=(self.array, *op.operands[1:])))

    def _earlier(self, place: Place, trips: int, op: Op) -> int:
        """The input that holds what was written so many trips before."""
        known = self.earlier.setdefault(place, [])
        while len(known) < trips:
            before = Place(place.scale, place.shift - place.scale * (len(known) + 1), place.tail)
            if before.shift < 0 or before.shift >= self.tape.types[self.array].shape[0]:
                raise TracingError("a trip reads what lies before the array")
            known.append(self.builder.input(self.tape.types[op.result], 0, f"before{len(known)}"))
        return known[trips - 1]

    def _made(self, kept: list[Op], outputs: list[int]) -> Stacked:
        tape, carries = self.tape, self.carries
        inputs = [each.variable for each in tape.inputs]
        inputs.remove(self.array)
        held, after, first = list[int](), list[int](), list[Place]()
        for place, inner in self.earlier.items():
            held += inner
            after += [self.values[place], *inner[:-1]]
            first += [place._replace(shift=place.shift - place.scale * (1 + number)) for number in range(len(inner))]
        inputs[carries:carries] = held
        outputs[carries - 1 : carries - 1] = after
        order = [*inputs, self.array]
        body = replace(
            tape,
            inputs=tuple([Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)]),
            ops=tuple(kept),
            types=self.builder.types,
            outputs=(*outputs, *self.values.values()),
        )
        return Stacked(body, first, [*self.values])


def _extents(tail: Index, shape: Sequence[int]) -> Iterator[int]:
    for entry, extent in zip(tail, shape, strict=True):
        if isinstance(entry, Slice):
            yield len(range(extent)[entry.start : entry.stop : entry.step])


def _apart(one: Index, other: Index) -> bool:
    """Whether two indices of the same axes have no element in common."""
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(one, other, strict=True))


def _never_meet(one: Place, other: Place) -> bool:
    return one.scale == other.scale and (one.shift - other.shift) % one.scale != 0
