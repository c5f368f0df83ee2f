"""Systems whose matrix is a LinearOperator: the derivative by what its product reads, and by the right-hand side."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.sparse import csr_array
from scipy.sparse.linalg import (
    LinearOperator,
    aslinearoperator,
    bicg,
    bicgstab,
    cg,
    expm_multiply,
    gmres,
    lgmres,
    minres,
    qmr,
)

import yota
from yota.errors import DifferentiationError, TracingError

N = 8
WEIGHTS, RIGHT = np.cos(np.arange(N)), 1 + np.sin(np.arange(N))
MIXING = np.random.default_rng(5).normal(size=(N, N))


def product(x, v):
    """The product with a symmetric matrix."""
    return (3 + x**2) * v + 0.05 * ((MIXING + MIXING.T) @ v)


def skew(x, v):
    """The product with a matrix that is not symmetric."""
    return (4 + x**2) * v + 0.1 * MIXING @ (x * v)


def dense(matvec, x):
    return np.stack([matvec(x, e) for e in np.eye(N)], axis=1)


def solved(solver, matvec, x, b, **options):
    operator = LinearOperator(
        (N, N), matvec=lambda v: matvec(x, v), rmatvec=lambda v: dense(matvec, x).T @ v, dtype=float
    )
    return solver(operator, b, rtol=1e-13, **options)[0]


@pytest.mark.parametrize(
    ("solver", "matvec"),
    [(cg, product), (minres, product), (gmres, skew), (bicgstab, skew), (bicg, skew), (lgmres, skew), (qmr, skew)],
)
def test_derivatives_by_the_operator_and_the_right_hand_side(solver, matvec):
    x = np.linspace(0.5, 1.5, N)
    loss = lambda x, b: WEIGHTS @ solved(solver, matvec, x, b) ** 3
    by_x, by_b = yota.gradient(loss, wrt=(0, 1))(x, RIGHT)
    step = 1e-30
    exact = lambda x, b: WEIGHTS @ np.linalg.solve(dense(matvec, x), b) ** 3
    for found, moved in ((by_x, lambda e: exact(x + e, RIGHT)), (by_b, lambda e: exact(x + 0j, RIGHT + e))):
        wanted = [np.imag(moved(1j * step * e)) / step for e in np.eye(N)]
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    direction = np.sin(np.arange(N))
    bent = yota.gradient(lambda x: direction @ yota.gradient(loss)(x, RIGHT))(x)
    slopes = lambda x: yota.gradient(loss)(x, RIGHT)
    wanted = [(slopes(x + 1e-4 * e) - slopes(x - 1e-4 * e)) @ direction / 2e-4 for e in np.eye(N)]
    np.testing.assert_allclose(bent, wanted, rtol=1e-5, atol=1e-7)


def test_an_operator_without_traced_values():
    fixed = np.full(N, 0.7)
    found = yota.gradient(lambda b: WEIGHTS @ solved(minres, product, fixed, b))(RIGHT)
    np.testing.assert_allclose(found, np.linalg.solve(dense(product, fixed), WEIGHTS), rtol=1e-10)
    factor = lambda a: np.sum(a * solved(gmres, skew, fixed, RIGHT))
    np.testing.assert_allclose(yota.gradient(factor)(2.0), np.sum(solved(gmres, skew, fixed, RIGHT)), rtol=1e-12)


@pytest.mark.parametrize("solver", [cg, gmres, bicgstab])
@pytest.mark.parametrize("form", [np.asarray, aslinearoperator])
def test_traced_dense_matrices(solver, form):
    """Elements that are zero have derivatives, too."""
    matrix = np.diag(3.0 + np.arange(N)) + np.diag(WEIGHTS[1:], 1) / 4 + np.diag(WEIGHTS[1:], -1) / 4

    def loss(matrix, b):
        return WEIGHTS @ solver(form(matrix), b, rtol=1e-13)[0] ** 3

    value, slopes = yota.value_and_grad(loss, wrt=(0, 1))(matrix, RIGHT)
    assert value == pytest.approx(loss(matrix, RIGHT), rel=1e-14)
    x = np.linalg.solve(matrix, RIGHT)
    adjoint = np.linalg.solve(matrix.T, 3 * WEIGHTS * x**2)
    np.testing.assert_allclose(slopes[0], -np.outer(adjoint, x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slopes[1], adjoint, rtol=1e-9)


def test_an_exponential_by_a_scale():
    # SciPy chooses the number of steps by norms, which it divides by 2e-16 too.
    matrix = csr_array(np.diag(-WEIGHTS - 2) + np.diag(WEIGHTS[1:], 1))
    value, slope = yota.grad(lambda t: np.sum(expm_multiply(matrix * t, RIGHT)), 0.7)
    exact = expm(0.7 * matrix.toarray()) @ RIGHT
    np.testing.assert_allclose((value, slope[0]), (np.sum(exact), np.sum(matrix @ exact)), rtol=1e-12)


def test_what_is_refused():
    x = np.full(N, 0.7)
    with pytest.raises(DifferentiationError, match=r"linalg\.gmres: the product .* is not linear"):
        yota.gradient(lambda x: WEIGHTS @ solved(gmres, lambda x, v: x * v + v**2, x, RIGHT))(x)
    with pytest.raises(DifferentiationError, match=r"linalg\.cg at .* did not converge"):
        yota.gradient(lambda x: WEIGHTS @ solved(cg, product, x, RIGHT, maxiter=2))(x)
    with pytest.raises(DifferentiationError, match=r"linalg\.cg did not converge"):
        yota.trace(lambda x: WEIGHTS @ solved(cg, product, x, RIGHT, maxiter=2, x0=RIGHT), x)
    with pytest.raises(TracingError, match="operator that decides by numbers"):
        yota.gradient(lambda x: WEIGHTS @ solved(gmres, lambda x, v: x * v if v[0] > 0 else 2 * x * v, x, RIGHT))(x)
    with pytest.raises(TracingError, match="with a traced M"):
        near = lambda x: LinearOperator((N, N), matvec=lambda v: v / x, dtype=float)
        yota.gradient(lambda x: WEIGHTS @ solved(gmres, skew, x, RIGHT, M=near(x)))(x)
