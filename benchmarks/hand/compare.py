"""Generated C beside C by hand, for the polynomial of eight variables: `python -m benchmarks.hand.compare`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import yota
from benchmarks.workloads.polynomials import polynomial, polynomial_sum_by_hand
from yota.run.machine import native


def rounds(calls: dict[str, Callable[[], Any]], loops: int, repeats: int = 15) -> dict[str, float]:
    """Median seconds of each call, in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(loops):
                call()
            times[name].append((time.perf_counter() - start) / loops)
    return {name: statistics.median(each) for name, each in times.items()}


def show(title: str, found: dict[str, float]) -> None:
    base = next(iter(found.values()))
    print(title)
    for name, seconds in found.items():
        print(f"    {name:32s} {seconds * 1e6:12.3f} us   {seconds / base:6.2f}")


def main() -> None:
    hand = native.build(Path(__file__).with_name("polynomial.c").read_text())
    random = np.random.default_rng(8)
    x = random.standard_normal(8)
    fast = yota.value_and_grad(polynomial, target="c")
    fast(x)
    show("one point", rounds({"by hand": lambda: hand.one(x), "yota c": lambda: fast(x)}, 20_000))
    rows = random.standard_normal((8, 1_000_000))
    by_rows = yota.value_and_grad(lambda x: np.sum(polynomial(x)), target="c")
    numpy_rows = yota.value_and_grad(lambda x: np.sum(polynomial(x)))
    assert np.allclose(hand.rows(rows)[1], by_rows(rows)[1])
    show(
        "a million points, rows (8, N)",
        rounds(
            {
                "by hand": lambda: hand.rows(rows),
                "yota c": lambda: by_rows(rows),
                "blocked NumPy by hand": lambda: polynomial_sum_by_hand(rows),
                "yota numpy": lambda: numpy_rows(rows),
            },
            1,
        ),
    )
    points = np.ascontiguousarray(rows.T)
    by_points = yota.value_and_grad(lambda x: np.sum(yota.batch(polynomial)(x)), target="c")
    each = yota.batch(yota.value_and_grad(polynomial), target="c")
    assert np.allclose(hand.points(points)[1], by_points(points)[1])
    show(
        "a million points, (N, 8)",
        rounds(
            {
                "naive loop by hand": lambda: hand.points(points),
                "yota c, sum": lambda: by_points(points),
                "yota c, each value": lambda: each(points),
            },
            1,
        ),
    )


if __name__ == "__main__":
    main()
