"""Systems of equations of scipy.sparse.linalg in traced functions, held against complex steps and differences."""

import threading

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as linalg

import yota
from yota.errors import DifferentiationError, TracingError
from yota.ir.linear_solvers import Direct

RNG = np.random.default_rng(4)
FULL = RNG.standard_normal((5, 5)) * (RNG.random((5, 5)) < 0.6) + np.diag(np.arange(5.0, 10.0))
A = sp.csr_array(FULL)
SYMMETRIC = sp.csc_array(FULL + FULL.T + 8 * np.eye(5))
B = RNG.standard_normal(5)
WEIGHTS = np.arange(1.0, 6.0)
SOLVE = linalg.splu(SYMMETRIC).solve
LOWER = sp.tril(SYMMETRIC).tocsr()
N = (5, 5)


def size(x):
    return np.sum(np.sin(x) * (WEIGHTS if x.ndim == 1 else WEIGHTS[:, None]))


def differences(f, x):
    """The gradient by differences of two steps, extrapolated."""
    slopes = np.empty(x.size)
    for place, unit in enumerate(np.eye(x.size)):
        coarse, fine = ((f(x + h * unit) - f(x - h * unit)) / (2 * h) for h in (2e-4, 1e-4))
        slopes[place] = (4 * fine - coarse) / 3
    return slopes


def built(form):
    return lambda d: form((d, A.indices, A.indptr), shape=N)


