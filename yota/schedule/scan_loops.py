"""Cumulative sums and products as loops, for languages that have no function for them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.regions import LOOP, Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize.rewrite import Rewriting, rewritten
from yota.rules.language.statics import inverse

_STEPS = {"cumsum": ("add", -0.0), "cumprod": ("multiply", 1.0)}
"""The op of a trip, and the number that changes no bit of another one."""


def as_loops(tape: Tape, kept: Collection[int] = ()) -> Tape:
    """``tape`` with each cumulative sum or product of real numbers as a loop along its axis; ``kept`` stay."""
    if not any(op.access == AccessMap.SCAN for op in tape.ops):
        return tape
    return rewritten(tape, partial(_looped, kept=kept))


def _looped(rewriting: Rewriting, op: Op, kept: Collection[int]) -> int | None:
    if op.access != AccessMap.SCAN or op.result in kept:
        return None
    type, axis = rewriting.tape.types[op.result], op.keyword("axis")
    (operand,) = rewriting.operands(op)
    if type.dtype.kind != "f" or rewriting.type(operand) != type or not type.size:
        return None
    name, neutral = _STEPS[op.name]
    builder, order = rewriting.builder, (axis, *(each for each in range(type.ndim) if each != axis))
    row = TensorType(type.dtype, type.shape[:axis] + type.shape[axis + 1 :])
    start = builder.constant(type.dtype.type(neutral))
    if row.shape:
        start = builder.emit(primitive("broadcast_to"), (start,), {"shape": row.shape})
    if axis:
        operand = builder.emit(primitive("transpose"), (operand,), {"axes": order})
    trips = type.shape[axis]
    region = Region(_trip(name, row), 1, 1, trips, seen=trips)
    found = item_of(builder, builder.emit(LOOP, (start, operand), {"region": region}), 1)
    if axis:
        found = builder.emit(primitive("transpose"), (found,), {"axes": inverse(order)})
    return found


def _trip(name: str, row: TensorType) -> Tape:
    """The body: the carried value and a row give the next carried value, which is also the row of the result."""
    body = TapeBuilder(name)
    body.input(TensorType(np.dtype(np.int64), (), True), 0, "i")
    made = body.emit(primitive(name), (body.input(row, 1, "carried"), body.input(row, 2, "row")))
    return body.finish([made, made])
