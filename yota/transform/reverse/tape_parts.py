"""Tapes as parts of others: ops appended to a builder, constants, and tapes of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from yota.ir.infer import sample
from yota.ir.inputs import Input, Leaf
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.tracing.record import record
from yota.transform.reverse.unbroadcast import match

Reverse: TypeAlias = Callable[..., tuple["int | None", ...]]
"""`yota.transform.reverse.backward.reverse`, which calls what takes it as a parameter."""


def constant(builder: TapeBuilder, type: TensorType, value: Any) -> int:
    """A constant of a type, as a variable."""
    array = np.asarray(value, type.dtype)
    array.flags.writeable = False
    return builder.constant(array if type.shape else array[()].item() if type.weak else array[()])


def emitted(builder: TapeBuilder, tape: Tape, given: Sequence[int]) -> Tape:
    """The ops of ``tape``, appended to ``builder`` for these variables; as a tape with the builder's variables."""
    known: dict[int, int] = {}
    first = len(builder.ops)
    for entry, variable in zip(tape.inputs, given, strict=True):
        known[entry.variable] = match(builder, variable, tape.types[entry.variable])
    for variable, value in tape.constants.items():
        known[variable] = builder.constant_of(value, tape.types[variable])
    for op in tape.ops:
        operands = [known[operand] for operand in op.operands]
        known[op.result] = builder.emit(op.primitive, operands, op.static, tape.types[op.result])
    return replace(
        builder.finish([known[each] for each in tape.outputs]), ops=tuple(builder.ops[first:]), inputs=(), guards=()
    )


def taped(function: Callable[..., Any], types: Sequence[TensorType], registry: Any) -> Tape:
    """A function of traced values of these types as a tape; it decides nothing by their numbers, which are samples."""
    leaves = [Leaf(sample(each), number, f"c{number}") for number, each in enumerate(types)]
    with np.errstate(all="ignore"):
        tape = record(function, leaves, tuple, registry=registry).tape
    inputs = tuple(Input(each.variable, number, each.name) for number, each in enumerate(tape.inputs))
    return replace(tape, inputs=inputs, statics=())
