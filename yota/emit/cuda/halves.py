"""Numbers of 16 bits: kernels load and store them, and compute in single precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from yota.errors import CodegenError
from yota.ir.catalog import primitive
from yota.ir.tape import Guard, Op, Tape
from yota.ir.types import TensorType

Stored: TypeAlias = "np.dtype[Any] | None"
"""The dtype that an array has in memory; None for that of its variable."""

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class Widened:
    """A tape in single precision, and how its inputs and outputs are stored."""

    tape: Tape
    inputs: tuple[Stored, ...]
    outputs: tuple[Stored, ...]


def widened(tape: Tape) -> Widened:
    """``tape`` with float32 for float16 everywhere but where the user asked to round to it."""
    types = tape.types
    halves = {variable for variable, type in types.items() if type.dtype == _HALF}
    inputs = tuple(_HALF if item.variable in halves else None for item in tape.inputs)
    outputs = tuple(_HALF if output in halves else None for output in tape.outputs)
    if not halves:
        return Widened(tape, inputs, outputs)
    if any(op.regions for op in tape.ops):
        raise CodegenError("a loop of numbers of 16 bits has no form in CUDA; use float32")
    return Widened(_Widening(tape, halves).run(), inputs, outputs)


class _Widening:
    def __init__(self, tape: Tape, halves: set[int]) -> None:
        self.tape, self.halves = tape, halves
        self.builder = tape.builder()
        self.builder.ops, self.builder.guards = [], []
        self.builder.types = {v: _single(type) if v in halves else type for v, type in tape.types.items()}

    def run(self) -> Tape:
        for variable in self.halves & set(self.tape.constants):
            self.builder.constants[variable] = self.tape.constants[variable].astype(_SINGLE)
        guards = list(self.tape.guards)
        for done, op in enumerate(self.tape.ops):
            guards = self._guarded(guards, done)
            self._op(op)
        self._guarded(guards, len(self.tape.ops))
        return self.builder.finish(self.tape.outputs)

    def _op(self, op: Op) -> None:
        source = op.operands[0] if op.operands else None
        self.builder.location = op.location
        if op.semantics.casts and op.result in self.halves and source not in self.halves:
            rounded = self.builder.emit(op.primitive, op.operands, op.static, self.tape.types[op.result])
            op = replace(op, operands=(rounded,))
        static = tuple((name, _wide(value)) for name, value in op.static)
        self.builder.ops.append(replace(op, static=static))

    def _guarded(self, guards: list[Guard], done: int) -> list[Guard]:
        """Guards as far as they were recorded after ``done`` ops; the rest is given back."""
        while guards and guards[0].after <= done:
            guard = guards.pop(0)
            variable = guard.variable
            if variable in self.halves and guard.kind != "bool":
                # What Python saw was rounded.
                rounding = primitive("astype")
                variable = self.builder.emit(rounding, (variable,), {"dtype": _HALF}, self.tape.types[variable])
            self.builder.guards.append(replace(guard, variable=variable, after=len(self.builder.ops)))
        return guards


def _single(type: TensorType) -> TensorType:
    return TensorType(_SINGLE, type.shape, type.weak)


def _wide(value: Any) -> Any:
    return _SINGLE if isinstance(value, np.dtype) and value == _HALF else value


def placed(tape: Tape, inputs: Sequence[Stored], outputs: Sequence[Stored]) -> tuple[Tape, Mapping[int, np.dtype[Any]]]:
    """The dtype in memory of each variable of which it is not that of the tape.

    A result that is stored in two ways, or is an argument stored in another, becomes a variable of its own.
    """
    if not any((*inputs, *outputs)):
        return tape, {}
    stored: dict[int, np.dtype[Any]] = {}
    fixed = {item.variable for item in tape.inputs} | set(tape.constants)
    # What is computed from a result must not find it rounded: a maximum would no longer be equal to any element.
    used = {operand for op in tape.ops for operand in op.operands} | {guard.variable for guard in tape.guards}
    for item, dtype in zip(tape.inputs, inputs, strict=True):
        if dtype is not None:
            stored[item.variable] = dtype
    builder = tape.builder()
    found = []
    for variable, dtype in zip(tape.outputs, outputs, strict=True):
        if stored.get(variable) != dtype and (variable in fixed or variable in used):
            variable = builder.emit(primitive("positive"), (variable,))
        fixed.add(variable)
        if dtype is not None:
            stored[variable] = dtype
        found.append(variable)
    return builder.finish(found), stored
