"""Loop bodies: ops that no trip hands on leave as ops on arrays, and small arrays become scalar variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.ir.extents import Extent
from yota.ir.infer import infer
from yota.ir.inputs import Input
from yota.ir.regions import Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize import dce
from yota.optimize.rewrite import Rewriting, users

FEWEST_TRIPS = 16
"""Trips from which a loop is taken apart."""

_Parted = tuple[Region, list[int], dict[int, int]]


def parted(rewriting: Rewriting, region: Region, operands: list[int]) -> _Parted:
    """Append ahead of a loop what can be computed for all trips at once.

    What is left is a loop, with the operand of each input of its body but the first; and, by the number of an output of
    the body that was, the array of all its rows, which the loop no longer gives.
    """
    if region.is_fixed and region.trips is not None and int(region.trips) >= FEWEST_TRIPS:
        return _Fission(rewriting, region, operands).parted() or (region, operands, {})
    return region, operands, {}


class _Fission:
    def __init__(self, rewriting: Rewriting, region: Region, operands: Sequence[int]) -> None:
        self.rewriting, self.region, self.body = rewriting, region, region.body
        given = dict(zip([entry.variable for entry in self.body.inputs[1:]], operands, strict=True))
        entries = [entry.variable for entry in self.body.inputs]
        self.operands = given
        self.rows = {each: given[each] for each in entries[1 + region.carries : region.first_invariant]}
        """Arrays of all trips."""
        self.numbers: int | None = None
        self.fixed = {each: given[each] for each in entries[region.first_invariant :]}

    def parted(self) -> _Parted | None:
        """What is left; None if all of it is."""
        region, body = self.region, self.body
        moved = {op.result for op in body.ops if self._move(op)}
        arrays: dict[int, int] = {}
        for number in range(region.carries, len(body.outputs)):
            output = body.outputs[number]
            if output in self.rows:
                arrays[number] = self.rows[output]
            elif (same := self._outer(output)) is not None:
                shape = (region.trips or 0, *body.types[output].shape)
                arrays[number] = self.rewriting.emit("broadcast_to", (same,), {"shape": shape})
        ops = tuple([op for op in body.ops if op.result not in moved])
        # Each array that goes between costs more than a few operations.
        if len(ops) > len(moved) or not (moved or arrays):
            return None
        outputs = tuple([each for number, each in enumerate(body.outputs) if number not in arrays])
        wanted = {*outputs, *(operand for op in ops for operand in op.operands)}
        entries = [entry.variable for entry in body.inputs]
        rows = [each for each in self.rows if each in wanted]
        fixed = [each for each in self.fixed if each in wanted and each not in body.constants]
        order = [*entries[: 1 + region.carries], *rows, *fixed]
        inputs = tuple([Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)])
        tape = replace(body, ops=ops, outputs=outputs, inputs=inputs)
        outside = {**self.operands, **self.rows, **self.fixed}
        operands = [outside[each] for each in order[1:]]
        return replace(region, body=tape, slices=len(rows)), operands, arrays

    def _outer(self, variable: int) -> int | None:
        """What is the same in each trip, as it is outside of the loop."""
        if variable not in self.fixed and variable in self.body.constants:
            value, type = self.body.constants[variable], self.body.types[variable]
            self.fixed[variable] = self.rewriting.builder.constant_of(value, type)
        return self.fixed.get(variable)

    def _numbers(self) -> int | None:
        """The numbers of all trips; None if how many depends on sizes."""
        if self.numbers is None and not isinstance(self.region.trips, Extent):
            found = np.arange(self.region.trips or 0)
            found.flags.writeable = False
            self.numbers = self.rewriting.builder.constant(found)
        return self.numbers

    def _move(self, op: Op) -> bool:
        """Whether an op was put ahead of the loop."""
        types, index = self.body.types, self.body.inputs[0].variable
        first = op.access == AccessMap.READ and op.operands[0] not in self.rows
        if not (first or op.primitive.elementwise) or any(
            types[each].shape for each in (op.result, *op.operands[first:])
        ):
            return False
        moving = [each for each in op.operands if each in self.rows or each == index]
        operands = [
            self._numbers() if each == index else self.rows[each] if each in self.rows else self._outer(each)
            for each in op.operands
        ]
        known = [each for each in operands if each is not None]
        if len(known) < len(operands):
            return False
        self.rewriting.builder.location = op.location
        found = infer(op.primitive, tuple([self.rewriting.type(each) for each in known]), op.static)
        if found.dtype != types[op.result].dtype or (not moving and found.weak != types[op.result].weak):
            return False
        made = self.rows if moving else self.fixed
        made[op.result] = self.rewriting.emit(op.primitive, known, op.static, found)
        return True


_LARGEST = 16
"""Elements of an array up to which it becomes numbers."""


def split(rewriting: Rewriting, region: Region, operands: Sequence[int]) -> tuple[Region, list[int], list[int]]:
    """A loop without such arrays, its operands, and of each result into how many numbers it was split.

    The results are those before the split; the number is 0 for one that stays as it is.
    """
    body = region.body
    read, made = users(body), body.definitions()
    counts = [0] * len(body.outputs)
    inputs, given = [body.inputs[0].variable], list[int]()
    builder = body.builder()
    same: dict[int, int] = {}
    """By the result of a read that is dropped, the number that the trip is given."""
    for number, (entry, operand) in enumerate(zip(body.inputs[1:], operands, strict=True)):
        type, readers = body.types[entry.variable], read.get(entry.variable, ())
        carried = number < region.carries
        if not _is_split(region, number, readers, made, read):
            inputs.append(entry.variable)
            given.append(operand)
            continue
        places: dict[Any, int] = {}
        for op in readers:
            same[op.result] = places.setdefault(op.keyword("index"), op.result)
        if carried:
            counts[number] = type.size
            number_type = TensorType(type.dtype, ())
            places = {(k,): places.get((k,)) or builder.variable(number_type) for k in range(type.size)}
        inputs += places.values()
        given += [rewriting.emit("getitem", (operand,), {"index": place}) for place in places]
    if not same and not any(counts):
        return region, list(operands), counts
    outputs: list[int] = []
    for output, count in zip(body.outputs, counts, strict=True):
        outputs += made[output].operands if count else [output]
    builder.ops = [
        op
        if same.keys().isdisjoint(op.operands)
        else replace(op, operands=tuple([same.get(operand, operand) for operand in op.operands]))
        for op in body.ops
        if op.result not in same
    ]
    builder.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(inputs)]
    tape = builder.finish([same.get(output, output) for output in outputs])
    carries = region.carries + sum(count - 1 for count in counts if count)
    return replace(region, body=dce.run(tape), carries=carries), given, counts


def _is_split(
    region: Region, number: int, readers: Sequence[Op], made: Mapping[int, Op], read: Mapping[int, Sequence[Op]]
) -> bool:
    """Whether a carried array, or one that is the same in every trip, becomes numbers."""
    body = region.body
    type = body.types[body.inputs[1 + number].variable]
    if region.condition is not None or body.guards or region.carries <= number < region.first_invariant - 1:
        return False
    if not _is_read_by_element(body, body.inputs[1 + number].variable, readers):
        return False
    return number >= region.carries or _is_made_by_element(body, made.get(body.outputs[number]), type, read)


def _is_read_by_element(body: Tape, variable: int, readers: Sequence[Op]) -> bool:
    """Whether all that a trip does with an array is to read single elements."""
    type = body.types[variable]
    return (
        type.ndim > 0
        and 0 < int(type.size) <= _LARGEST
        and variable not in body.outputs
        and all(
            op.access == AccessMap.READ
            and op.operands == (variable,)
            and len(op.keyword("index")) == type.ndim
            and all(isinstance(each, int) and each >= 0 for each in op.keyword("index"))
            for op in readers
        )
    )


def _is_made_by_element(body: Tape, op: Op | None, type: TensorType, read: Mapping[int, Sequence[Op]]) -> bool:
    """Whether an op only puts together the elements of the next value of a carried array."""
    return (
        op is not None
        and op.access == AccessMap.STACK
        and type.ndim == 1
        and op.result not in read
        and body.outputs.count(op.result) == 1
        and all(body.types[each] == TensorType(type.dtype, ()) for each in op.operands)
    )
