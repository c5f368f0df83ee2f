"""What a host function of a CUDA file does: launches, sorts between them, and parts of the workspace."""

from __future__ import annotations

from dataclasses import dataclass

from yota.codegen.cuda.plan import KernelPlan

__all__ = ["Body", "Buffer", "Call", "Sort"]


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
class Body:
    """What a host function does.

    Parameters
    ----------
    workspace
        Bytes of device memory that it needs besides its arguments.
    operations
        What it computes, counted.
    looks
        Whether it looks at indices.
    """

    calls: tuple[Call | Sort, ...]
    buffers: tuple[Buffer, ...]
    workspace: int
    operations: str
    looks: bool = False
