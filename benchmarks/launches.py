"""What a call on the GPU costs beside its kernels: ``python -m benchmarks.launches``.

The gradient of a function of few numbers: as a call, as a captured graph that is launched again, and the bare launch of
as many kernels, each with and without waiting for the GPU.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from benchmarks.runner import Settings
from benchmarks.timing import Call, interleave

__all__ = ["measure_launches"]

COUNT = 1000
_EMPTY = """
extern "C" __global__ void __launch_bounds__(32)
empty(double *x)
{
    if (x == nullptr)
        *x = 0;
}
"""


def chain(x: Any) -> Any:
    return np.sum(np.exp(-x * x) * np.sin(x))


def measure_launches(settings: Settings) -> dict[str, float]:
    """Median seconds of each way."""
    import yota
    from yota.run.machine import cupy as cuda

    library = cuda.cupy()
    x = yota.to_cuda(np.linspace(0.0, 1.0, COUNT))
    call = yota.value_and_grad(chain)
    _, g = yota.grad(chain, x)
    again = g.capture()
    empty = library.RawModule(code=_EMPTY, options=("--std=c++17",)).get_function("empty")
    # As many kernels as the gradient has.
    kernels = g.source.count("__global__")
    wait = library.cuda.get_current_stream().synchronize

    def bare() -> None:
        for _ in range(kernels):
            empty((1,), (32,), (x,))

    calls = {"call": lambda: call(x), "graph": again, "kernels": bare}
    both = dict(calls)
    for name, function in calls.items():
        both[f"{name}, waited for"] = lambda function=function: (function(), wait())
    timings = interleave({name: Call(function, ()) for name, function in both.items()}, settings.repeats, 0.005)
    wait()
    return {name: timing.median for name, timing in timings.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print what was measured."""
    from benchmarks.peers.yota import gpu_obstacle
    from benchmarks.report import duration

    parser = argparse.ArgumentParser(prog="python -m benchmarks.launches", description=__doc__)
    parser.add_argument("--repeats", type=int, default=15, help="rounds (default: 15)")
    options = parser.parse_args(arguments)
    obstacle = gpu_obstacle()
    if obstacle is not None:
        print(f"no GPU: {obstacle}", file=sys.stderr)
        return 1
    for name, seconds in measure_launches(Settings(repeats=options.repeats)).items():
        print(f"{name:20} {duration(seconds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
