"""An expansion in the real solid harmonics up to degree 6, at many points."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.workload import Workload
from benchmarks.workloads.sized import Sized

__all__ = ["HARMONICS", "harmonics"]

DEGREE = 6
WEIGHTS = np.random.default_rng(4).integers(1, 10, (DEGREE + 1) ** 2) / 8


def harmonics(x: Any, y: Any, z: Any) -> Iterator[Any]:
    """All of them, degree by degree, without the constants that norm them.

    In Cartesian coordinates they are polynomials: the parts of ``(x + iy)**m`` times a polynomial of ``z`` and the
    square of the radius that has the recursion of the associated Legendre functions.
    """
    square = x * x + y * y + z * z
    real, imaginary = [1.0], [0.0]
    for _ in range(DEGREE):
        real, imaginary = (
            [*real, x * real[-1] - y * imaginary[-1]],
            [*imaginary, x * imaginary[-1] + y * real[-1]],
        )
    legendre: dict[tuple[int, int], Any] = {}
    for m in range(DEGREE + 1):
        legendre[m, m] = float(math.prod(range(2 * m - 1, 0, -2)))
        for degree in range(m + 1, DEGREE + 1):
            found = (2 * degree - 1) * z * legendre[degree - 1, m]
            if degree > m + 1:
                found = found - (degree + m - 1) * square * legendre[degree - 2, m]
            legendre[degree, m] = found / (degree - m)
    for degree in range(DEGREE + 1):
        for m in range(degree, 0, -1):
            yield legendre[degree, m] * imaginary[m]
        for m in range(degree + 1):
            yield legendre[degree, m] * real[m]


def write_harmonics(np: Any) -> Any:
    def expansion(points: Any) -> Any:
        total = 0.0
        for weight, each in zip(WEIGHTS.tolist(), harmonics(points[:, 0], points[:, 1], points[:, 2]), strict=True):
            total = total + weight * each
        return np.sum(total)

    return expansion


def points(count: int) -> tuple[Any, ...]:
    found = np.random.default_rng(2).standard_normal((count, 3))
    return (found / np.linalg.norm(found, axis=1, keepdims=True),)


HARMONICS = Workload(
    name="gpu_harmonics",
    title="expansion in solid harmonics of degree 6 at 1e7 points",
    write=write_harmonics,
    arguments=Sized(points, 10_000_000),
    large=True,
)
