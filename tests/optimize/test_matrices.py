"""Determinants, inverses and solutions of up to four rows: scalar code, wherever that is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.optimize import pipeline

STEP = 1e-30


def determinant(A: Any) -> Any:
    return np.linalg.det(A)


def inverse(A: Any) -> Any:
    return np.sum(np.linalg.inv(A + 3.0 * np.eye(A.shape[-1])) ** 2)


def solution(A: Any) -> Any:
    return np.linalg.solve(A + 3.0 * np.eye(A.shape[-1]), A[:, 0]) @ A[0]


def several(A: Any) -> Any:
    return np.sum(np.linalg.solve(A + 3.0 * np.eye(A.shape[-1]), np.eye(A.shape[-1])[:, :2]) * A[:, :2])


FUNCTIONS = [determinant, inverse, solution, several]


def slopes(f: Callable[[Any], Any], A: np.ndarray) -> np.ndarray:
    """The gradient by complex steps."""
    found = np.empty(A.shape)
    for place in np.ndindex(A.shape):
        step = np.zeros(A.shape, complex)
        step[place] = 1j * STEP
        found[place] = f(A + step).imag / STEP
    return found


@needs_compiler
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("function", FUNCTIONS, ids=["det", "inv", "solve", "several"])
def test_gradients_are_straight_line_code_in_c(function: Any, size: int) -> None:
    A = np.random.default_rng(size).normal(size=(size, size))
    value, found = yota.grad(function, A, target="c")
    assert "import numpy" not in found.source and "for (" not in found.source.split("_loops(")[1].split("\n}")[0]
    np.testing.assert_allclose(value, function(A), rtol=1e-13)
    np.testing.assert_allclose(found[0], slopes(function, A), rtol=1e-12, atol=1e-13)


@needs_compiler
@pytest.mark.parametrize("function", FUNCTIONS, ids=["det", "inv", "solve", "several"])
def test_many_matrices_are_loops_in_c(function: Any) -> None:
    A = np.random.default_rng(0).normal(size=(50, 4, 4))
    each = yota.batch(yota.value_and_grad(function), target="c")
    values, gradients = each(A)
    assert not any("np.linalg" in line for line in each.source.splitlines() if "return np" not in line)
    np.testing.assert_allclose(values, [function(one) for one in A], rtol=1e-11)
    np.testing.assert_allclose(gradients, [slopes(function, one) for one in A], rtol=1e-9, atol=1e-11)


@needs_compiler
def test_larger_and_long_ones_stay_with_lapack() -> None:
    random = np.random.default_rng(1)
    for shape in ((5, 5), (30, 4, 4)):
        A = random.normal(size=shape)
        value, found = yota.grad(lambda A: np.sum(np.linalg.det(A)), A, target="c")
        assert "import numpy" in found.source
        np.testing.assert_allclose(value, np.sum(np.linalg.det(A)), rtol=1e-14)
    x = random.normal(size=(300, 4))
    value, found = yota.grad(lambda x: np.linalg.det(x.T @ x), x, target="c")
    assert "import numpy" in found.source
    np.testing.assert_allclose(found[0], 2.0 * value * x @ np.linalg.inv(x.T @ x), rtol=1e-9)


@needs_compiler
def test_strict_code_calls_what_numpy_calls() -> None:
    A = np.random.default_rng(2).normal(size=(4, 4))
    value, found = yota.grad(determinant, A, target="c", strict=True)
    assert "import numpy" in found.source
    assert value == np.linalg.det(A)


def test_where_scalar_code_is_slow_four_rows_stay() -> None:
    tape = yota.trace(determinant, np.eye(4))[1]
    assert any(op.name == "det" for op in pipeline.run(tape).ops)
    assert all(op.name != "det" for op in pipeline.run(tape, compiled=True).ops)


@needs_compiler
@pytest.mark.parametrize("size, target", [(size, target) for size in (1, 2, 3, 4, 5, 7) for target in ("numpy", "c")])
def test_the_determinant_of_a_singular_matrix_has_a_gradient(size: int, target: Any) -> None:
    A = np.random.default_rng(size).normal(size=(size, size))
    A[-1] = 0.0 if size == 1 else A[0]
    _, found = yota.grad(lambda A: np.linalg.det(A), A, target=target)
    cofactors = np.empty_like(A)
    for row, column in np.ndindex(A.shape):
        minor = np.delete(np.delete(A, row, 0), column, 1)
        cofactors[row, column] = (-1) ** (row + column) * (np.linalg.det(minor) if size > 1 else 1.0)
    np.testing.assert_allclose(found[0], cofactors, rtol=1e-12, atol=1e-14)


def test_cofactors_of_complex_and_of_many_singular_matrices() -> None:
    random = np.random.default_rng(3)
    A = random.normal(size=(2, 3, 5, 5)) + 1j * random.normal(size=(2, 3, 5, 5))
    A[0, 1, 3], A[1, 2, :2] = 0.0, 0.0
    _, found = yota.grad(lambda A: np.sum(np.real((2 + 1j) * np.linalg.det(A))), A)
    for place in np.ndindex(2, 3):
        one = A[place]
        for row, column in np.ndindex(5, 5):
            minor = np.delete(np.delete(one, row, 0), column, 1)
            slope = (2 + 1j) * (-1) ** (row + column) * np.linalg.det(minor)
            np.testing.assert_allclose(found[0][place][row, column], np.conj(slope), rtol=1e-9, atol=1e-12)


@needs_compiler
@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1.0, 1e100, 1e300])
def test_logarithms_of_determinants_do_not_overflow(scale: float, size: int) -> None:
    def total(A: Any) -> Any:
        found = 0.0
        for trip in range(400):
            found = found + np.linalg.slogdet(A * (1.0 + 0.001 * trip))[1]
        return found

    A = scale * np.random.default_rng(size).normal(size=(size, size))
    slope = yota.value_and_grad(total, target="c")
    np.testing.assert_allclose(slope(A)[0], total(A), rtol=1e-13)
    assert "total_loop" in slope.source.partition("Kernels in C: ")[2].partition("\n")[0]


TRIPS = 120
SEEN = np.random.default_rng(4).normal(size=(TRIPS, 4))


def filtered(dynamics: Any) -> Any:
    """A filter of Kalman's: trips with products, solutions and a determinant."""
    size = len(dynamics)
    one, mean, spread, found = np.eye(size), np.zeros(size), np.eye(size), 0.0
    for row in SEEN[:, :size]:
        mean, spread = dynamics @ mean, dynamics @ spread @ dynamics.T + 0.1 * one
        apart, total = row - mean, spread + 0.5 * one
        gain = np.linalg.solve(total, spread).T
        size_of = np.log(np.linalg.det(total)) if np.iscomplexobj(total) else np.linalg.slogdet(total)[1]
        found = found + apart @ np.linalg.solve(total, apart) + size_of
        mean, spread = mean + gain @ apart, (one - gain) @ spread
    return found


def least_squares(p: Any) -> Any:
    """Recursive least squares with forgetting, by an inverse."""
    normal, right, found = p[1] * np.eye(3), np.zeros(3), 0.0
    for row in SEEN:
        weights = np.linalg.inv(normal) @ right
        apart = row[3] - row[:3] @ weights
        found = found + apart * apart
        normal, right = p[0] * normal + np.outer(row[:3], row[:3]), p[0] * right + row[:3] * row[3]
    return found


@needs_compiler
@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("size", [2, 3, 4, 0])
def test_loops_with_small_matrices(size: int, target: Any) -> None:
    f = filtered if size else least_squares
    x = (
        0.9 * np.eye(size) + 0.05 * np.random.default_rng(size).normal(size=(size, size))
        if size
        else np.array([0.9, 1])
    )
    slope = yota.value_and_grad(f, target=target)
    value, found = slope(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(found, slopes(f, x), rtol=1e-9, atol=1e-9)
    assert ("_loop1" in slope.source) == (target == "c")