SIDES = sp.csc_array(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0], [0.0, -1.0], [3.0, 0.0]]))
FUNCTIONS = {
    "spsolve by the right side": lambda d: linalg.spsolve(A, d[:5]),
    "spsolve of several": lambda d: linalg.spsolve(A.tocsc(), np.stack([d[:5], d[1:6] ** 2], axis=1)),
    "spsolve csr": lambda d: linalg.spsolve(built(sp.csr_array)(d), d[:5] * B),
    "spsolve csc": lambda d: linalg.spsolve(built(sp.csc_matrix)(d), B),
    "spsolve sum": lambda d: linalg.spsolve((SYMMETRIC + sp.diags_array(d[:5])).tocsr(), B),
    "spsolve of a sparse matrix": lambda d: linalg.spsolve(built(sp.csc_array)(d), SIDES).toarray(),
    "spsolve of a traced sparse matrix": lambda d: (
        linalg.spsolve(A.tocsc(), sp.csc_array((d[:3], [0, 2, 4], [0, 1, 1, 3]), shape=(5, 3))) @ np.ones(3)
    ),
    "spsolve of a sparse vector": lambda d: linalg.spsolve(A, sp.csc_array((d[:2], [1, 3], [0, 2]), shape=(5, 1))),
    "splu": lambda d: linalg.splu(built(sp.csc_array)(d)).solve(B, "T") * linalg.splu(SYMMETRIC).solve(d[:5]),
    "factorized": lambda d: linalg.factorized(built(sp.csc_array)(d))(B),
    "factors from outside": lambda d: SOLVE(d[:5]) + SOLVE(d[1:6], "T"),
    "triangular": lambda d: linalg.spsolve_triangular(sp.tril(built(sp.csr_array)(d)).tocsr(), d[:5] * B),
    "triangular above": lambda d: linalg.spsolve_triangular(sp.triu(built(sp.csr_array)(d)).tocsc(), B, lower=False),
    "triangular with ones": lambda d: linalg.spsolve_triangular(
        sp.tril(built(sp.csr_array)(d)).tocsr(), np.stack([B, d[:5]], axis=1), unit_diagonal=True
    ),
    "triangular by the right side": lambda d: linalg.spsolve_triangular(LOWER, d[:5]),
    "inv": lambda d: linalg.inv(built(sp.csc_array)(d)) @ B,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_factors(name):
    def f(d):
        return size(FUNCTIONS[name](d))

    value, slope = yota.value_and_grad(f)(A.data)
    assert value == pytest.approx(f(A.data), rel=1e-14)
    np.testing.assert_allclose(slope, differences(f, A.data), rtol=2e-8, atol=2e-9)


@pytest.mark.parametrize("name", ["cg", "gmres", "bicgstab", "minres", "qmr"])
def test_iterations(name):
    solver = getattr(linalg, name)

    def f(x):
        return size(solver(SYMMETRIC + sp.diags_array(x), x * B, rtol=1e-13)[0])

    value, slope = yota.value_and_grad(f)(WEIGHTS)
    assert value == pytest.approx(f(WEIGHTS), rel=1e-12)
    np.testing.assert_allclose(slope, differences(f, WEIGHTS), rtol=2e-8, atol=2e-9)


def test_one_factorisation_serves_value_and_gradient(monkeypatch):
    counted = []
    plain = Direct.factors
    monkeypatch.setattr(Direct, "factors", lambda *args: counted.append(1) or plain(*args))

    def f(d):
        rows, columns = A.nonzero()
        matrix = sp.csc_array((np.append(d, d), (np.append(rows, columns), np.append(columns, rows))), shape=N)
        return size(linalg.spsolve(matrix, B))

    derivative = yota.value_and_grad(f)
    derivative(A.data)
    for shift in (0.1, 0.2):
        counted.clear()
        value, slope = derivative(A.data + shift)
        assert len(counted) == 1
        assert value == pytest.approx(f(A.data + shift), rel=1e-14)
    np.testing.assert_allclose(slope, differences(f, A.data + 0.2), rtol=2e-8)
    assert "1 compiled" in repr(derivative)


def test_second_derivatives_and_sparse_jacobians():
    def f(d):
        return size(linalg.spsolve(A + sp.diags_array(d), d * B))

    slope = yota.gradient(f)
    hessian = yota.hessian(f)(WEIGHTS)
    expected = np.stack([(slope(WEIGHTS + h) - slope(WEIGHTS - h)) / 2e-5 for h in 1e-5 * np.eye(5)])
    np.testing.assert_allclose(hessian, expected, rtol=1e-7, atol=1e-9)
    found = yota.jacobian(lambda b: linalg.spsolve(A, b), sparse=True)(B)
    np.testing.assert_allclose(found.toarray(), np.linalg.inv(FULL), rtol=1e-12, atol=1e-14)


def test_a_singular_matrix_is_treated_as_by_scipy():
    def f(d):
        return np.sum(linalg.spsolve(sp.csc_array((d, np.arange(5), np.arange(6)), shape=N), B))

    derivative = yota.value_and_grad(f)
    assert derivative(np.ones(5))[0] == pytest.approx(np.sum(B))
    with pytest.warns(linalg.MatrixRankWarning):
        assert np.isnan(derivative(np.array([1.0, 0, 1, 1, 1]))[0])
    with pytest.raises(np.linalg.LinAlgError, match="zero entry on diagonal"):
        yota.gradient(lambda d: linalg.spsolve_triangular(sp.diags_array(d).tocsr(), B).sum())(np.arange(5.0))


def test_what_has_no_derivative_is_refused():
    plus = sp.diags_array
    with pytest.raises(TracingError, match="of a complex operator"):
        turned = lambda x: linalg.LinearOperator(N, lambda v: 1j * x * v, dtype=complex)
        yota.gradient(lambda x: np.abs(linalg.gmres(turned(x), B)[0]).sum())(B)
    shifted = lambda b: linalg.minres(sp.diags_array([1.0, 3.0]), b, shift=2.5, rtol=1e-12)[0].sum()
    np.testing.assert_allclose(yota.gradient(shifted)(np.ones(2)), [-1 / 1.5, 2.0], rtol=1e-9)
    with pytest.raises(DifferentiationError, match="minres did not converge"):
        half = sp.diags_array([1.0, 0.0])
        yota.gradient(lambda a: linalg.minres(half * a, np.array([1.0, 0.0]), rtol=1e-12)[0].sum())(2.0)
    with pytest.raises(DifferentiationError, match=r"cg at .* did not converge"):
        yota.gradient(lambda x: linalg.cg(SYMMETRIC, x, maxiter=1)[0].sum())(B)
    with pytest.raises(TracingError, match=r"lobpcg of traced numbers.*eigsh"):
        yota.gradient(lambda x: linalg.lobpcg(SYMMETRIC + plus(x), np.ones((B.size, 1)))[0].sum())(B)
    with pytest.raises(TracingError, match="perm_c"):
        yota.gradient(lambda x: linalg.splu((SYMMETRIC + plus(x)).tocsc()).perm_c.sum() * x.sum())(B)


def test_threads_share_factors():
    derivative = yota.value_and_grad(lambda d: size(linalg.spsolve(built(sp.csr_array)(d), B)))
    expected = [derivative(A.data + shift) for shift in range(4)]
    found = [None] * 4

    def work(number):
        for _ in range(5):
            found[number] = derivative(A.data + number)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    for one, other in zip(found, expected, strict=True):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1], other[1])


def test_points_are_right_hand_sides():
    def f(b):
        return linalg.spsolve(A, b) * b + SOLVE(b)

    points = RNG.standard_normal((3, 5))
    np.testing.assert_allclose(yota.batch(f)(points), [f(each) for each in points], rtol=1e-13)


