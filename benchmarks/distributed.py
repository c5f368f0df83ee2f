"""Logistic regression over data on disk, in chunks, by worker processes: ``python -m benchmarks.distributed``.

The default is 1e8 numbers, 0.8 GB, and workers of 350 MB each. One cluster has one worker, and with client and
scheduler one core; the other has two of both. All take turns in each round. Bars compare times of one round; their
median counts. CPU times are those of all processes: on a busy machine compare these. From disk: what the system has of
the files in memory is dropped before each call. From memory: it is not.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_TO_READ, _TO_ADD, _TO_SCALE = 1.1, 2.0, 1.7
"""Bars: times as long as one process reads from disk, milliseconds of a chunk, and times as fast on two cores."""
_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**26, "MALLOC_MMAP_THRESHOLD_": 2**25, "MALLOC_ARENA_MAX": 1}
"""As Dask starts workers, each large array that they free goes back to the system: reading then takes twice as long."""
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    **{f"distributed.nanny.pre-spawn-environ.{name}": str(value) for name, value in _MEMORY.items()},
}


def write(folder: Path, rows: int, columns: int, chunk: int) -> list[tuple[str, str]]:
    """Files of samples and of signs for each chunk, made once."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    generator, files = np.random.default_rng(0), []
    weights = generator.normal(size=columns)
    for number, start in enumerate(range(0, rows, chunk)):
        names = tuple(str(folder / f"{kind}-{rows}-{columns}-{chunk}-{number}.npy") for kind in "Xy")
        if not all(map(os.path.exists, names)):
            X = generator.normal(size=(min(chunk, rows - start), columns))
            np.save(names[0], X)
            np.save(names[1], np.sign(X @ weights + generator.normal(size=len(X))))
        files.append(names)
    return files


