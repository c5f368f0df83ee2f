"""Loops over many points: all points take each trip together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from yota.errors import ArgumentError
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType

if TYPE_CHECKING:
    from yota.batching.ops import Batching

__all__ = ["looped"]


def looped(batching: Batching, op: Op, batched: Callable[..., Tape]) -> tuple[int, ...] | None:
    """The results of a loop with the axis of points first; None if trip counts differ between points."""
    region: Region = op.keyword("region")
    body, many = region.body, batching.many
    if region.counted and op.operands[0] in many:
        return None
    given = op.operands[region.counted :]
    inputs = [entry.variable for entry in body.inputs]
    known = {inner for inner, operand in zip(inputs[1:], given, strict=True) if operand in many}
    reached: set[int] = set()
    size = -1
    while size != (size := len(known)):
        reached = _reached(body, known)
        pairs = zip(inputs[1 : 1 + region.carries], body.outputs, strict=False)
        known |= {inner for inner, output in pairs if output in reached}
    axes = [0 if inner in known else None for inner in inputs]
    outer = [
        0 if each in reached or (k < region.carries and inputs[1 + k] in known) else None
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


def _result(batching: Batching, loop: int, number: int, region: Region, axis: int | None) -> int:
    """One result, with the axis of points first."""
    found = batching.emit("item", (loop,), index=number)
    type: TensorType = batching.builder.types[found]
    if axis is None:
        return batching.emit("broadcast_to", (found,), shape=(batching.count, *type.shape))
    if number < region.carries:
        return found
    return batching.emit("transpose", (found,), axes=(1, 0, *range(2, type.ndim)))


def _reached(tape: Tape, roots: set[int]) -> set[int]:
    """Variables that depend on ``roots``, with these."""
    found = set(roots)
    for op in tape.ops:
        if not found.isdisjoint(op.operands):
            found.add(op.result)
    return found
