"""Jacobians and Hessians of functions of whole arrays: rows pulled back together, against formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import yota
from yota.api.row_pullbacks import Rows
from yota.errors import DifferentiationError, StaleTapeError
from yota.run.gradient_layout import Wanted
from yota.run.specialise import Target

R = np.random.default_rng(0)
N = 150
A, X = R.standard_normal((N, N)) / 12, R.standard_normal(N)
TARGETS = ["numpy", "c"]


def dense(x: Any) -> Any:
    return np.tanh(A @ x)


def dense_slope(x: np.ndarray) -> np.ndarray:
    slope: np.ndarray = (1 - np.tanh(A @ x) ** 2)[:, None] * A
    return slope


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kind", "near"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_a_dense_jacobian(target: str, kind: Any, near: float) -> None:
    a = A.astype(kind)
    value, found = yota.jacobian(lambda x: np.tanh(a @ x), with_value=True, target=target)(X.astype(kind))
    np.testing.assert_allclose(value, dense(X), rtol=near, atol=near)
    np.testing.assert_allclose(found, dense_slope(X), rtol=near, atol=near)
    assert found.dtype == kind


@pytest.mark.parametrize("target", TARGETS)
def test_a_dense_hessian(target: str) -> None:
    value, slope, found = yota.hessian(lambda x: np.sum(np.log1p(np.exp(A @ x))), with_value=True, target=target)(X)
    y = 1 / (1 + np.exp(-A @ X))
    np.testing.assert_allclose(value, np.sum(np.log1p(np.exp(A @ X))), rtol=1e-13)
    np.testing.assert_allclose(slope, y @ A, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found, A.T @ ((y * (1 - y))[:, None] * A), rtol=1e-12, atol=1e-13)


def test_shapes_of_results_and_arguments() -> None:
    x = R.standard_normal((N, 2))
    found = yota.jacobian(lambda x: A[:40] @ np.tanh(x))(x)
    expected = np.einsum("ik,jl,kl->ijkl", A[:40], np.eye(2), 1 - np.tanh(x) ** 2)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("size", [1, 1 << 15, 1 << 18, 1 << 30])
def test_however_many_rows_go_at_once_the_matrix_is_the_same(size: int) -> None:
    rows = Rows(dense, 0, Wanted(), Target(), dynamic=False, size=size)
    np.testing.assert_allclose(rows(X), dense_slope(X), rtol=1e-13, atol=1e-15)
    lengths = [len(seeds) for seeds, _ in rows._seeds(X, X)]
    assert max(lengths) * size <= 1 << 20 or max(lengths) == 1
    assert max(lengths) <= 64 and len(set(lengths)) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_complex_functions(target: str) -> None:
    z = X + 1j * X[::-1]
    found = yota.jacobian(lambda z: np.exp(A @ z), target=target)(z)
    np.testing.assert_allclose(found, np.exp(A @ z)[:, None] * A, rtol=1e-12, atol=1e-13)
    found = yota.jacobian(lambda x: np.exp(1j * (A @ x)), target=target)(X)
    np.testing.assert_allclose(found, 1j * np.exp(1j * (A @ X))[:, None] * A, rtol=1e-12, atol=1e-13)
    with pytest.raises(DifferentiationError, match="not holomorphic"):
        yota.jacobian(lambda z: np.conj(A @ z) * z, target=target)(z)


def test_branches() -> None:
    def bent(x: Any) -> Any:
        y = A @ x
        return np.tanh(y) if np.sum(x) > 0 else np.sin(y)

    x = np.abs(X)
    found = yota.jacobian(bent, dynamic=True)
    for _ in range(2):
        np.testing.assert_allclose(found(x), dense_slope(x), rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(found(-x), np.cos(A @ -x)[:, None] * A, rtol=1e-13, atol=1e-15)
    stale = yota.jacobian(bent, dynamic=False)
    stale(x)
    with pytest.raises(StaleTapeError, match=r"bool\(\) of a traced value was True .* Pass dynamic=True"):
        stale(-x)


def test_what_is_not_known_over_many_points_goes_row_by_row() -> None:
    lower = np.tril(A) + 3 * np.eye(N)

    def solved(x: Any) -> Any:
        return scipy.linalg.solve_triangular(lower, np.sin(x), lower=True)

    expected = np.linalg.inv(lower) * np.cos(X)
    np.testing.assert_allclose(yota.jacobian(solved)(X), expected, rtol=1e-10, atol=1e-13)


def test_arrays_from_outside_are_read_afresh() -> None:
    a = A.copy()
    found = yota.jacobian(lambda x: np.tanh(a @ x))
    np.testing.assert_allclose(found(X), dense_slope(X), rtol=1e-13, atol=1e-15)
    a *= 2
    np.testing.assert_allclose(found(X), 2 * (1 - np.tanh(a @ X) ** 2)[:, None] * A, rtol=1e-13, atol=1e-15)


def test_inside_of_a_traced_function() -> None:
    direction = R.standard_normal(N)
    found = yota.gradient(lambda x: np.sum(yota.jacobian(dense)(x) * direction))(X)
    y = np.tanh(A @ X)
    expected = A.T @ (-2 * y * (1 - y**2) * (A @ direction))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_an_outer_function_sees_what_an_inner_matrix_reads() -> None:
    a = A.copy()
    found = yota.value_and_grad(lambda x: np.sum(yota.jacobian(lambda x: np.tanh(a @ x))(x) ** 2))
    for _ in range(2):
        np.testing.assert_allclose(found(X)[0], np.sum(((1 - np.tanh(a @ X) ** 2)[:, None] * a) ** 2), rtol=1e-12)
        a *= 0.5


def _pharmacokinetics(p: Any) -> Any:
    """A fit by steps that each depend on all parameters: scalar code, too long for all second derivatives at once."""
    amount, loss = p[2], 0.0
    for step in range(200):
        amount = amount - 0.05 * p[0] * amount / (p[1] + amount)
        loss = loss + (amount - np.exp(-0.01 * step)) ** 2
    return loss


def _logistic(p: Any) -> Any:
    """A fit over arrays with few parameters."""
    times = np.linspace(0.0, 3.0, 120)
    return np.sum((p[0] / (1.0 + np.exp(p[1] - p[2] * times)) - np.cos(times)) ** 2 + p[3] * p[4] * p[0] * times)


def _distances(p: Any) -> Any:
    """All pairs of ten points in a plane, of which the first stands still."""
    x, y = np.hstack([np.zeros(1), p[:9]]), np.hstack([np.zeros(1), p[9:]])
    one, two = np.tril_indices(10, -1)
    apart = np.sqrt((x[one] - x[two]) ** 2 + (y[one] - y[two]) ** 2)
    return np.sum((apart - np.linspace(0.5, 1.5, 45)) ** 2)


@pytest.mark.parametrize(
    ("function", "size"), [(_pharmacokinetics, 3), (_logistic, 5), (_logistic, 6), (_distances, 18)]
)
def test_hessians_by_products(function: Callable[..., Any], size: int) -> None:
    """Long scalar code row by row, code on arrays one after the other or all rows at once; with a row of zeros too."""
    x = np.linspace(0.6, 1.4, size)
    units, step = np.eye(size), 1e-6
    after, before = (
        np.array(
            [[function(x + offset + 1e-30j * unit).imag / 1e-30 for unit in units] for offset in sign * step * units]
        )
        for sign in (1, -1)
    )
    expected = (after - before) / (2 * step)
    value, gradient, matrix = yota.hessian(function, with_value=True)(x)
    np.testing.assert_allclose(matrix, expected, rtol=1e-7, atol=1e-7 * np.max(np.abs(expected)))
    np.testing.assert_allclose(gradient, [function(x + 1e-30j * unit).imag / 1e-30 for unit in units], rtol=1e-10)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    np.testing.assert_allclose(yota.hessian(function)(x), matrix, rtol=1e-12)