@pytest.mark.parametrize("lower", [False, True])
def test_long_banded_systems(lower):
    width = np.array([[0.1], [0.3], [9.0]])[:: -1 if lower else 1] * np.ones(3000)
    along = RNG.standard_normal(3000)

    def f(x):
        band = width * (1 + 0.1 * x) + 1j * x * (0.1 * (width < 1))
        found = scipy.linalg.solveh_banded(band, x, lower=lower)
        return np.sum(np.abs(found) ** 2) + np.sum(
            scipy.linalg.solve_banded((1, 2), np.stack([x, x / 2, 9 + x**2, x / 3]), x) ** 2
        )

    x = RNG.standard_normal(3000)
    f = f if lower else lambda x, f=f: f(x) + np.sum(scipy.linalg.solveh_banded(width[1:] * (1 + 0.1 * x), x))
    value, slope = yota.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    expected = (f(x + 1e-5 * along) - f(x - 1e-5 * along)) / 2e-5
    assert slope @ along == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_tolerances_have_no_derivative(name):
    matrix = scipy.sparse.csc_array(np.array([[4.0, 1.0], [1.0, 3.0]]))

    def loss(b, tolerance):
        return np.sum(getattr(scipy.sparse.linalg, name)(matrix, b, rtol=tolerance)[0] ** 2)

    found = yota.grad(loss, np.array([1.0, 2.0]), 1e-10)[1]
    x = np.linalg.solve(matrix.toarray(), [1.0, 2.0])
    np.testing.assert_allclose(found[0], np.linalg.solve(matrix.toarray(), 2 * x), rtol=1e-8)
    assert found[1] == 0.0


@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_second_derivatives_solve_for_several_right_hand_sides(name):
    matrix = scipy.sparse.csc_array(np.array([[4.0, 1.0], [1.0, 3.0]]))

    def loss(p, solve):
        return np.sum(solve(matrix * p[0] + scipy.sparse.eye_array(2) * p[1], np.array([1.0, 2.0]) * p[1]) ** 2)

    p = np.array([1.1, 0.9])
    found = yota.hessian(lambda p: loss(p, lambda A, b: getattr(scipy.sparse.linalg, name)(A, b, rtol=1e-13)[0]))(p)
    slope = yota.gradient(lambda p: loss(p, scipy.sparse.linalg.spsolve))
    steps = 1e-4 * np.eye(2)
    expected = [(slope(p + step) - slope(p - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


def test_code_that_relies_on_what_solve_triangular_overwrites():
    def loss(a, b):
        work = np.array(b)
        scipy.linalg.solve_triangular(a, work[1:], lower=True, overwrite_b=True)
        return np.sum(work * np.array([1.0, 2.0, 3.0]))

    assert yota.gradcheck(loss, np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([1.0, 2.0, 4.0]))


@pytest.mark.parametrize("form", ["data", "gram"])
def test_orthogonal_matching_pursuit(form):
    linear_model = pytest.importorskip("sklearn.linear_model")
    random = np.random.default_rng(3)
    x = random.standard_normal((20, 5))
    y = x @ np.array([0.0, 2.0, 0.0, -1.0, 0.5]) + 0.01 * random.standard_normal(20)

    def loss(x, y):
        if form == "gram":
            return np.sum(linear_model.orthogonal_mp_gram(x.T @ x, x.T @ y, n_nonzero_coefs=3) ** 2)
        return np.sum(linear_model.orthogonal_mp(x, y, n_nonzero_coefs=3) ** 2)

    assert yota.gradcheck(loss, x, y)
    chosen = [1, 3, 4]
    found, g = yota.grad(loss, x, y)
    w = np.linalg.lstsq(x[:, chosen], y)[0]
    assert found == pytest.approx(np.sum(w * w), rel=1e-12)
    np.testing.assert_allclose(g[1], np.linalg.pinv(x[:, chosen]).T @ (2 * w), rtol=1e-10)


def test_operators_of_matrices():
    matrix, right = sp.csr_array(np.diag([4.0, 3.0, 5.0]) + 0.5), np.array([1.0, 2.0, 3.0])

    def loss(data, b):
        operator = linalg.aslinearoperator(sp.csr_array((data, matrix.indices, matrix.indptr)))
        return np.sum(linalg.cg(operator, b, rtol=1e-13)[0] ** 3)

    by_data, by_b = yota.gradient(loss, wrt=(0, 1))(matrix.data, right)
    x = np.linalg.solve(matrix.toarray(), right)
    adjoint = np.linalg.solve(matrix.toarray().T, 3 * x**2)
    np.testing.assert_allclose(by_b, adjoint, rtol=1e-9)
    np.testing.assert_allclose(by_data, -np.outer(adjoint, x).ravel(), rtol=1e-9)
