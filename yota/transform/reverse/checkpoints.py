"""Checkpoints: the reverse of a long loop keeps few states, and computes the others again.

The reverse of a loop keeps what every trip begins with. A loop that is cut into ``m`` loops of ``k`` trips keeps
``m + k`` states, not ``m * k``: the reverse of the outer loop repeats one inner loop at a time. Each level costs one
more run of the loop. Levels of equal length cost little more than the binomial schedule, which is the optimum (Griewank
and Walther 2000, "Algorithm 799: revolve", ACM Transactions on Mathematical Software 26, section 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yota.ir.catalog import item_of, primitive
from yota.ir.indexing import Slice
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.transform.reverse.loop_adjoints import active_from

_DEEPEST = 6
"""Levels of loops, each of which is code of its own."""
_Items = Callable[[int], int]
"""Appends the result of a number to a tape, as the last op."""


def states(trips: int, levels: int) -> int:
    """How many states the reverse of ``trips`` trips keeps at once, in so many levels of loops.

    >>> states(10_000, 1), states(10_000, 2), states(10_000, 3)
    (10000, 200, 65)
    """
    outer, inner, rest = _cut(trips, levels)
    if inner == 1:
        return trips
    ahead = _begins(rest, levels - 1)
    return outer + ahead + max(states(inner, levels - 1), states(rest, levels - 1) - ahead)


def _begins(trips: int, levels: int) -> int:
    """How many states a loop keeps while it runs forward."""
    outer, inner, rest = _cut(trips, levels)
    return trips if inner == 1 else outer + _begins(rest, levels - 1)


def _cut(trips: int, levels: int) -> tuple[int, int, int]:
    """Loops, trips in each, and the few trips ahead of them."""
    if levels == 1 or trips < 4:
        return trips, 1, 0
    middle = round(trips ** (1 / levels))
    outer = min(range(middle, middle + middle // 8 + 2), key=lambda count: trips % count)
    return outer, trips // outer, trips % outer


def depth(trips: int, most: int) -> int:
    """The fewest levels that keep at most ``most`` states; those that keep the fewest if none does.

    >>> depth(10_000, 20_000), depth(10_000, 500), depth(10_000, 100)
    (1, 2, 3)
    """
    found = [(states(trips, levels), levels) for levels in range(1, _DEEPEST + 1)]
    return next((levels for kept, levels in found if kept <= most), min(found)[1])


def checkpointed(tape: Tape, wrt: Iterable[int], memory: int) -> Tape:
    """``tape`` with loops of loops where the reverse of a loop would keep more than ``memory`` bytes."""
    if not any(op.regions for op in tape.ops):
        return tape
    active = active_from(tape, wrt)
    builder = tape.builder()
    ops: list[Op] = []
    places = [0]
    items: dict[int, _Items] = {}
    for op in tape.ops:
        builder.ops, builder.location = [], op.location
        region = _inside(op, memory) if op.regions and op.result in active else None
        if region is not None and region.is_fixed and _state(region) * (region.trips or 0) > memory:
            items[op.result] = _nested(builder, region, op.operands, memory)
        elif op.access == AccessMap.ITEM and op.operands[0] in items:
            items[op.operands[0]](op.keyword("index"))
            builder.ops[-1] = replace(builder.ops[-1], result=op.result)
        else:
            builder.ops.append(op if region is None else replace(op, static=(("region", region),)))
        ops += builder.ops
        places.append(len(ops))
    guards = tuple([replace(each, after=places[each.after]) for each in tape.guards])
    return replace(tape, ops=tuple(ops), types=builder.types, constants=builder.constants, guards=guards)


def _inside(op: Op, memory: int) -> Region:
    """The region of a loop, with the loops in its body cut."""
    region: Region = op.keyword("region")
    inputs = [entry.variable for entry in region.body.inputs]
    return replace(region, body=checkpointed(region.body, inputs, memory))


def _state(region: Region) -> int:
    """Bytes of what one trip begins with."""
    return sum(region.body.types[entry.variable].nbytes for entry in region.body.inputs[1 : 1 + region.carries])


def _nested(builder: TapeBuilder, region: Region, operands: Sequence[int], memory: int) -> _Items:
    """Append a loop as loops of loops."""
    levels = depth(region.trips or 0, memory // _state(region))
    region = _shifted(region)
    return _Nest(builder, region, (*operands, builder.constant(0))).run(levels)


def _shifted(region: Region) -> Region:
    """``region`` with the number of the first trip as a last operand."""
    builder = region.body.builder()
    index = builder.inputs[0]
    number, shift = [builder.variable(builder.types[index.variable]) for _ in range(2)]
    builder.inputs = [replace(index, variable=number), *builder.inputs[1:]]
    builder.inputs.append(Input(shift, len(builder.inputs), "first"))
    ops, builder.ops = builder.ops, []
    builder.emit(primitive("add"), (number, shift))
    builder.ops = [replace(builder.ops[0], result=index.variable), *ops]
    return replace(region, body=builder.finish(region.body.outputs))


@dataclass(frozen=True)
class _Nest:
    """A loop whose last operand is the number of its first trip, as loops of loops, appended to ``builder``."""

    builder: TapeBuilder
    region: Region
    operands: Sequence[int]

    def run(self, levels: int) -> _Items:
        """Append the loops; what appends the result of a number, as the last op."""
        outer, inner, rest = _cut(self.region.trips or 0, levels)
        if inner == 1:
            return self._items(self.builder.emit(LOOP, self.operands, {"region": self.region}))
        carries = self.region.carries
        parts = [lambda nest: nest._part(0, rest).run(levels - 1)] if rest else []
        parts.append(lambda nest: nest._blocks(outer, inner, rest, levels))
        found: list[_Items] = []
        nest = self
        for part in reversed(parts) if self.region.backwards else parts:
            found.append(part(nest))
            after = [found[-1](number) for number in range(carries)] if len(found) < len(parts) else []
            nest = replace(nest, operands=(*after, *self.operands[len(after) :]))

        def item(number: int) -> int:
            if number < carries:
                return found[-1](number)
            blocks = found[0] if self.region.backwards else found[-1]
            shape = self.region.types()[number].shape
            rows = self._emit("reshape", blocks(number), shape=(outer * inner, *shape[1:]))
            if not rest:
                return rows
            ahead = (found[-1] if self.region.backwards else found[0])(number)
            return self.builder.emit(primitive("concatenate"), (ahead, rows), {"axis": 0})

        return item

    def _emit(self, name: str, operand: int, **static: Any) -> int:
        return self.builder.emit(primitive(name), (operand,), static)

    def _items(self, result: int) -> _Items:
        return lambda number: item_of(self.builder, result, number)

    def _part(self, first: int, count: int) -> _Nest:
        """Some trips of the loop."""
        slices = range(self.region.carries, self.region.carries + self.region.slices)
        operands = list(self.operands)
        for number in slices:
            shape = self.builder.types[operands[number]].shape
            index = Slice(first, first + count), *(Slice(0, extent) for extent in shape[1:])
            operands[number] = self._emit("getitem", operands[number], index=index)
        if first:
            operands[-1] = self.builder.emit(primitive("add"), (operands[-1], self.builder.constant(first)))
        return replace(self, region=replace(self.region, trips=count), operands=operands)

    def _blocks(self, outer: int, inner: int, first: int, levels: int) -> _Items:
        """The loop of loops."""
        part = self._part(first, outer * inner) if first else self
        region, operands = part.region, list(part.operands)
        slices = range(region.carries, region.carries + region.slices)
        for number in slices:
            operands[number] = self._emit(
                "reshape", operands[number], shape=(outer, inner, *self.builder.types[operands[number]].shape[1:])
            )
        body = TapeBuilder(region.body.name)
        body.location = self.builder.location
        types = [region.body.types[entry.variable] for entry in region.body.inputs]
        for number in slices:
            types[1 + number] = TensorType(types[1 + number].dtype, (inner, *types[1 + number].shape))
        index, *given = [
            body.input(type, entry.argument, entry.name) for type, entry in zip(types, region.body.inputs, strict=True)
        ]
        start = body.emit(primitive("multiply"), (index, body.constant(inner)))
        given[-1] = body.emit(primitive("add"), (given[-1], start))
        found = _Nest(body, replace(region, trips=inner), given).run(levels - 1)
        tape = body.finish([found(number) for number in range(len(region.body.outputs))])
        return self._items(
            self.builder.emit(LOOP, operands, {"region": replace(region, body=tape, trips=outer, seen=outer)})
        )
