"""A tape as launches of CUDA kernels that need no library: what a host function takes, allocates and launches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from yota.emit.c.c_plan import Tables
from yota.emit.c.dialect import CUDA, C, c_type, is_known_op
from yota.emit.c.frame import result_hint
from yota.emit.c.lines import Needs
from yota.emit.cuda.cuda_plan import Buffer, Call, HostBody, Sort, Step, plan_step, words_of
from yota.emit.cuda.halves import placed, widened
from yota.emit.cuda.loop_kernels import plan_thread, with_threads
from yota.emit.cuda.scatter import (
    Place,
    find_starts,
    is_addition,
    join_places,
    leading,
    plan_addition,
    readable,
    sorted_places,
)
from yota.emit.cuda.thread_memory import Layout
from yota.emit.cuda.threads import THREADS, separated
from yota.emit.python.accesses import check_steps
from yota.errors import CodegenError
from yota.ir.location import where
from yota.ir.printing import operations
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import is_uniform
from yota.ir.verify import is_on
from yota.optimize.dce import run as without_dead
from yota.optimize.polynomials import symbolic
from yota.optimize.rewrite import with_own_outputs
from yota.schedule.nests.contractions import as_counts, as_sums
from yota.schedule.nests.groups import schedule
from yota.schedule.nests.index_patterns import from_sizes, normalised, with_places

_ALIGNMENT = 256
_TAKEN = ("at", "keys", "order", "row", "starts")


def _launchable(tape: Tape) -> tuple[Tape, Mapping[int, np.dtype[Any]]]:
    """A tape of which kernels can compute all, and what is stored in another dtype."""
    wide = widened(tape)
    tape = leading(normalised(as_counts(as_sums(symbolic.optimise(wide.tape)))))
    # What is made from sizes is inside wherever sizes will do.
    tape = without_dead(with_places(tape, readable(tape) | from_sizes(tape), checked=False))
    # Half precision is not written by additions.
    tape = with_own_outputs(tape, is_addition if any(wide.outputs) else None)
    tape, stored = placed(tape, wide.inputs, wide.outputs)
    if tape.guards:
        raise CodegenError(
            f"{where(tape.guards[0].location)}the function branches on its arguments' values, and kernels are launched "
            "before anybody has looked at them; use np.where"
        )
    return tape, stored


class Host:
    """The host function ``name`` that computes a tape's outputs.

    inputs, results: names of its parameters: arrays and results are pointers to device memory, numbers are values.
    tables, needs: take in what the kernels rely on.
    sizes: names of sizes, where extents may be others when the kernels run.
    """

    def __init__(
        self,
        tape: Tape,
        name: str,
        inputs: Sequence[str],
        results: Sequence[str],
        tables: Tables,
        needs: Needs,
        *,
        sizes: Sequence[str] | None = None,
    ) -> None:
        tape, stored = _launchable(tape)
        self.tape, self.name, self.needs, self.tables = tape, name, needs, tables
        self.open, self.sizes = sizes is not None, sizes or ()
        self.names = C.names(name, [*inputs, *results, *self.sizes, "stream", "workspace", "room", "fault"])
        self.texts = {entry.variable: text for entry, text in zip(tape.inputs, inputs, strict=True)}
        self.made = frozenset(from_sizes(tape))
        self.texts.update(zip(tape.outputs, results, strict=True))
        known = {v: tables.name(tape.names.get(v, name), value) for v, value in self._arrays()}
        self.values = {each.variable for each in tape.inputs if not tape.types[each.variable].shape}
        self.values.update(tape.constants)
        pointers = frozenset(v for v, type in tape.types.items() if not type.shape and v not in self.values)
        self.layout = Layout(pointers, {}, known, stored, self.made)
        self.buffers: list[Buffer] = []
        self.size = 0
        self.looks = False
        self.added = 0

    def _arrays(self) -> list[tuple[int, Any]]:
        added = {id(op) for op in self.tape.ops if self._is_known(op)}
        used = {operand for op in self.tape.ops for operand in (op.operands[:1] if id(op) in added else op.operands)}
        found = ((v, value) for v, value in self.tape.constants.items() if v in used and self.tape.types[v].shape)
        return [(variable, value) for variable, value in found if not is_uniform(value)]

    def body(self) -> HostBody:
        """The launches."""
        tape = self.tape
        results = {op.result for op in tape.ops}
        reads = (op for op in tape.ops if op.access == AccessMap.READ)
        places = readable(tape) | {each for op in reads for each in op.operands[1:] if each in results}
        plan = schedule(
            self.tape, known=partial(is_known_op, language=CUDA), looks=False, gathers=(AccessMap.READ,), places=places
        )
        calls: list[Call | Sort] = []
        done: list[Op | Step] = []
        number = 0
        for each in with_threads(plan):
            if isinstance(each, tuple):
                name = f"{self.name}_kernel{number}"
                step = plan_thread(self.tape, each, name, self.needs, self.tables, self.layout, self.sizes)
                calls += self._calls(step)
                done.append(step)
                number += 1
                continue
            if isinstance(each, Op) and is_addition(each):
                done.append(each)
                calls += self._added(each, f"{self.name}_add{self.added}")
                continue
            if isinstance(each, Op):
                raise _beyond(self.tape, each)
            for group in separated(each):
                step = plan_step(
                    plan, group, f"{self.name}_kernel{number}", self.needs, self.layout, THREADS,
                    open=self.open, reserved=self.sizes,
                )  # fmt: skip
                calls += self._calls(step)
                done.append(step)
                number += 1
        if is_on():
            check_steps(self.tape, done)
        works = ", ".join(f"{count} {name}" for name, count in operations(self.tape).items())
        return HostBody(tuple(calls), tuple(self.buffers), self.size, works, self.looks)

    def _kept(self, variable: int) -> str:
        """The name of a variable, which has memory."""
        if variable not in self.texts:
            type = self.tape.types[variable]
            name = self.names.fresh(result_hint(self.tape, variable))
            self.texts[variable] = self._buffer(name, c_type(type.dtype), type.nbytes)
        return self.texts[variable]

    def _is_known(self, op: Op) -> bool:
        """Whether it is known where an op adds."""
        return is_addition(op) and all(each in self.tape.constants for each in op.operands[1:])

    def _added(self, op: Op, name: str) -> list[Call | Sort]:
        """Additions by index arrays: pieces are sorted by their places, and each place has a thread."""
        self._kept(op.result)
        piece, *arrays = op.operands
        types = [self.tape.types[each] for each in arrays]
        shape, count = op.keyword("shape"), types[0].size
        rows = math.prod(shape[: len(arrays)])
        self.added += 1
        self.needs.device.add("sum")
        if self.tape.types[op.result].is_complex:
            self.needs.complex = True
        calls: list[Call | Sort] = []
        tables, sorted_ = ("", ""), []
        if self._is_known(op):
            order, starts = sorted_places([self.tape.constants[each] for each in arrays], shape[: len(arrays)])
            tables = self._table("order", order), self._table("starts", starts)
        else:
            names = CUDA.names(name, (*self.sizes, *_TAKEN))
            places = [
                Place(names.fresh(self.texts.get(each, "index")), type.dtype, extent, each in self.made)
                for each, type, extent in zip(arrays, types, shape, strict=False)
            ]
            sizes = (("keys", "uint64_t", count), ("order", "int64_t", count), ("starts", "int64_t", rows + 1))
            keys, order, starts = (self._buffer(self.names.fresh(hint), kind, 8 * size) for hint, kind, size in sizes)
            given = [(self.texts[each], "") for each in arrays]
            joining = join_places(f"{name}_places", places, count, THREADS, open=self.open)
            starting = find_starts(f"{name}_starts", rows, count, THREADS, open=self.open)
            looks = not all(each.inside for each in places)
            calls.append(Call(joining, (*given, (keys, ""), *([("fault", "")] if looks else []))))
            calls.append(Sort(keys, count))
            sorted_ = [(order, ""), (starts, "")]
            calls.append(Call(starting, ((keys, ""), *sorted_)))
            self.needs.device |= {"places", "sort"} if looks else {"sort"}
            self.looks |= looks
        adding = plan_addition(f"{name}_rows", self.tape, op, THREADS, tables=tables, open=self.open)
        self.needs.device |= words_of(adding.lines)
        calls.append(Call(adding, ((self.texts[piece], ""), *sorted_, (self.texts[op.result], ""))))
        return calls

    def _table(self, hint: str, value: Any) -> str:
        return self.tables.name(hint, value.astype(np.int32))

    def _calls(self, step: Step) -> list[Call]:
        for variable in step.outputs:
            self._kept(variable)
        self.looks |= bool(step.checked)
        parts = [self._buffer(self.names.fresh(pointer), kind, size) for pointer, kind, size in step.parts]
        given = [self._argument(variable) for variable in step.inputs]
        early = [(self.texts[v], "") for v in step.outputs if v not in step.finished]
        pointers = [(part, "") for part in parts]
        fault = [("fault", "")] if step.checked else []
        calls = [Call(step.kernels[0], (*given, *pointers, *early, *fault))]
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
