"""What a GPU must do at the least for each workload: ``python -m benchmarks.roofline``.

Bytes that kernels read and write, operations, registers (from NVRTC, where it is installed), and the time that memory
or arithmetic takes on some GPUs: no measurement, a bound.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks import nvrtc
from benchmarks.workload import Workload
from benchmarks.workloads.gpu import GPU_WORKLOADS
from benchmarks.workloads.sized import Sized

__all__ = ["Estimate", "Machine", "estimate"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A GPU by its data sheet: bytes and operations a second, in double and single precision."""

    name: str
    bandwidth: float
    double: float
    single: float


# NVIDIA's data sheets of the V100 SXM2, A100 SXM 80 GB, H100 SXM and H200 SXM; without tensor cores.
MACHINES = (
    Machine("V100", 0.9e12, 7.8e12, 15.7e12),
    Machine("A100", 2.04e12, 9.7e12, 19.5e12),
    Machine("H100", 3.35e12, 34e12, 67e12),
    Machine("H200", 4.8e12, 34e12, 67e12),
)
LAUNCH = 3e-6
"""Seconds that a launch takes about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a workload takes.

    Parameters
    ----------
    kernels, calls, bytes, operations
        Launches, calls of libraries, memory traffic and arithmetic of one call.
    registers, spilled
        Largest number of registers and of spilled bytes of any kernel; None where NVRTC is not installed.
    single
        Whether it is in single precision.
    """

    kernels: int
    calls: int
    bytes: int
    operations: int
    registers: int | None
    spilled: int | None
    single: bool

    def seconds(self, machine: Machine) -> float:
        """The least time that the machine needs."""
        peak = machine.single if self.single else machine.double
        return max(self.bytes / machine.bandwidth, self.operations / peak) + (self.kernels + self.calls) * LAUNCH


_PRODUCTS = ("matmul", "einsum")
"""What libraries do; additions at places are sorted first, by one too."""
_SHAPED = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")


def traffic(what: str) -> int:
    """Bytes of a kernel's parameter, by what it says of itself."""
    match = _SHAPED.fullmatch(what)
    if match is None:
        return 0
    return math.prod(map(int, filter(None, match[2].split(",")))) * np.dtype(match[1]).itemsize


def estimate(workload: Workload, points: int | None = None) -> Estimate:
    """What the generated kernels of a workload, and the library calls between them, take at so many points.

    Code for few points is looked at, and for twice as many: each further point takes the same.
    """
    sized = workload.arguments
    assert isinstance(sized, Sized)
    few = sized.steady or sized.quick
    one, two = (_of(workload, sized.make(count)) for count in (few, 2 * few))
    beyond = ((sized.count if points is None else points) - few) / few
    return replace(
        two,
        bytes=round(one.bytes + beyond * (two.bytes - one.bytes)),
        operations=round(one.operations + beyond * (two.operations - one.operations)),
    )


def _of(workload: Workload, arguments: tuple[Any, ...]) -> Estimate:
    from yota.emit.targets import cuda
    from yota.ir.printing import elements
    from yota.optimize.pipeline import run
    from yota.rules.registry import registry
    from yota.run.arguments import sort_arguments
    from yota.schedule.nests.index_patterns import index_arrays
    from yota.tracing.record import record
    from yota.transform.reverse.backward import gradient_tape

    function: Callable[..., Any] = workload.write(np)
    given = sort_arguments(function, arguments)
    tape = record(function, given.leaves, given.rebuild, registry=registry()).tape
    wanted = [
        entry.variable
        for entry in tape.inputs
        if entry.argument in workload.positions and tape.types[entry.variable].differentiable
    ]
    found = run(gradient_tape(tape, wanted, registry()).tape)
    source = cuda.generate(found)
    moved = sum(traffic(parameter.what) for kernel in source.kernels for parameter in kernel.parameters)
    calls = [op for op in found.ops if op.name in _PRODUCTS or (op.name == "scatter" and index_arrays(found, op))]
    for op in calls:
        types = [found.types[variable] for variable in (*op.operands, op.result)]
        moved += sum(type.size * type.dtype.itemsize for type in types)
    products = sum(elements(replace(found, ops=(op,))) for op in calls if op.name in _PRODUCTS)
    used = nvrtc.resources(source.code, "sm_90").values() if nvrtc.is_installed() and source.code else []
    return Estimate(
        kernels=len(source.kernels),
        calls=len(calls),
        bytes=moved,
        # A product of matrices takes an addition with each multiplication.
        operations=elements(found) + products,
        registers=max((each.registers for each in used), default=None),
        spilled=max((each.spilled for each in used), default=None),
        single=any(type.dtype == np.float32 for type in found.types.values()),
    )


def row(words: Iterable[Any]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(map(str, words))} |"


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.roofline", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads; all of the GPU's without any")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(GPU_WORKLOADS))
    if unknown:
        print(f"no workload {', '.join(unknown)}; there are: {', '.join(GPU_WORKLOADS)}", file=sys.stderr)
        return 2
    machines = [f"{each.name} ms" for each in MACHINES]
    heads = ["workload", "kernels", "calls", "MB", "Mops", "registers", "spilled bytes", *machines]
    print(row(heads), row(["---"] * len(heads)), sep="\n")
    for name in options.names or GPU_WORKLOADS:
        found = estimate(GPU_WORKLOADS[name])
        words: list[Any] = [name, found.kernels, found.calls]
        words += [f"{each / 1e6:.1f}" for each in (found.bytes, found.operations)]
        words += ["?" if each is None else each for each in (found.registers, found.spilled)]
        print(row([*words, *(f"{found.seconds(machine) * 1e3:.3f}" for machine in MACHINES)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
