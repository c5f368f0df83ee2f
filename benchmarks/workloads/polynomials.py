"""Polynomials of a few variables: at one point, where calls cost most, and at a million points, where memory does."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.workload import Workload

__all__ = ["WORKLOADS"]

BLOCK = 4096


def polynomial(x: Any) -> Any:
    return (
        x[2] * x[7] ** 3
        - 3 * x[2] * x[7] * x[5] ** 2
        - x[0] * x[5] ** 3
        + 3 * x[0] * x[5] * x[7] ** 2
        + x[3] * x[4] ** 3
        - 3 * x[3] * x[4] * x[6] ** 2
        - x[1] * x[6] ** 3
        + 3 * x[1] * x[6] * x[4] ** 2
        - 1.2342523
    )


def write_polynomial(_np: Any) -> Any:
    def at_one_point(x: Any) -> Any:
        return polynomial(x)

    return at_one_point


def write_polynomial_sum(np: Any) -> Any:
    def at_many_points(x: Any) -> Any:
        return np.sum(polynomial(x))

    return at_many_points


def write_linear_form(_np: Any) -> Any:
    def linear_form(x: Any) -> Any:
        form = x[0] + 3 * x[1] + 2 * x[2] + 5 * x[3]
        return form**4 - form**2

    return linear_form


def polynomial_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    """What a person writes who knows that the terms are the parts of two complex cubes."""
    x0, x1, x2, x3, x4, x5, x6, x7 = x.tolist()
    x55, x77, x44, x66 = x5 * x5, x7 * x7, x4 * x4, x6 * x6
    real57, imaginary57 = x7 * (x77 - 3 * x55), x5 * (3 * x77 - x55)
    real46, imaginary46 = x4 * (x44 - 3 * x66), x6 * (3 * x44 - x66)
    slope57, cross57 = 3 * (x77 - x55), 6 * x5 * x7
    slope46, cross46 = 3 * (x44 - x66), 6 * x4 * x6
    value = x2 * real57 + x0 * imaginary57 + x3 * real46 + x1 * imaginary46 - 1.2342523
    gradient = np.array(
        [
            imaginary57,
            imaginary46,
            real57,
            real46,
            x3 * slope46 + x1 * cross46,
            x0 * slope57 - x2 * cross57,
            x1 * slope46 - x3 * cross46,
            x2 * slope57 + x0 * cross57,
        ]
    )
    return value, gradient


def linear_form_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    x0, x1, x2, x3 = x.tolist()
    form = x0 + 3 * x1 + 2 * x2 + 5 * x3
    square = form * form
    slope = form * (4 * square - 2)
    return square * square - square, np.array([slope, 3 * slope, 2 * slope, 5 * slope])


def polynomial_sum_by_hand(x: np.ndarray) -> tuple[float, np.ndarray]:
    """The same formulas over blocks that stay in the cache, with every temporary reused."""
    gradient = np.empty_like(x)
    block = min(BLOCK, x.shape[1])
    work = np.empty((6, block))
    total = 0.0
    for start in range(0, x.shape[1], block):
        piece = slice(start, min(start + block, x.shape[1]))
        total += half_by_hand(x, gradient, work, piece, (2, 0, 7, 5))
        total += half_by_hand(x, gradient, work, piece, (3, 1, 4, 6))
    return total - 1.2342523 * x.shape[1], gradient


def half_by_hand(
    x: np.ndarray, gradient: np.ndarray, work: np.ndarray, piece: slice, rows: tuple[int, int, int, int]
) -> float:
    """Sum and gradient of ``a * Re((p + i q)**3) + b * Im((p + i q)**3)`` over one block."""
    a, b, p, q = (x[row, piece] for row in rows)
    da, db, dp, dq = (gradient[row, piece] for row in rows)
    pp, qq, pq, slope, first, second = (line[: p.size] for line in work)
    np.multiply(p, p, out=pp)
    np.multiply(q, q, out=qq)
    np.multiply(p, q, out=pq)
    pq *= 6
    np.subtract(pp, qq, out=slope)
    slope *= 3
    np.multiply(qq, 3, out=first)
    np.subtract(pp, first, out=first)
    np.multiply(first, p, out=da)
    np.multiply(pp, 3, out=first)
    first -= qq
    np.multiply(first, q, out=db)
    np.multiply(a, slope, out=dp)
    np.multiply(b, pq, out=second)
    dp += second
    np.multiply(b, slope, out=dq)
    np.multiply(a, pq, out=second)
    dq -= second
    np.multiply(a, da, out=first)
    np.multiply(b, db, out=second)
    first += second
    return float(np.add.reduce(first))


def polynomial_loop_jitted() -> Any:
    import numba

    @numba.njit
    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        gradient = np.empty_like(x)
        total = 0.0
        for i in range(x.shape[1]):
            for a, b, p, q in ((2, 0, 7, 5), (3, 1, 4, 6)):
                pp, qq = x[p, i] * x[p, i], x[q, i] * x[q, i]
                real, imaginary = x[p, i] * (pp - 3 * qq), x[q, i] * (3 * pp - qq)
                slope, cross = 3 * (pp - qq), 6 * x[p, i] * x[q, i]
                total += x[a, i] * real + x[b, i] * imaginary
                gradient[a, i] = real
                gradient[b, i] = imaginary
                gradient[p, i] = x[a, i] * slope + x[b, i] * cross
                gradient[q, i] = x[b, i] * slope - x[a, i] * cross
            total -= 1.2342523
        return total, gradient

    return value_and_gradient


def polynomial_jitted() -> Any:
    columns = polynomial_loop_jitted()

    def value_and_gradient(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = columns(x.reshape(8, 1))
        return value, gradient.reshape(8)

    return value_and_gradient


def polynomial_in_casadi() -> Any:
    import casadi

    x = casadi.SX.sym("x", 8)
    value = polynomial([x[i] for i in range(8)])
    function = casadi.Function("polynomial", [x], [value, casadi.gradient(value, x)])

    def value_and_gradient(x: np.ndarray) -> tuple[Any, Any]:
        value, gradient = function(x)
        return float(value), np.asarray(gradient).ravel()

    return value_and_gradient


def polynomial_sum_in_casadi() -> Any:
    import casadi

    x = casadi.SX.sym("x", 8)
    value = polynomial([x[i] for i in range(8)])
    function = casadi.Function("polynomial", [x], [value, casadi.gradient(value, x)])

    def value_and_gradient(x: np.ndarray) -> tuple[Any, Any]:
        values, gradient = function.map(x.shape[1])(x)
        return float(np.sum(np.asarray(values))), np.asarray(gradient)

    return value_and_gradient


def one_point(_quick: bool) -> tuple[Any, ...]:
    return (np.random.default_rng(8).standard_normal(8),)


def four_numbers(_quick: bool) -> tuple[Any, ...]:
    return (np.random.default_rng(4).standard_normal(4),)


def many_points(quick: bool) -> tuple[Any, ...]:
    return (np.random.default_rng(8).standard_normal((8, 10_000 if quick else 1_000_000)),)


WORKLOADS = (
    Workload(
        name="polynomial",
        title="eight-variable polynomial, one point",
        write=write_polynomial,
        arguments=one_point,
        single=True,
        specific={
            "hand": lambda: polynomial_by_hand,
            "numba": polynomial_jitted,
            "casadi": polynomial_in_casadi,
        },
    ),
    Workload(
        name="linear_form",
        title="l**4 - l**2 of a linear form, one point",
        write=write_linear_form,
        arguments=four_numbers,
        single=True,
        specific={"hand": lambda: linear_form_by_hand},
    ),
    Workload(
        name="polynomial_1e6",
        title="eight-variable polynomial, a million points",
        write=write_polynomial_sum,
        arguments=many_points,
        specific={
            "hand": lambda: polynomial_sum_by_hand,
            "numba": polynomial_loop_jitted,
            "casadi": polynomial_sum_in_casadi,
        },
    ),
)
