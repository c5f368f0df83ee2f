"""Work of a size that is worth a GPU; `python -m benchmarks --target cuda` has these besides the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.polynomials import polynomial

__all__ = ["GPU_WORKLOADS", "QUICK", "points_of", "terms"]


def write_chain(np: Any) -> Any:
    def fused_chain(x: Any) -> Any:
        return np.sum(np.exp(-x * x) * np.sin(x) + x * np.tanh(x))

    return fused_chain


def write_polynomial(np: Any) -> Any:
    def polynomial_of_arrays(x: Any) -> Any:
        return np.sum(polynomial(x))

    return polynomial_of_arrays


def write_polynomial_of_rows(np: Any) -> Any:
    def polynomial_of_rows(x: Any) -> Any:
        return np.sum(polynomial([x[:, number] for number in range(8)]))

    return polynomial_of_rows


def terms(count: int) -> list[tuple[float, tuple[int, ...]]]:
    """Monomials of degree four in eight variables: a coefficient and the variables, the same ones each time."""
    random = np.random.default_rng(count)
    return [
        (float(random.integers(1, 10)), tuple(sorted(int(each) for each in random.integers(0, 8, 4))))
        for _ in range(count)
    ]


def write_terms(np: Any, count: int) -> Any:
    def many_terms(x: Any) -> Any:
        total = 0.0
        for factor, variables in terms(count):
            term = factor
            for number in variables:
                term = term * x[number]
            total = total + term
        return np.sum(total)

    return many_terms


QUICK = 10_000
"""Points of a quick run."""


def numbers(quick: bool, count: int, rows: int = 0, last: bool = False, dtype: Any = float) -> tuple[Any, ...]:
    count = QUICK if quick else count
    shape = (count,) if not rows else (count, rows) if last else (rows, count)
    return (np.random.default_rng(1).standard_normal(shape).astype(dtype),)


def points_of(each: Workload) -> int:
    """Points of a workload at its full size."""
    assert isinstance(each.arguments, partial)
    return int(each.arguments.keywords["count"])


def workload(name: str, title: str, write: Callable[[Any], Any], **sizes: Any) -> Workload:
    return Workload(name=name, title=title, write=write, arguments=partial(numbers, **sizes))


GPU_WORKLOADS = {
    each.name: each
    for each in (
        workload("gpu_chain", "fused elementwise functions of 1e8 numbers", write_chain, count=100_000_000),
        workload("gpu_chain_single", "the same in single precision", write_chain, count=100_000_000, dtype=np.float32),
        workload(
            "gpu_polynomial", "polynomial of 8 variables at 1e8 points", write_polynomial, count=100_000_000, rows=8
        ),
        workload(
            "gpu_polynomial_rows",
            "the same, each point a row",
            write_polynomial_of_rows,
            count=10_000_000,
            rows=8,
            last=True,
        ),
        workload(
            "gpu_terms",
            "polynomial of 200 terms at 1e7 points",
            partial(write_terms, count=200),
            count=10_000_000,
            rows=8,
        ),
    )
}
