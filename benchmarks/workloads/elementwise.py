"""Chains of elementwise functions over a million numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]

BLOCK = 4096


def write_chain(np: Any) -> Any:
    def chain(x: Any) -> Any:
        return np.sum(np.log(1 + np.exp(-x * x)) * np.sin(x) + np.tanh(x) ** 3)

    return chain


def write_rosenbrock(np: Any) -> Any:
    def rosenbrock(x: Any) -> Any:
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    return rosenbrock


def rosenbrock_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Blocks that stay in the cache, with every temporary reused."""
    gradient = np.empty_like(x)
    gradient[0] = 0.0
    total, last = 0.0, x.size - 1
    work = np.empty((3, min(BLOCK, last)))
    for start in range(0, last, BLOCK):
        stop = min(start + BLOCK, last)
        here = x[start:stop]
        valley, slope, square = (line[: stop - start] for line in work)
        np.multiply(here, here, out=valley)
        np.subtract(x[start + 1 : stop + 1], valley, out=valley)
        np.subtract(1.0, here, out=slope)
        np.multiply(slope, slope, out=square)
        total += np.add.reduce(square)
        np.multiply(valley, valley, out=square)
        total += 100.0 * np.add.reduce(square)
        valley *= 200.0
        np.multiply(valley, here, out=square)
        square += slope
        square *= 2.0
        gradient[start + 1 : stop + 1] = valley
        gradient[start:stop] -= square
    return float(total), gradient


def rosenbrock_jitted() -> Any:
    import numba

    @numba.njit
    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.empty_like(x)
        gradient[0] = 0.0
        total = 0.0
        for i in range(x.size - 1):
            valley, slope = x[i + 1] - x[i] * x[i], 1 - x[i]
            total += 100.0 * valley * valley + slope * slope
            gradient[i] -= 400.0 * valley * x[i] + 2.0 * slope
            gradient[i + 1] = 200.0 * valley
        return total, gradient

    return value_and_gradient


def chain_jitted() -> Any:
    import numba

    @numba.njit
    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.empty_like(x)
        total = 0.0
        for i in range(x.size):
            bell = np.exp(-x[i] * x[i])
            log, sine, tanh = np.log(1 + bell), np.sin(x[i]), np.tanh(x[i])
            total += log * sine + tanh * tanh * tanh
            gradient[i] = (
                -2 * x[i] * bell / (1 + bell) * sine + log * np.cos(x[i]) + 3 * tanh * tanh * (1 - tanh * tanh)
            )
        return total, gradient

    return value_and_gradient


def numbers(quick: bool) -> tuple[Any, ...]:
    return (np.random.default_rng(1).standard_normal(10_000 if quick else 1_000_000),)


WORKLOADS = (
    Workload(
        name="chain",
        title="log, exp, sin and tanh of a million numbers",
        write=write_chain,
        arguments=numbers,
        specific={"numba": chain_jitted},
    ),
    Workload(
        name="rosenbrock",
        title="Rosenbrock's function in a million dimensions",
        write=write_rosenbrock,
        arguments=numbers,
        specific={"hand": lambda: rosenbrock_by_hand, "numba": rosenbrock_jitted},
    ),
)
