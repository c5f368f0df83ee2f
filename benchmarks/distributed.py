"""Logistic regression over data on disk, in chunks, by worker processes: ``python -m benchmarks.distributed``.

The default is 1e8 numbers, 0.8 GB, with 2 workers of 350 MB each. Times are the best of some rounds in which all take
turns, with the load of the machine beside them: on a busy one compare CPU times, which are those of all processes.
From disk: what the system has of the files in memory is dropped before each call. From memory: it is not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


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


def read(files: list[tuple[str, str]], use: Callable[[Any, Any], Any]) -> Any:
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


def cpu_of(client: Any) -> float:
    """CPU seconds of this process and of all workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(call: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, float]:
    """Wall and CPU seconds of a call."""
    wall, cpu = time.perf_counter(), clock()
    call()
    return time.perf_counter() - wall, clock() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=10_000, help="rows of a chunk (default: 10000)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="350MB", help="of each worker (default: 350MB)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "yota-benchmark"))
    options = parser.parse_args()
    # One thread for each process, before NumPy is imported; workers share all processors.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"

    import dask
    import numpy as np
    from distributed import Client, LocalCluster

    from yota.distributed import value_and_grad

    files = write(options.folder, options.rows, options.columns, options.chunk)
    few = write(options.folder, 4_000, 10, 10)
    # As Dask starts workers, each large array that they free goes back to the system: reading then takes twice as long.
    keep = {"MALLOC_TRIM_THRESHOLD_": str(2**26), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
    for name, value in keep.items():
        dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value})
    w = np.random.default_rng(1).normal(size=options.columns)
    fg = value_and_grad(loss, over=("X", "y"))

    def blocks(names: list[tuple[str, str]]) -> list[list[Any]]:
        return [[dask.delayed(np.load)(name) for name in part] for part in zip(*names, strict=True)]

    data, small = blocks(files), blocks(few)
    wanted = by_hand(w, files)
    print(f"{options.rows * options.columns:,} numbers in {len(files)} chunks")
    best: dict[tuple[str, int], tuple[float, float]] = {}
    for workers in range(1, options.workers + 1):
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=options.memory, dashboard_address=":0"
        )
        with cluster, Client(cluster) as client:
            value, gradient = fg(w, *data)
            assert np.isclose(value, wanted[0], rtol=1e-10)
            assert np.allclose(gradient, wanted[1], rtol=1e-8)
            fg(w[:10], *small)
            here, everywhere = time.process_time, lambda c=client: cpu_of(c)
            contenders: dict[str, tuple[Callable[[], Any], Callable[[], float]]] = {
                "one process reads": (lambda: read(files, lambda *_: None), here),
                "one process, by hand": (lambda: by_hand(w, files), here),
                "yota": (lambda: fg(w, *data), everywhere),
                "small chunks, one process, by hand": (lambda: by_hand(w[:10], few), here),
                "small chunks, yota": (lambda: fg(w[:10], *small), everywhere),
            }
            found: dict[str, list[tuple[float, float]]] = {}
            for _ in range(options.repeats):
                for name, each in contenders.items():
                    if "small" not in name:
                        drop(files)
                        found.setdefault(f"{name}, from disk", []).append(measured(*each))
                    found.setdefault(f"{name}, from memory", []).append(measured(*each))
        print(f"\n{f'{workers} workers':38}{'wall s':>8}{'CPU s':>8}    load {os.getloadavg()[0]:.1f}", flush=True)
        for name, times in found.items():
            wall, cpu = best[name, workers] = tuple(map(min, zip(*times, strict=True)))  # type: ignore[assignment]
            print(f"{name:38}{wall:8.3f}{cpu:8.3f}", flush=True)
        less = best["small chunks, one process, by hand, from memory", workers]
        both = zip(best["small chunks, yota, from memory", workers], less, strict=True)
        wall, cpu = ((of_yota - by_one) / len(few) * 1e3 for of_yota, by_one in both)
        print(f"{'overhead of a chunk':38}{wall:8.2f}{cpu:8.2f} ms")
    for place in ("disk", "memory"):
        one, several = (best[f"yota, from {place}", workers][0] for workers in (1, options.workers))
        print(f"{options.workers} workers against 1, from {place}: {one / several:.2f} times as fast")


if __name__ == "__main__":
    main()
