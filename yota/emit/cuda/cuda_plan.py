"""The plan of a generated CUDA file, ready for a template, and the kernels of one fusion group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from yota.emit.c.c_plan import Part, Tables, parts
from yota.emit.c.dialect import CUDA, STORED, c_type
from yota.emit.c.kernels import remarks
from yota.emit.c.lines import Needs, block
from yota.emit.cuda.cuda_body import CudaBody, Total
from yota.emit.cuda.thread_memory import Layout
from yota.emit.render import render_lines
from yota.ir.tape import Tape
from yota.schedule.nests.groups import Group, Schedule


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel: its declaration without the name, its name, and what it is for a reader."""

    type: str
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Record:
    """The parts of totals that a block leaves: a struct's name, its members, and its size in bytes."""

    name: str
    members: tuple[tuple[str, str], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Launch:
    """How many blocks of how many threads."""

    blocks: int
    threads: int


@dataclass(frozen=True, slots=True)
class KernelPlan:
    """One kernel."""

    name: str
    remarks: tuple[str, ...]
    records: tuple[Record, ...]
    parameters: tuple[Parameter, ...]
    lines: tuple[str, ...]
    launch: Launch


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
class Sort:
    """Keys that are sorted between launches: their name, and how many there are."""

    keys: str
    count: int


@dataclass(frozen=True, slots=True)
class HostBody:
    """What a host function does.

    workspace: bytes of device memory that it needs besides its arguments.
    looks: whether it looks at indices.
    """

    calls: tuple[Call | Sort, ...]
    buffers: tuple[Buffer, ...]
    workspace: int
    operations: str
    looks: bool = False


def preludes(needs: Needs) -> tuple[str, ...]:
    """Templates for numbers and totals."""
    found, used = ["numbers"], needs.device
    if needs.complex:
        found.append("complex")
    if "sum" in used:
        found += ["sum", "complex_sum"] if needs.complex else ["sum"]
    if "total" in used:
        found.append("total")
    if {"sum", "total"} & used:
        found.append("joined")
    if "places" in used and needs.complex:
        found.append("complex_unless")
    found += [name for name in ("float16", "bfloat16", "warp", "pack", "rows", "places", "sort") if name in used]
    return tuple(f"cuda/{name}.cu.jinja" for name in found)


def on_device(tables: Tables) -> list[str]:
    """Lines of the tables of a file."""
    return [re.sub("^static const", "static __device__ const", line) for line in tables.lines]


def inline_parts(needs: Needs) -> tuple[Part, ...]:
    """The inline functions that the kernels call."""
    return parts(needs, "static __device__ __forceinline__", vectors=False)


FAULT = Parameter("int *__restrict__ ", "fault", "set where a place lies outside of its axis")
"""What a kernel tells that by; it comes last."""
_FINISHING = 256
"""Threads of a block that finishes totals."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a group became.

    inputs, outputs: variables that the first kernel takes and that its kernels give.
    kernels: one kernel, or two if blocks leave parts of totals.
    parts: memory of the first kernel besides, by name, type and bytes: parts of totals, one record for each block, and
        one for each total over some of the loops; what a loop works in.
    finished: outputs that the second kernel writes.
    dense: whether arrays must be in C order.
    checked: index arrays of which the first kernel tells places outside of an axis, with its extent.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    kernels: tuple[KernelPlan, ...]
    parts: tuple[tuple[str, str, int], ...] = ()
    finished: tuple[int, ...] = ()
    checked: tuple[tuple[int, int], ...] = ()
    dense: bool = False


def plan_step(
    plan: Schedule,
    group: Group,
    name: str,
    needs: Needs,
    layout: Layout,
    threads: int,
    *,
    open: bool = False,
    reserved: Iterable[str] = (),
) -> Step:
    """The kernels that compute ``group``; if ``open``, extents may be others when they run."""
    tape = plan.tape
    names = CUDA.names(name, reserved)
    text = CudaBody(plan, group, names, needs, layout=layout, threads=threads, open=open)
    text.run()
    found, results = text.arrays, text.results
    totals = text.totals.values()
    needs.device.update("sum" if total.type.startswith("Sum") else "total" for total in totals)
    needs.device.update(words_of(text.lines))
    stored = [layout.type(variable, tape.types) for variable in (*text.reads, *results)]
    needs.device.update(type.dtype.name for type in stored if type.dtype.name in STORED)
    if any(tape.types[v].is_complex for v in (*text.reads, *results)):
        needs.complex = True
    inputs = tuple(sorted(v for v in text.reads if v not in layout.tables))
    blocks = text.shape.blocks if text.shape else 1
    records = _records(name, text)
    later = {total.sink.root.variable for total in totals if _is_later(total, text)}
    parameters = [
        *(read(tape, layout, v, found[v]) for v in inputs),
        *(Parameter(f"{record.name} *__restrict__ ", pointer, "") for pointer, record, _ in records),
        *(written(tape, layout, v, each) for v, each in results.items() if v not in later),
    ]
    checked = tuple(text.places.items())
    if checked:
        needs.device.add("places")
        parameters.append(FAULT)
    launch = Launch(blocks, text.shape.threads if text.shape else 1)
    kept = tuple(record for _, record, _ in records)
    first = KernelPlan(name, remarks(plan, group, needs.language), kept, tuple(parameters), tuple(text.lines), launch)
    outputs = tuple(results)
    if not later:
        return Step(inputs, outputs, (first,), checked=checked)
    last = _finish(tape, layout, text, records, {v: each for v, each in results.items() if v in later})
    sizes = tuple((pointer, record.name, record.size * count) for pointer, record, count in records)
    return Step(inputs, outputs, (first, last), sizes, tuple(v for v in results if v in later), checked)


_WORDS = {"warp": "joined_in_warp(", "pack": "Pack<", "rows": "_rows[", "float16": "float16"}
"""What a kernel relies on, by words that it has then."""


def words_of(lines: Iterable[str]) -> set[str]:
    """What the statements of a kernel rely on."""
    return {part for line in lines for part, word in _WORDS.items() if word in line}


def read(tape: Tape, layout: Layout, variable: int, name: str) -> Parameter:
    """The parameter of a kernel for what it reads."""
    type = layout.type(variable, tape.types)
    pointed = type.shape or variable in layout.pointers
    kind = c_type(type.dtype)
    return Parameter(f"const {kind} *__restrict__ " if pointed else f"const {kind} ", name, str(type))


def written(tape: Tape, layout: Layout, variable: int, name: str) -> Parameter:
    """The parameter of a kernel for what it writes."""
    type = layout.type(variable, tape.types)
    return Parameter(f"{c_type(type.dtype)} *__restrict__ ", name, str(type))


def _is_later(total: Total, text: CudaBody) -> bool:
    """Whether blocks leave parts of a total."""
    assert text.shape is not None
    return text.shape.blocks > 1 if total.full else text.shape.splits > 1


def _records(name: str, text: CudaBody) -> list[tuple[str, Record, int]]:
    """For the parts of blocks and of rows: the parameter, the struct, and how many there are."""
    found = []
    shape = text.shape
    for pointer, full in (("parts", True), ("rows", False)):
        members = [total for total in text.totals.values() if total.full == full and _is_later(total, text)]
        if members and shape is not None:
            record = Record(f"{name}_{pointer}", tuple((each.type, each.name) for each in members), _size(members))
            found.append((pointer, record, shape.blocks if full else shape.splits * shape.points[0]))
    return found


def _size(members: Iterable[Total]) -> int:
    """Bytes of a struct: all members are made of numbers of 4 or of 8 bytes."""
    total, widest = 0, 4
    for each in members:
        dtype = each.sink.dtype
        number = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        total = -(-total // number) * number + dtype.itemsize * (2 if each.type.startswith("Sum") else 1)
        widest = max(widest, number)
    return -(-total // widest) * widest


def _finish(
    tape: Tape, layout: Layout, text: CudaBody, records: list[tuple[str, Record, int]], results: Mapping[int, str]
) -> KernelPlan:
    lines: list[str] = []
    blocks = 1
    assert text.shape is not None
    for pointer, _, count in records:
        own = [each for each in text.totals.values() if each.full == (pointer == "parts") and _is_later(each, text)]
        if pointer == "parts":
            made = render_lines("cuda/finish_parts.cu.jinja", totals=own, count=count, threads=_FINISHING)
            lines += made if len(records) == 1 else block("if (blockIdx.x == 0)", made)
        else:
            # Rows that a block finishes: a power of two, up to as many as a warp reads together.
            across = min(32, 1 << (text.shape.points[0] - 1).bit_length())
            blocks = -(-text.shape.points[0] // across)
            known = {"shape": text.shape, "counters": text.counters_of, "across": across, "threads": _FINISHING}
            lines += render_lines("cuda/finish_rows.cu.jinja", totals=own, **known)
    parameters = [
        *(Parameter(f"const {record.name} *__restrict__ ", pointer, "") for pointer, record, _ in records),
        *(written(tape, layout, v, name) for v, name in results.items()),
    ]
    name = f"{records[0][1].name.rpartition('_')[0]}_finish"
    return KernelPlan(name, (), (), tuple(parameters), tuple(lines), Launch(blocks, _FINISHING))
