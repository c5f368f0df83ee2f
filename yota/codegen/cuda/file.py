"""What the kernels of a CUDA file rely on: the templates ahead of them, each after what it needs itself."""

from __future__ import annotations

from collections.abc import Collection

from yota.codegen.c.lines import Needs
from yota.codegen.c.parts import parts
from yota.codegen.c.plan import Part

__all__ = ["inline_parts", "preludes"]


def preludes(needs: Needs, totals: Collection[str]) -> tuple[str, ...]:
    """Templates for numbers and totals."""
    found = ["numbers"]
    if needs.complex:
        found.append("complex")
    if "sum" in totals:
        found += ["sum", "complex_sum"] if needs.complex else ["sum"]
    if "total" in totals:
        found.append("total")
    if {"sum", "total"} & set(totals):
        found.append("joined")
    if "places" in totals and needs.complex:
        found.append("complex_unless")
    found += [name for name in ("float16", "bfloat16", "warp", "pack", "rows", "places", "sort") if name in totals]
    return tuple(f"cuda/{name}.cu.jinja" for name in found)


def inline_parts(needs: Needs) -> tuple[Part, ...]:
    """The inline functions that the kernels call."""
    return parts(needs, "static __device__ __forceinline__", vectors=False)
