"""Tapes for tests: written as Python expressions, differentiated by a tiny reverse mode, evaluated op by op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType

FLOAT = np.dtype("float64")


class Traced:
    """A variable of a builder with Python's operators."""

    def __init__(self, builder: TapeBuilder, variable: int) -> None:
        self.builder = builder
        self.variable = variable

    def _of(self, other: Any) -> int:
        return other.variable if isinstance(other, Traced) else self.builder.constant(other)

    def apply(self, name: str, *operands: Any, **static: Any) -> Traced:
        variables = [self._of(operand) for operand in operands]
        return Traced(self.builder, self.builder.emit(primitive(name), variables, static))

    def __add__(self, other: Any) -> Traced:
        return self.apply("add", self, other)

    def __radd__(self, other: Any) -> Traced:
        return self.apply("add", other, self)

    def __sub__(self, other: Any) -> Traced:
        return self.apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Traced:
        return self.apply("subtract", other, self)

    def __mul__(self, other: Any) -> Traced:
        return self.apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Traced:
        return self.apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Traced:
        return self.apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Traced:
        return self.apply("divide", other, self)

    def __pow__(self, other: Any) -> Traced:
        return self.apply("power", self, other)

    def __matmul__(self, other: Any) -> Traced:
        return self.apply("matmul", self, other)

    def __neg__(self) -> Traced:
        return self.apply("negative", self)

    def __getitem__(self, index: Any) -> Traced:
        index = index if isinstance(index, tuple) else (index,)
        return self.apply("getitem", self, index=index)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.builder.types[self.variable].shape

    def sum(self, axis: tuple[int, ...] | None = None, keepdims: bool = False) -> Traced:
        return self.apply("sum", self, axis=tuple(range(len(self.shape))) if axis is None else axis, keepdims=keepdims)

    def call(self, name: str, *others: Any, **static: Any) -> Traced:
        return self.apply(name, self, *others, **static)


def tape_of(function: Callable[..., Any], *types: TensorType | tuple[int, ...] | str) -> Tape:
    """Record ``function``; a shape stands for a float64 array, ``"weak"`` for a Python float."""
    builder = TapeBuilder(function.__name__ if function.__name__ != "<lambda>" else "f")
    names = function.__code__.co_varnames
    arguments = []
    for number, type in enumerate(types):
        if type == "weak":
            type = TensorType(FLOAT, (), True)
        elif isinstance(type, tuple):
            type = TensorType(FLOAT, type)
        arguments.append(Traced(builder, builder.input(type, number, names[number])))
    results = function(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    return builder.finish([result.variable for result in results])


def evaluate(tape: Tape, *arguments: Any) -> list[Any]:
    """Run a tape with NumPy, op by op."""
    values = dict(tape.constants)
    for entry, argument in zip(tape.inputs, arguments, strict=True):
        values[entry.variable] = argument
    with np.errstate(all="ignore"):
        for op in tape.ops:
            found = op.primitive.function(*(values[operand] for operand in op.operands), **dict(op.static))
            type = tape.types[op.result]
            values[op.result] = type.dtype.type(found).item() if type.weak else found
    return [values[variable] for variable in tape.outputs]


def gradient(tape: Tape) -> Tape:
    """The tape with the adjoints of its inputs appended; for the scalar arithmetic of these tests."""
    builder = tape.builder()

    def emit(name: str, *operands: int, **static: Any) -> int:
        return builder.emit(primitive(name), operands, static)

    adjoints: dict[int, list[int]] = {tape.outputs[0]: [builder.constant(np.float64(1))]}
    reads: dict[int, list[tuple[int, Any]]] = {}
    constants = set(tape.constants)

    def give(variable: int, adjoint: int) -> None:
        if variable not in constants:
            adjoints.setdefault(variable, []).append(adjoint)

    def total(variable: int) -> int | None:
        parts = adjoints.pop(variable, [])
        if not parts:
            return None
        found = parts[0]
        for part in parts[1:]:
            found = emit("add", found, part)
        return found

    for op in reversed(tape.ops):
        adjoint = total(op.result)
        if adjoint is None:
            continue
        x, *rest = op.operands
        if op.name == "add":
            give(x, adjoint)
            give(rest[0], adjoint)
        elif op.name == "subtract":
            give(x, adjoint)
            if rest[0] not in constants:
                give(rest[0], emit("negative", adjoint))
        elif op.name == "negative":
            give(x, emit("negative", adjoint))
        elif op.name == "multiply":
            if x not in constants:
                give(x, emit("multiply", adjoint, rest[0]))
            if rest[0] not in constants:
                give(rest[0], emit("multiply", adjoint, x))
        elif op.name == "square":
            give(x, emit("multiply", adjoint, emit("multiply", builder.constant(2), x)))
        elif op.name == "divide":
            if x not in constants:
                give(x, emit("divide", adjoint, rest[0]))
            if rest[0] not in constants:
                share = emit("multiply", adjoint, emit("divide", op.result, rest[0]))
                give(rest[0], emit("negative", share))
        elif op.name == "power":
            exponent = tape.constants[rest[0]]
            lower = emit("power", x, builder.constant(exponent - 1))
            give(x, emit("multiply", adjoint, emit("multiply", builder.constant(exponent), lower)))
        elif op.name == "exp":
            give(x, emit("multiply", adjoint, op.result))
        elif op.name == "sin":
            give(x, emit("multiply", adjoint, emit("cos", x)))
        elif op.name == "cos":
            give(x, emit("negative", emit("multiply", adjoint, emit("sin", x))))
        elif op.name == "log":
            give(x, emit("divide", adjoint, x))
        elif op.name == "sqrt":
            give(x, emit("divide", adjoint, emit("multiply", builder.constant(2.0), op.result)))
        elif op.name == "getitem":
            reads.setdefault(x, []).append((adjoint, op.keyword("index")))
        else:
            raise NotImplementedError(op.name)
    outputs = [tape.outputs[0]]
    for entry in tape.inputs:
        if entry.variable in reads:
            pieces = reads[entry.variable]
            static = {"shape": tape.types[entry.variable].shape, "indices": tuple(index for _, index in pieces)}
            outputs.append(builder.emit(primitive("scatter"), [piece for piece, _ in pieces], static))
        else:
            found = total(entry.variable)
            outputs.append(builder.constant(np.float64(0)) if found is None else found)
    return builder.finish(outputs)


def eight(x: Any) -> Any:
    """The polynomial of eight variables."""
    return (
        x[2] * x[7] ** 3
        - 3 * x[2] * x[7] * x[5] ** 2
        - x[0] * x[5] ** 3
        + 3 * x[0] * x[5] * x[7] ** 2
        + x[3] * x[4] ** 3
        - 3 * x[3] * x[4] * x[6] ** 2
        - x[1] * x[6] ** 3
        + 3 * x[1] * x[6] * x[4] ** 2
        - 1.2342523
    )


def linear_power(x: Any) -> Any:
    """Powers of a linear form."""
    form = x[0] + 3 * x[1] + 2 * x[2] + 5 * x[3]
    return form**4 - form**2


def names(tape: Tape) -> list[str]:
    """The primitives on a tape, in order."""
    return [op.name for op in tape.ops]


def agree(found: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-12) -> None:
    """Assert that results agree, NaN with NaN."""
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=0)
