"""Kernels of one loop that all threads share out, one element after another."""

from __future__ import annotations

from collections.abc import Sequence

from yota.codegen.c.lines import block
from yota.codegen.cuda.plan import KernelPlan, Launch, Parameter
from yota.codegen.cuda.shape import OPEN_BLOCKS

__all__ = ["flat_kernel", "over"]


def over(end: int | str, threads: int, lines: Sequence[str]) -> list[str]:
    """The loop over elements ``at`` up to ``end``, with ``lines`` in it."""
    start = f"(int64_t)blockIdx.x * {threads} + (int)threadIdx.x"
    return block(f"for (int64_t at = {start}; at < {end!s}; at += (int64_t)gridDim.x * {threads})", lines)


def flat_kernel(
    name: str, parameters: Sequence[Parameter], lines: Sequence[str], points: int, threads: int, *, open: bool
) -> KernelPlan:
    """The kernel ``name``; if it is ``open``, loops may have more or fewer than ``points``."""
    blocks = OPEN_BLOCKS if open else max(1, min(1 << 16, -(-points // threads)))
    return KernelPlan(name, (), (), tuple(parameters), tuple(lines), Launch(blocks, threads))
