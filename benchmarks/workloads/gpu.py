"""Work of a size that is worth a GPU; `python -m benchmarks --target cuda` has these besides the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.harmonics import HARMONICS
from benchmarks.workloads.large import LARGE
from benchmarks.workloads.polynomials import polynomial
from benchmarks.workloads.sized import Sized

__all__ = ["GPU_WORKLOADS", "TERMS", "terms"]

TERMS = 200
"""Terms of the long polynomial."""


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


def numbers(count: int, rows: int = 0, last: bool = False, dtype: Any = float) -> tuple[Any, ...]:
    shape = (count,) if not rows else (count, rows) if last else (rows, count)
    return (np.random.default_rng(1).standard_normal(shape).astype(dtype),)


def fused_chain() -> Any:
    """Value and gradient by CuPy's fusion, which leaves differentiating to a person."""
    import cupy

    if not hasattr(cupy, "fuse"):
        return None

    @cupy.fuse()
    def total(x: Any) -> Any:
        return cupy.sum(cupy.exp(-x * x) * cupy.sin(x) + x * cupy.tanh(x))

    @cupy.fuse()
    def slope(x: Any) -> Any:
        bell, swing = cupy.exp(-x * x), cupy.tanh(x)
        return bell * (cupy.cos(x) - 2.0 * x * cupy.sin(x)) + swing + x * (1.0 - swing * swing)

    def value_and_gradient(x: Any) -> tuple[float, Any]:
        gradient = slope(x)
        return float(total(x)), gradient

    return value_and_gradient


def terms_by_hand() -> Any:
    from benchmarks.hand.terms import terms_by_hand

    return terms_by_hand()


def workload(name: str, title: str, write: Callable[[Any], Any], count: int, **others: Any) -> Workload:
    specific = others.pop("specific", {})
    arguments = Sized(partial(numbers, **others), count)
    return Workload(name=name, title=title, write=write, arguments=arguments, large=True, specific=specific)


GPU_WORKLOADS = {
    each.name: each
    for each in (
        workload(
            "gpu_chain",
            "fused elementwise functions of 1e8 numbers",
            write_chain,
            count=100_000_000,
            specific={"cupy fuse": fused_chain},
        ),
        workload(
            "gpu_chain_single",
            "the same in single precision",
            write_chain,
            count=100_000_000,
            dtype=np.float32,
            specific={"cupy fuse": fused_chain},
        ),
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
            partial(write_terms, count=TERMS),
            count=10_000_000,
            rows=8,
            specific={"hand cuda": terms_by_hand},
        ),
        HARMONICS,
        *LARGE,
    )
}
