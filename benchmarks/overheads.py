"""What is not arithmetic: a call's own cost, growth of compile time with the tape, imports, and cold starts."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.loading import text
from benchmarks.peers import Peer
from benchmarks.runner import Settings
from benchmarks.timing import Call, interleave, seconds
from benchmarks.workloads import WORKLOADS

__all__ = ["measure_overheads"]

ROOT = Path(__file__).resolve().parent.parent
LENGTHS = (1_000, 10_000)
COLD_WORKLOADS = ("polynomial", "rosenbrock")


def measure_overheads(peers: list[Peer], settings: Settings) -> dict[str, Any]:
    """All of them."""
    return {
        "call": call_overhead(settings),
        "growth": growth_with_length(settings),
        "imports": import_times(settings),
        "rules": rule_loading(settings),
        "cold": cold_starts(peers, settings),
    }


def call_overhead(settings: Settings) -> dict[str, float]:
    """A cached call through the public door, beside the generated function that it ends in."""
    import yota
    from yota.run.specialise import Target, compile_tape, simplified

    function = WORKLOADS["polynomial"].write(np)
    (x,) = WORKLOADS["polynomial"].arguments(False)
    _, g = yota.grad(function, x)
    generated_function, _ = compile_tape(simplified(g.tape, Target()), Target())
    calls = {
        "cached": Call(yota.value_and_grad(function), (x,)),
        "generated": Call(generated_function, (x,)),
    }
    timings = interleave(calls, settings.repeats, settings.shortest)
    cached, generated = timings["cached"].median, timings["generated"].median
    return {"cached": cached, "generated": generated, "overhead": cached - generated}


def growth_with_length(settings: Settings) -> dict[str, Any]:
    """Time to the first gradient of straight-line scalar code of two lengths, each function seen for the first time."""
    import yota

    x = np.linspace(0.5, 1.5, 8)

    def first(length: int) -> float:
        function = straight_line(length)
        return seconds(lambda: yota.value_and_grad(function)(x))

    first(10)
    medians = {length: statistics.median(first(length) for _ in range(settings.fresh)) for length in LENGTHS}
    short, long = LENGTHS
    return {"seconds": {str(length): medians[length] for length in LENGTHS}, "ratio": medians[long] / medians[short]}


def straight_line(length: int) -> Callable[[Any], Any]:
    """A function of ``length`` scalar operations, none of which repeats another."""

    def chain(x: Any) -> Any:
        y = x[0]
        for step in range(length // 4):
            y = np.sin(y) * x[step % 8] + x[(3 * step + 1) % 8] * (1.0 + step / length)
        return y

    return chain


def import_times(settings: Settings) -> dict[str, float]:
    """Seconds of importing NumPy, yota, and yota's `grad`, each in a new process.

    yota's names are imported when they are first asked for, and NumPy with them: the last is the honest number.
    """
    statements = {"numpy": "import numpy", "yota": "import yota", "grad": "from yota import grad"}
    samples: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(max(settings.repeats, 3)):
        for name, statement in statements.items():
            samples[name].append(float(new_process("-c", timed(statement))))
    medians = {name: statistics.median(found) for name, found in samples.items()}
    numpy = medians["numpy"]
    return {**medians, "ratio": medians["grad"] / numpy, "ratio of yota": medians["yota"] / numpy}


def rule_loading(settings: Settings) -> dict[str, float]:
    """Seconds of loading rules, in new processes: those shipped, and 300 of a user's, for the first time and again.

    Shipped rules are found by their first lines and parsed as they are needed; ``all`` parses every one.
    """
    samples: dict[str, list[float]] = {name: [] for name in ("shipped", "all", "first", "again")}
    for _ in range(max(settings.repeats, 3)):
        with tempfile.TemporaryDirectory() as place:
            file = Path(place, "user.rules")
            file.write_text(text(), encoding="utf-8")
            for name, found in samples.items():
                what = name if name in ("shipped", "all") else str(file)
                found.append(float(new_process("-m", "benchmarks.loading", what, YOTA_CACHE_DIR=place)))
    return {name: statistics.median(found) for name, found in samples.items()}


def timed(statement: str) -> str:
    """A program that prints how long a statement took."""
    return f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"


def cold_starts(peers: list[Peer], settings: Settings) -> dict[str, dict[str, float]]:
    """Seconds from an empty process to the first gradient, imports and all."""
    present = [peer.name for peer in peers if peer.differentiates and not peer.absent]
    return {
        workload: {
            peer: statistics.median(
                float(new_process("-m", "benchmarks.cold", peer, workload)) for _ in range(settings.fresh)
            )
            for peer in present
            if peer not in ("hand", "numba", "casadi")
        }
        for workload in COLD_WORKLOADS
    }


def new_process(*arguments: str, **variables: str) -> str:
    """What a new Python process prints; compiled files are kept, as for an installed package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.update(variables)
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return done.stdout.strip()
