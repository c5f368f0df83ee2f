"""Systems of equations without a derivative: singular, or not positive definite where SciPy asks for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota

la = pytest.importorskip("scipy.linalg")

A = np.array([[1.0, 2.0], [0.0, 3.0]])
Q = np.array([[1.0, 0.5], [0.2, 2.0]])
OPPOSITE = np.array([[1.0, 2.0], [3.0, -1.0]])
STEADY = np.array([[1.0, 0.2], [0.0, 0.5]])

SINGULAR: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "sylvester, right side": (lambda q: la.solve_sylvester(A, -A, q), Q),
    "sylvester, left matrix": (lambda a: la.solve_sylvester(a, -A, Q), A),
    "sylvester, right matrix": (lambda b: la.solve_sylvester(A, b, Q), -A),
    "sylvester, complex": (lambda q: np.abs(la.solve_sylvester(1j * A, -1j * A, q)), Q),
    "lyapunov, right side": (lambda q: la.solve_continuous_lyapunov(OPPOSITE, q), Q),
    "lyapunov, matrix": (lambda a: la.solve_continuous_lyapunov(a, Q), OPPOSITE),
    "discrete lyapunov": (lambda q: la.solve_discrete_lyapunov(STEADY, q, method="bilinear"), Q),
}


@pytest.mark.parametrize("name", SINGULAR)
@pytest.mark.filterwarnings("ignore:Input .a. has an eigenvalue pair")
def test_a_singular_equation_has_no_slope(name: str) -> None:
    f, x = SINGULAR[name]
    value, slope = yota.value_and_grad(lambda x: np.sum(f(x)))(x)
    np.testing.assert_allclose(value, np.sum(f(x)), rtol=1e-12)
    assert np.all(np.isnan(slope))


def test_an_equation_that_is_nearly_singular_has_one() -> None:
    shift = 1e-9 * np.eye(2)
    # The solution of a diagonal equation is q[i, j] / (a[i] + b[j]).
    a, b = np.diag([1.0, 3.0]), np.diag([-1.0, 5.0]) + shift
    slope = yota.gradient(lambda q: np.sum(la.solve_sylvester(a, b, q)))(Q)
    np.testing.assert_allclose(slope, 1 / (np.diag(a)[:, None] + np.diag(b)), rtol=1e-6)
    slope = yota.gradient(lambda q: np.sum(la.solve_sylvester(a.astype(np.float32), a.astype(np.float32), q)))(
        Q.astype(np.float32)
    )
    np.testing.assert_allclose(slope, 1 / (np.diag(a)[:, None] + np.diag(a)), rtol=1e-6)


@pytest.mark.parametrize("seed", [np.inf, np.nan])
def test_what_no_number_reaches_has_no_slope(seed: float) -> None:
    back = yota.vjp(lambda q: la.solve_continuous_lyapunov(A, q), Q)[1]
    assert not np.any(np.isfinite(back(np.full((2, 2), seed))))


def test_scipy_warns_of_a_singular_equation_where_it_does_so_itself() -> None:
    with pytest.warns(RuntimeWarning, match="eigenvalue pair"):
        yota.gradient(lambda q: np.sum(la.solve_continuous_lyapunov(OPPOSITE, q)))(Q)


def banded(n: int) -> np.ndarray:
    return np.stack([np.full(n, -1.0), np.full(n, 2.5)])


NOT_POSITIVE: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "solve": (lambda a: la.solve(a, np.ones(2), assume_a="pos"), np.array([[1.0, 2.0], [2.0, 1.0]])),
    "solve, long name": (lambda a: la.solve(a, np.ones(2), assume_a="positive definite"), -np.eye(2)),
    "inv": (lambda a: la.inv(a, assume_a="pos"), np.array([[1.0, 2.0], [2.0, 1.0]])),
    "tridiagonal": (lambda a: la.solveh_banded(a, np.ones(3)), np.array([[0, 1.0, 1.0], [1.0, -2.0, 3.0]])),
    "lower": (lambda a: la.solveh_banded(a, np.ones(3), lower=True), np.array([[1.0, -2.0, 3.0], [1.0, 1.0, 0]])),
    "wide": (lambda a: la.solveh_banded(a, np.ones(3)), np.array([[0, 0, 5.0], [0, 1.0, 1.0], [1.0, 2.0, 3.0]])),
    "long": (lambda a: la.solveh_banded(a, np.ones(3000)), banded(3000) * [[1.0], [-1.0]]),
}


@pytest.mark.parametrize("name", NOT_POSITIVE)
def test_matrices_that_are_not_positive_definite(name: str) -> None:
    f, x = NOT_POSITIVE[name]
    with pytest.raises(np.linalg.LinAlgError):
        f(x)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        yota.value_and_grad(lambda x: np.sum(f(x)))(x)


@pytest.mark.parametrize("n", [5, 3000])
def test_a_compiled_gradient_notices_them(n: int) -> None:
    gradient = yota.gradient(lambda a: np.sum(la.solveh_banded(a, np.ones(a.shape[1]))))
    band, direction = banded(n), np.random.default_rng(0).standard_normal((2, n))
    direction[0, 0] = 0.0

    def value(step: complex) -> Any:
        moved = band + step * direction
        return np.sum(la.solve_banded((1, 1), np.stack([moved[0], moved[1], np.roll(moved[0], -1)]), np.ones(n)))

    np.testing.assert_allclose(np.sum(gradient(band) * direction), value(1e-30j).imag / 1e-30, rtol=1e-9)
    band[1, n // 2] = -4.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        gradient(band)
