"""A chain of elementwise ops as a loop over blocks of elements, with the loops over trips in its body."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.indexing import Slice
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, is_uniform
from yota.optimize.elementwise_chains import Chain
from yota.optimize.elementwise_loops import Shape, Trips, resized, resized_static, uniform
from yota.optimize.rewrite import with_ops

_ELEMENT, _STACK, _WHOLE = "element", "stack", "whole"
"""Roles of variables: an array of elements, one for each trip, or the same for all blocks."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a target likes blocks: fewest and most elements, and the bytes that all arrays of a block should have.

    Lengths are multiples of the fewest elements, a whole number of vectors.
    """

    fewest: int
    most: int
    cache: int

    def size(self, elements: int, each: int) -> int:
        """The length of a block of ``elements``, of which each takes so many bytes; where it can be, a divisor."""
        most = max(1, min(self.most, self.cache // each) // self.fewest) * self.fewest
        return next((size for size in range(most, most // 2, -self.fewest) if elements % size == 0), most)


class _Part:
    """A chain for some of the elements, on one builder.

    given: variables of the builder, by variable of the tape and role.
    """

    def __init__(
        self, tape: Tape, chain: Chain, builder: TapeBuilder, given: dict[tuple[int, str], int], size: int
    ) -> None:
        self.tape, self.chain, self.builder, self.given, self.size = tape, chain, builder, given, size
        self.sums: dict[int, list[int]] = {}
        """By loop, the sums of its trips."""
        made: dict[int, int] = {}
        for op in chain.ops:
            builder.location = op.location
            if op.regions:
                made[op.result] = self._loop(op)
            elif op.access == AccessMap.ITEM:
                number = chain.loops[op.operands[0]].results[op.keyword("index")][1]
                self._keep(op.result, item_of(builder, made[op.operands[0]], number))
            else:
                operands = [self[each, role_of(tape.types[each], chain.shape)] for each in op.operands]
                type = tape.types[op.result]
                type = TensorType(type.dtype, (size,), type.weak) if type.shape else type
                self._keep(op.result, builder.emit(op.primitive, operands, resized_static(op, size), type))

    def _keep(self, variable: int, found: int) -> None:
        self.given.update({(variable, role): found for role in (_ELEMENT, _STACK, _WHOLE)})

    def __getitem__(self, key: tuple[int, str]) -> int:
        if key not in self.given:
            value, type = self.tape.constants[key[0]], self.tape.types[key[0]]
            builder = self.builder
            self.given[key] = (
                builder.constant(uniform(value, self.size)) if key[1] == _ELEMENT else builder.constant_of(value, type)
            )
        return self.given[key]

    def _loop(self, op: Op) -> int:
        trips = self.chain.loops[op.result]
        operands = [self[key] for key in keys_of(op, trips, self.chain.shape)]
        region = resized(trips.elements, self.chain.shape, self.size)
        found = self.builder.emit(LOOP, operands, {"region": region})
        count = len(region.body.outputs)
        self.sums[op.result] = [item_of(self.builder, found, count - 1 - k) for k in reversed(range(trips.sums))]
        return found


def role_of(type: TensorType, shape: Shape) -> str:
    """The role of an operand of an elementwise op."""
    return _ELEMENT if type.shape == shape else _WHOLE


def keys_of(op: Op, trips: Trips, shape: Shape) -> list[tuple[int, str]]:
    """The operands of a loop over elements, with their roles."""
    region = trips.elements
    keys = []
    for number, (place, entry) in enumerate(zip(trips.operands, region.body.inputs[1:], strict=True)):
        is_array = region.body.types[entry.variable].shape == shape
        is_row = region.carries <= number < region.carries + region.slices
        keys.append((op.operands[place], _STACK if is_array and is_row else _ELEMENT if is_array else _WHOLE))
    return keys


class BlockedChain:
    """Writes a tape with one chain as a loop over blocks."""

    def __init__(self, tape: Tape, chain: Chain, blocks: Blocks) -> None:
        self.tape, self.chain = tape, chain
        self.count = math.prod(chain.shape)
        # Every kept state of a loop counts, and what is carried twice.
        each = sum(
            type.dtype.itemsize * (2 if number < loop.elements.carries else int(loop.elements.trips or 0))
            for loop in chain.loops.values()
            for number, output in enumerate(loop.elements.body.outputs)
            if (type := loop.elements.body.types[output]).shape == chain.shape
        )
        self.size = blocks.size(self.count, each)
        self.trips, self.rest = divmod(self.count, self.size)
        self.is_worthy = self.count * each > 4 * blocks.cache and self.trips > 1
        self.builder = tape.builder()

    def run(self) -> Tape:
        """The tape; variables keep their numbers."""
        tape, chain, builder = self.tape, self.chain, self.builder
        own = {op.result for op in chain.ops}
        builder.ops = [op for op in tape.ops if op.result not in chain.after | own]
        builder.location = chain.ops[0].location
        keys = self._keys()
        wanted = self._wanted(own)
        parts = [dict(zip(wanted, self._blocks(keys, wanted), strict=True))]
        if self.rest:
            given = {key: self._cut(key, Slice(self.count - self.rest, self.count)) for key in keys}
            last = _Part(tape, chain, builder, given, self.rest)
            parts.append({each: self._of(last, each) for each in wanted})
        joined: dict[Any, int] = {}
        for each in wanted:
            joined[each] = self._joined(each, [part[each] for part in parts])
            if isinstance(each, int):
                builder.ops[-1] = replace(builder.ops[-1], result=each)
        self._numbers(joined)
        builder.ops += [op for op in tape.ops if op.result in chain.after - own and not self._is_number(op)]
        return with_ops(replace(tape, types=builder.types, constants=builder.constants), builder.ops)

    def _keys(self) -> list[tuple[int, str]]:
        """What the chain reads from outside, with roles; numbers and uniform arrays that are constants stay inside."""
        tape, chain = self.tape, self.chain
        found: dict[tuple[int, str], None] = {}
        for op in chain.ops:
            if op.regions:
                found.update(dict.fromkeys(keys_of(op, chain.loops[op.result], chain.shape)))
            elif op.access != AccessMap.ITEM:
                found.update({(each, role_of(tape.types[each], chain.shape)): None for each in op.operands})
        return [key for key in found if key[0] not in chain.inside and not self._is_known(*key)]

    def _is_known(self, variable: int, role: str) -> bool:
        value = self.tape.constants.get(variable)
        if value is None or role == _STACK:
            return False
        return is_uniform(value) if role == _ELEMENT else not self.tape.types[variable].shape

    def _wanted(self, own: set[int]) -> list[Any]:
        """What is read of the chain outside of it: variables, and for loops over numbers the sums of loops."""
        tape, chain = self.tape, self.chain
        read = {*tape.outputs}
        read.update(each for op in tape.ops if op.result not in own or self._is_number(op) for each in op.operands)
        for op in chain.ops:
            if op.regions and (trips := chain.loops[op.result]).numbers is not None:
                read.update(op.operands[k] for k in trips.number_operands if k is not None)
        found: list[Any] = [op.result for op in chain.ops if op.result in read and not op.regions]
        return found + [
            (result, number)
            for result, trips in chain.loops.items()
            if trips.numbers is not None
            for number in range(trips.sums)
        ]

    def _is_number(self, op: Op) -> bool:
        """Whether an op reads a result of a loop over numbers."""
        loop = self.chain.loops.get(op.operands[0]) if op.access == AccessMap.ITEM else None
        return loop is not None and loop.results[op.keyword("index")][0]

    def _of(self, part: _Part, wanted: Any) -> int:
        return part[wanted, _WHOLE] if isinstance(wanted, int) else part.sums[wanted[0]][wanted[1]]

    def _blocks(self, keys: Sequence[tuple[int, str]], wanted: Iterable[Any]) -> list[int]:
        """Append the loop over blocks; its results."""
        body = TapeBuilder(self.tape.name)
        index = body.variable(TensorType(np.dtype(np.int64), (), True))
        sliced = [key for key in keys if key[1] != _WHOLE]
        fixed = [key for key in keys if key[1] == _WHOLE]
        inner: dict[tuple[int, str], int] = {}
        for key in (*sliced, *fixed):
            type = self.tape.types[key[0]]
            shape = {_ELEMENT: (self.size,), _STACK: (type.shape[0] if type.shape else 0, self.size)}.get(key[1])
            inner[key] = body.variable(TensorType(type.dtype, type.shape if shape is None else shape, type.weak))
        order = [index, *inner.values()]
        body.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)]
        part = _Part(self.tape, self.chain, body, dict(inner), self.size)
        tape = body.finish([self._of(part, each) for each in wanted])
        region = Region(tape, 0, len(sliced), self.trips, seen=self.trips)
        operands = [self._rows(key) for key in sliced] + [key[0] for key in fixed]
        loop = self.builder.emit(LOOP, operands, {"region": region})
        return [item_of(self.builder, loop, number) for number in range(len(tape.outputs))]

    def _cut(self, key: tuple[int, str], part: Slice) -> int:
        """The part of a variable that some elements are in, with all elements on one axis."""
        variable, role = key
        if role == _WHOLE:
            return variable
        ahead = self.builder.types[variable].shape[:1] if role == _STACK else ()
        found = self._shaped(variable, (*ahead, self.count))
        if part == Slice(0, self.count):
            return found
        index = (*(Slice(0, each) for each in ahead), part)
        return self.builder.emit(primitive("getitem"), (found,), {"index": index})

    def _rows(self, key: tuple[int, str]) -> int:
        """A variable with a row for each block."""
        found = self._cut(key, Slice(0, self.size * self.trips))
        if key[1] == _ELEMENT:
            return self._shaped(found, (self.trips, self.size))
        found = self._shaped(found, (self.builder.types[found].shape[0], self.trips, self.size))
        return self.builder.emit(primitive("transpose"), (found,), {"axes": (1, 0, 2)})

    def _shaped(self, variable: int, shape: Shape) -> int:
        if self.builder.types[variable].shape == shape:
            return variable
        return self.builder.emit(primitive("reshape"), (variable,), {"shape": shape})

    def _joined(self, wanted: Any, parts: Sequence[int]) -> int:
        """What all blocks, and the rest, give together; the last op computes it."""
        builder, shape = self.builder, self.chain.shape
        first, *last = parts
        if not isinstance(wanted, int) or self._is_sum(wanted):
            total = builder.emit(primitive("sum"), (first,), {"axis": (0,), "keepdims": False})
            for each in last:
                total = builder.emit(primitive("add"), (total, each))
            return total
        type = self.tape.types[wanted]
        if self._is_row(wanted) or shape not in (type.shape, type.shape[1:]):
            # Each block has the same.
            index = (0, *(Slice(0, each) for each in type.shape))
            return builder.emit(primitive("getitem"), (first,), {"index": index}, type)
        ahead = type.shape[: type.ndim - len(shape)]
        whole = builder.emit(primitive("transpose"), (first,), {"axes": (1, 0, 2)}) if ahead else first
        found = builder.emit(primitive("reshape"), (whole,), {"shape": (*ahead, self.size * self.trips)})
        if last:
            found = builder.emit(primitive("concatenate"), (found, *last), {"axis": len(ahead)})
        if len(shape) > 1:
            found = builder.emit(primitive("reshape"), (found,), {"shape": (*ahead, *shape)})
        return found

    def _is_sum(self, variable: int) -> bool:
        return any(op.result == variable and op.access == AccessMap.REDUCTION for op in self.chain.ops)

    def _is_row(self, variable: int) -> bool:
        """Whether a variable is a number, or has one for each trip."""
        for op in self.chain.ops:
            if op.result == variable and op.access == AccessMap.ITEM:
                trips = self.chain.loops[op.operands[0]]
                body = trips.elements.body
                return not body.types[body.outputs[trips.results[op.keyword("index")][1]]].shape
        return False

    def _numbers(self, joined: dict[Any, int]) -> None:
        """Append the loops over numbers, and what is read of them."""
        for op in self.chain.ops:
            trips = self.chain.loops.get(op.result)
            if trips is None or trips.numbers is None:
                continue
            self.builder.location = op.location
            operands: list[int] = []
            for k in trips.number_operands:
                operands += [joined[op.result, n] for n in range(trips.sums)] if k is None else [op.operands[k]]
            found = self.builder.emit(LOOP, operands, {"region": trips.numbers})
            for each in self.tape.ops:
                if self._is_number(each) and each.operands[0] == op.result:
                    item_of(self.builder, found, trips.results[each.keyword("index")][1])
                    self.builder.ops[-1] = replace(self.builder.ops[-1], result=each.result)
