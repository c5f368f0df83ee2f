"""Loops over many points: all points take each trip together. Ops that no axis can be added to: a loop over points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from yota.errors import ArgumentError
from yota.ir.catalog import item_of
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, TupleType
from yota.optimize.rewrite import reached

if TYPE_CHECKING:
    from yota.transform.batching.op_batching import Batching


def looped(batching: Batching, op: Op, batched: Callable[..., Tape]) -> tuple[int, ...] | None:
    """The results of a loop with the axis of points first; None if trip counts differ between points."""
    region: Region = op.keyword("region")
    body, many = region.body, batching.many
    if region.counted and op.operands[0] in many:
        return None
    given = op.operands[region.counted :]
    inputs = [entry.variable for entry in body.inputs]
    known = {inner for inner, operand in zip(inputs[1:], given, strict=True) if operand in many}
    moving: set[int] = set()
    size = -1
    while size != (size := len(known)):
        moving = reached(body, known)
        pairs = zip(inputs[1 : 1 + region.carries], body.outputs, strict=False)
        known |= {inner for inner, output in pairs if output in moving}
    axes = [0 if inner in known else None for inner in inputs]
    outer = [
        0 if each in moving or (k < region.carries and inputs[1 + k] in known) else None
        for k, each in enumerate(body.outputs)
    ]
    rows = range(region.carries, region.carries + region.slices)
    try:
        trip = batched(body, axes, batching.count, outer)
        test = region.condition
        if test is not None:
            places = [axis for number, axis in enumerate(axes) if number - 1 not in rows]
            test = batched(test, places, batching.count, [None])
    except ArgumentError:
        return None
    operands = [batching.one(operand) for operand in op.operands[: region.counted]]
    for number, operand in enumerate(given):
        if axes[number + 1] is None:
            operands.append(batching.one(operand))
            continue
        found = batching.as_many(operand)
        if number in rows:
            ndim = batching.builder.types[found].ndim
            found = batching.emit("transpose", (found,), axes=(1, 0, *range(2, ndim)))
        operands.append(found)
    made = batching.builder.emit(LOOP, operands, {"region": replace(region, body=trip, condition=test)})
    return tuple(_result(batching, made, k, region, outer[k]) for k in range(len(outer)))


def each_point(batching: Batching, op: Op) -> tuple[int, ...]:
    """The results of an op that is computed for one point after the other, with the axis of points first."""
    builder, operands = batching.builder, tuple(dict.fromkeys(op.operands))
    many = [each for each in operands if each in batching.many]
    shared = [each for each in operands if each not in batching.many]
    given = [*map(batching.as_many, many), *map(batching.one, shared)]
    body = TapeBuilder(batching.tape.name)
    body.location = op.location
    body.input(TensorType(np.dtype(np.int64), ()), 0, "i")
    inner: dict[int, int] = {}
    for number, (each, outer) in enumerate(zip((*many, *shared), given, strict=True), 1):
        type = builder.types[outer]
        row = TensorType(type.dtype, type.shape[1:]) if number <= len(many) else type
        inner[each] = body.input(row, number, f"c{number}")
    made = body.emit(op.primitive, [inner[each] for each in op.operands], op.static, batching.tape.types[op.result])
    parts = body.types[made]
    outputs = [item_of(body, made, k) for k in range(len(parts.parts))] if isinstance(parts, TupleType) else [made]
    region = Region(body.finish(outputs), 0, len(many), batching.count, seen=batching.count)
    loop = builder.emit(LOOP, given, {"region": region})
    return tuple(item_of(builder, loop, number) for number in range(len(outputs)))


def _result(batching: Batching, loop: int, number: int, region: Region, axis: int | None) -> int:
    found = batching.emit("item", (loop,), index=number)
    type: TensorType = batching.builder.types[found]
    if axis is None:
        return batching.emit("broadcast_to", (found,), shape=(batching.count, *type.shape))
    if number < region.carries:
        return found
    return batching.emit("transpose", (found,), axes=(1, 0, *range(2, type.ndim)))
