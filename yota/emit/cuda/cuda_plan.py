"""The plan of a generated CUDA file: pure data, all decisions taken, ready for a template to loop over."""

from __future__ import annotations

from dataclasses import dataclass

from yota.emit.c.c_plan import Part
from yota.emit.c.lines import Needs
from yota.emit.c.parts import parts


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
    """One kernel.

    remarks: comments ahead of it.
    records: structs that it needs.
    parameters: what it takes.
    lines: its body.
    launch: how it is launched.
    """

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
    operations: what it computes, counted.
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


def inline_parts(needs: Needs) -> tuple[Part, ...]:
    """The inline functions that the kernels call."""
    return parts(needs, "static __device__ __forceinline__", vectors=False)
