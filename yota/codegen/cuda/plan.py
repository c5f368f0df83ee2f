"""The plan of a generated CUDA file: pure data, all decisions taken, ready for a template to loop over."""

from __future__ import annotations

from dataclasses import dataclass

from yota.codegen.c.plan import Part

__all__ = ["FilePlan", "KernelPlan", "Launch", "Parameter", "Record"]


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

    Parameters
    ----------
    name
        Its name.
    remarks
        Comments ahead of it.
    records
        Structs that it needs.
    parameters
        What it takes.
    lines
        Its body.
    launch
        How it is launched.
    """

    name: str
    remarks: tuple[str, ...]
    records: tuple[Record, ...]
    parameters: tuple[Parameter, ...]
    lines: tuple[str, ...]
    launch: Launch


@dataclass(frozen=True, slots=True)
class FilePlan:
    """A CUDA file with kernels.

    Parameters
    ----------
    banner
        Lines of the comment at the top.
    preludes
        Templates of what the kernels rely on.
    parts
        Inline functions that the loops call.
    """

    banner: tuple[str, ...]
    preludes: tuple[str, ...]
    parts: tuple[Part, ...]
    kernels: tuple[KernelPlan, ...]