def drop(files: list[tuple[str, str]]) -> None:
    """Have the system forget what it holds of files in memory."""
    for name in (name for both in files for name in both):
        handle = os.open(name, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def loss(w: Any, X: Any, y: Any) -> Any:
    import numpy as np

    return np.sum(np.logaddexp(0.0, -y * (X @ w)))


def read(files: list[tuple[str, str]], use: Callable[[Any, Any], Any] = lambda *_: None) -> Any:
    """What one process does: read chunk after chunk, and use it."""
    import numpy as np

    return [use(np.load(X), np.load(y)) for X, y in files]


def by_hand(w: Any, files: list[tuple[str, str]]) -> Any:
    """Value and gradient in plain NumPy, in one process."""
    import numpy as np

    def use(X: Any, y: Any) -> tuple[Any, Any]:
        margins = -y * (X @ w)
        return np.sum(np.logaddexp(0.0, margins)), X.T @ (-y / (1 + np.exp(-margins)))

    values, gradients = zip(*read(files, use), strict=True)
    return sum(values), sum(gradients)


def by_hands(pool: Any, w: Any, files: list[tuple[str, str]]) -> Any:
    """The same in two processes, which share nothing."""
    half = len(files) // 2
    parts = pool.starmap(by_hand, [(w, files[:half]), (w, files[half:])])
    return tuple(map(sum, zip(*parts, strict=True)))


@contextlib.contextmanager
def cluster(cores: list[int], memory: str) -> Iterator[Any]:
    """A client with a worker for each of some cores, on which all processes run; the calling thread too."""
    from distributed import Client, LocalCluster

    os.sched_setaffinity(0, cores)
    with (
        LocalCluster(n_workers=len(cores), threads_per_worker=1, memory_limit=memory, dashboard_address=":0") as found,
        Client(found) as client,
    ):
        yield client


def cpu_of(client: Any) -> float:
    """CPU seconds of this process and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(call: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, float]:
    """Wall and CPU seconds of a call."""
    cpu, wall = clock(), time.perf_counter()
    call()
    wall = time.perf_counter() - wall
    return wall, clock() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=10_000, help="rows of a chunk (default: 10000)")
    parser.add_argument("--memory", default="350MB", help="of each worker (default: 350MB)")
    parser.add_argument("--repeats", type=int, default=15, help="rounds (default: 15)")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "yota-benchmark"))
    options = parser.parse_args()
    # One thread for each process, before NumPy is imported; Dask does so for workers.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    files = write(options.folder, options.rows, options.columns, options.chunk)
    few = write(options.folder, 4_000, 10, 10)
    found = timed(files, few, options.columns, options.memory, options.repeats)
    numbers = options.rows * options.columns
    print(f"{numbers:,} numbers in {len(files)} chunks, {options.repeats} rounds, load {os.getloadavg()[0]:.1f}")
    print(f"\n{'':34}{'wall s: median':>16}{'least':>8}{'CPU s: median':>16}{'least':>8}{'ns of CPU a number':>20}")
    for name, times in found.items():
        (wall, cpu), (least, least_cpu) = (tuple(map(of, zip(*times, strict=True))) for of in (statistics.median, min))
        each = "" if "small" in name else f"{cpu / numbers * 1e9:20.2f}"
        print(f"{name:34}{wall:16.3f}{least:8.3f}{cpu:16.3f}{least_cpu:8.3f}{each}")
    print(f"\n{'':60}{'median':>8}{'least':>8}{'most':>8}   bar")
    for what, bar, side, values in bars(found, len(few)):
        middle = statistics.median(values)
        met = "met" if (middle <= bar if side == "most" else middle >= bar) else "missed"
        print(f"{what:60}{middle:8.2f}{min(values):8.2f}{max(values):8.2f}   at {side} {bar}: {met}")


Times = list[tuple[float, float]]


def timed(
    files: list[tuple[str, str]], few: list[tuple[str, str]], columns: int, memory: str, repeats: int
) -> dict[str, Times]:
    """Wall and CPU seconds of each contender in each round."""
    import dask
    import numpy as np

    from yota.distributed import value_and_grad

    dask.config.set(_SETTINGS)
    w = np.random.default_rng(1).normal(size=columns)
    fg = value_and_grad(loss, over=("X", "y"))
    data, small = (
        [[dask.delayed(np.load)(name) for name in part] for part in zip(*each, strict=True)] for each in (files, few)
    )
    cores = sorted(os.sched_getaffinity(0))
    wanted = by_hand(w, files)
    spawn = multiprocessing.get_context("spawn")
    with cluster(cores[:1], memory) as one, cluster(cores[:2], memory) as two, spawn.Pool(2) as pool:

        def by(client: Any, *given: Any) -> Callable[[], Any]:
            def call() -> Any:
                os.sched_setaffinity(0, cores[:1] if client is one else cores[:2])
                with client.as_current():
                    return fg(*given)

            return call

        def alone(function: Callable[..., Any], *given: Any) -> Callable[[], Any]:
            def call() -> Any:
                os.sched_setaffinity(0, cores)
                return function(*given)

            return call

        for client in (one, two):
            value, gradient = by(client, w, *data)()
            assert np.isclose(value, wanted[0], rtol=1e-10)
            assert np.allclose(gradient, wanted[1], rtol=1e-8)
            by(client, w[:10], *small)()
        large = {
            "one process reads": (alone(read, files), time.process_time),
            "one process, by hand": (alone(by_hand, w, files), time.process_time),
            "two processes, by hand": (alone(by_hands, pool, w, files), time.process_time),
            "yota, one core": (by(one, w, *data), lambda: cpu_of(one)),
            "yota, two cores": (by(two, w, *data), lambda: cpu_of(two)),
        }
        others = {
            "small chunks, by hand": (alone(by_hand, w[:10], few), time.process_time),
            "small chunks, yota, two cores": (by(two, w[:10], *small), lambda: cpu_of(two)),
        }
        found: dict[str, Times] = {}
        for _ in range(repeats):
            for place in ("disk", "memory"):
                for name, contender in large.items():
                    if place == "disk":
                        drop(files)
                    found.setdefault(f"{name}, from {place}", []).append(measured(*contender))
            for name, contender in others.items():
                found.setdefault(name, []).append(measured(*contender))
    return found


def bars(found: dict[str, Times], chunks: int) -> list[tuple[str, float, str, list[float]]]:
    """What is required: what it is, the bar, on which side of it, and what each round gives."""

    def pairs(one: str, other: str) -> list[tuple[float, float]]:
        return [(a[0], b[0]) for a, b in zip(found[one], found[other], strict=True)]

    to_read = pairs("yota, two cores, from disk", "one process reads, from disk")
    to_add = pairs("small chunks, yota, two cores", "small chunks, by hand")
    to_scale = pairs("yota, one core, from memory", "yota, two cores, from memory")
    plain = pairs("one process, by hand, from memory", "two processes, by hand, from memory")
    return [
        ("times as long as one process reads, two cores, from disk", _TO_READ, "most", [a / b for a, b in to_read]),
        ("ms more for a small chunk than by hand", _TO_ADD, "most", [(a - b) / chunks * 1e3 for a, b in to_add]),
        ("times as fast on two cores as on one, from memory", _TO_SCALE, "least", [a / b for a, b in to_scale]),
        ("the same by hand, two processes without Dask", _TO_SCALE, "least", [a / b for a, b in plain]),
    ]


if __name__ == "__main__":
    main()
