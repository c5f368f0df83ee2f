"""Tapes as parts of others: ops appended to a builder, constants, and tapes of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.infer import sample
from yota.ir.inputs import Input, Leaf
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.rules.registry import Registry
from yota.tracing.record import record


def match(builder: TapeBuilder, adjoint: int, target: TensorType) -> int:
    """``adjoint`` summed over the axes that were broadcast, real where the variable is, in its dtype.

    The sum over broadcast axes is the transpose of broadcasting (Griewank and Walther, Evaluating Derivatives,
    2nd ed., section 3.2: the adjoint of a copy is a sum).
    """
    type_ = builder.types[adjoint]
    if type_.is_complex and not target.is_complex:
        adjoint = builder.emit(primitive("real"), (adjoint,))
    adjoint = _undo_broadcast(builder, adjoint, target.shape)
    found = builder.types[adjoint]
    if found.dtype != target.dtype or found.weak != target.weak:
        static = {"dtype": np.dtype(target.dtype)}
        adjoint = builder.emit(primitive("astype"), (adjoint,), static, type=target)
    return adjoint


def _undo_broadcast(builder: TapeBuilder, adjoint: int, shape: tuple[int, ...]) -> int:
    found = builder.types[adjoint].shape
    if found == shape:
        return adjoint
    extra = len(found) - len(shape)
    axes = tuple(
        axis for axis, extent in enumerate(found) if axis < extra or (shape[axis - extra] == 1 and extent != 1)
    )
    if axes:
        adjoint = builder.emit(primitive("sum"), (adjoint,), {"axis": axes, "keepdims": False})
    if builder.types[adjoint].shape != shape:
        adjoint = builder.emit(primitive("reshape"), (adjoint,), {"shape": shape})
    return adjoint


Reverse: TypeAlias = Callable[..., tuple["int | None", ...]]
"""`yota.transform.reverse.backward.reverse`, which calls what takes it as a parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """One op in reverse mode, for what appends the adjoints of its operands to ``builder``.

    adjoints: adjoints of its results, by number.
    active: variables that have adjoints.
    """

    builder: TapeBuilder
    registry: Registry
    op: Op
    adjoints: Mapping[int, int]
    active: set[int]
    reverse: Reverse

    def called(self, name: str) -> str:
        """The name of what the op calls, and the place of the call."""
        return f"{name} at {self.op.location}" if self.op.location else name


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
