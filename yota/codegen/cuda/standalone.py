"""A tape as launches of CUDA kernels that need no library: what a host function takes, allocates and launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.codegen import symbolic
from yota.codegen.c.groups import schedule
from yota.codegen.c.kernel import result_hint
from yota.codegen.c.lines import Needs
from yota.codegen.c.names import LocalNames
from yota.codegen.c.patterns import is_uniform
from yota.codegen.c.products import as_sums
from yota.codegen.c.tables import Tables
from yota.codegen.c.types import c_type
from yota.codegen.count import operations
from yota.codegen.cuda.halves import placed, widened
from yota.codegen.cuda.kernel import Step, plan_step
from yota.codegen.cuda.layout import Layout
from yota.codegen.cuda.plan import KernelPlan
from yota.codegen.cuda.shape import THREADS, separated
from yota.codegen.cuda.spelling import is_known_to_cuda
from yota.errors import CodegenError
from yota.ir.catalog import primitive
from yota.ir.location import where
from yota.ir.tape import Op, Tape
from yota.passes.dce import run as without_dead

__all__ = ["Body", "Buffer", "Call", "body_of"]

_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Buffer:
    """Device memory for what lies between kernels: its name, its type, and where it starts in the workspace."""

    name: str
    type: str
    start: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """One launch: the kernel, the launch, and for each argument its text and, for a number, its dtype."""

    kernel: KernelPlan
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Body:
    """What a host function does.

    Parameters
    ----------
    workspace
        Bytes of device memory that it needs besides its arguments.
    operations
        What it computes, counted.
    """

    calls: tuple[Call, ...]
    buffers: tuple[Buffer, ...]
    workspace: int
    operations: str


def body_of(
    tape: Tape,
    name: str,
    inputs: Sequence[str],
    results: Sequence[str],
    tables: Tables,
    needs: Needs,
    totals: set[str],
    *,
    sizes: Sequence[str] | None = None,
) -> Body:
    """The body of the host function ``name`` that computes a tape's outputs.

    Parameters
    ----------
    inputs, results
        Names of its parameters: arrays and results are pointers to device memory, numbers are values.
    tables, needs, totals
        Take in what the kernels rely on.
    sizes
        Names of sizes, where extents may be others when the kernels run.

    Raises
    ------
    CodegenError
        If something on the tape needs a library, or a decision; the message has the user's line.
    """
    wide = widened(tape)
    tape = _with_own_outputs(without_dead(as_sums(symbolic.optimise(wide.tape))))
    tape, stored = placed(tape, wide.inputs, wide.outputs)
    if tape.guards:
        raise CodegenError(
            f"{where(tape.guards[0].location)}the function branches on its arguments' values, and kernels are launched "
            "before anybody has looked at them; use np.where"
        )
    return _Host(tape, stored, name, inputs, results, tables, needs, totals, sizes).body()


def _with_own_outputs(tape: Tape) -> Tape:
    """Each output computed by an op of its own."""
    builder = tape.builder()
    counts = Counter(tape.outputs)
    made = tape.definitions()
    outputs = [
        each if each in made and counts[each] == 1 else builder.emit(primitive("positive"), (each,))
        for each in tape.outputs
    ]
    return builder.finish(outputs)


class _Host:
    def __init__(
        self,
        tape: Tape,
        stored: Mapping[int, np.dtype[Any]],
        name: str,
        inputs: Sequence[str],
        results: Sequence[str],
        tables: Tables,
        needs: Needs,
        totals: set[str],
        sizes: Sequence[str] | None,
    ) -> None:
        self.tape, self.name, self.needs, self.totals, self.sizes = tape, name, needs, totals, sizes
        self.names = LocalNames(name, [*inputs, *results, *(sizes or ()), "stream", "workspace", "room"])
        self.texts = {entry.variable: text for entry, text in zip(tape.inputs, inputs, strict=True)}
        self.texts.update(zip(tape.outputs, results, strict=True))
        known = {v: tables.name(tape.names.get(v, name), value) for v, value in self._arrays()}
        values = {entry.variable for entry in tape.inputs if not tape.types[entry.variable].shape} | set(tape.constants)
        pointers = frozenset(v for v, type in tape.types.items() if not type.shape and v not in values)
        self.layout = Layout(pointers, {}, known, stored)
        self.values = values
        self.buffers: list[Buffer] = []
        self.size = 0

    def _arrays(self) -> list[tuple[int, Any]]:
        used = {operand for op in self.tape.ops for operand in op.operands}
        found = ((v, value) for v, value in self.tape.constants.items() if v in used and self.tape.types[v].shape)
        return [(variable, value) for variable, value in found if not is_uniform(value)]

    def body(self) -> Body:
        plan = schedule(self.tape, known=is_known_to_cuda, looks=False)
        definitions = self.tape.definitions()
        calls: list[Call] = []
        number = 0
        for each in plan.steps:
            if isinstance(each, Op):
                raise _beyond(self.tape, each)
            for group in separated(each):
                step = plan_step(
                    self.tape, definitions, plan.leaves, group, f"{self.name}_kernel{number}", self.needs, self.totals,
                    self.layout, THREADS, open=self.sizes is not None, reserved=self.sizes or (),
                )  # fmt: skip
                calls += self._calls(step)
                number += 1
        works = ", ".join(f"{count} {name}" for name, count in operations(self.tape).items())
        return Body(tuple(calls), tuple(self.buffers), self.size, works)

    def _calls(self, step: Step) -> list[Call]:
        for variable in step.outputs:
            if variable not in self.texts:
                type = self.tape.types[variable]
                name = self.names.fresh(result_hint(self.tape, variable))
                self.texts[variable] = self._buffer(name, c_type(type.dtype), type.size * type.dtype.itemsize)
        parts = [
            self._buffer(self.names.fresh(pointer), record.name, size)
            for (pointer, size), record in zip(step.parts, step.kernels[0].records, strict=True)
        ]
        given = [self._argument(variable) for variable in step.inputs]
        early = [(self.texts[v], "") for v in step.outputs if v not in step.finished]
        pointers = [(part, "") for part in parts]
        calls = [Call(step.kernels[0], (*given, *pointers, *early))]
        if len(step.kernels) > 1:
            calls.append(Call(step.kernels[1], (*pointers, *((self.texts[v], "") for v in step.finished))))
        return calls

    def _argument(self, variable: int) -> tuple[str, str]:
        by_value = variable in self.values and not self.tape.types[variable].shape
        type = self.layout.type(variable, self.tape.types)
        return self.texts[variable], type.dtype.name if by_value else ""

    def _buffer(self, name: str, kind: str, size: int) -> str:
        self.buffers.append(Buffer(name, kind, self.size, size))
        self.size += -(-size // _ALIGNMENT) * _ALIGNMENT
        return name


def _beyond(tape: Tape, op: Op) -> CodegenError:
    place = where(op.location)
    name = op.primitive.target or op.name
    if not all(tape.types[variable].size for variable in (*op.operands, op.result)):
        return CodegenError(
            f"{place}{name} is of an array without elements, for which there is nothing to launch; name sizes above 0"
        )
    return CodegenError(
        f"{place}{name} is beyond kernels that need no library; generate the rest without it, or use yota.grad with "
        "arrays of CuPy's"
    )
