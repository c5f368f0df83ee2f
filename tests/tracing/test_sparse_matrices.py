"""Sparse matrices of SciPy in traced functions, held against complex steps through SciPy."""

import numpy as np
import pytest
import scipy.sparse as sp

import yota
from yota.errors import TracingError

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
RNG = np.random.default_rng(3)
FULL = RNG.standard_normal((6, 6)) * (RNG.random((6, 6)) < 0.5) + np.diag(np.arange(4.0, 10.0))
A = sp.csr_array(FULL)
X = RNG.standard_normal(6)
ROWS, COLUMNS = A.nonzero()
N = (6, 6)


def size(y):
    """A smooth number of all elements of a result."""
    y = y.toarray() if sp.issparse(y) else np.asarray(y)
    return np.sum(np.sin(y) * np.arange(1.0, 1.0 + y.size).reshape(y.shape))


def steps(f, x):
    """The gradient by complex steps."""
    slopes = np.empty(x.size)
    for place in range(x.size):
        moved = x.astype(complex)
        moved.flat[place] += 1e-30j
        slopes[place] = np.imag(f(moved)) / 1e-30
    return slopes.reshape(x.shape)


def check(f, x, **options):
    value, slope = yota.value_and_grad(f, **options)(x)
    assert value == f(x) if options.get("strict") else value == pytest.approx(f(x), rel=1e-13)
    np.testing.assert_allclose(slope, steps(f, x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("form", FORMATS)
def test_products_with_constant_matrices(form):
    array, matrix = A.asformat(form), sp.csr_matrix(A).asformat(form)

    def f(x):
        m = np.outer(x, x[:2])
        products = [array @ x, x @ array.T, m.T @ array, (array * x).sum(0), matrix * x, array.multiply(m[:, :1]) @ X]
        return sum(map(size, products))

    check(f, X)


@pytest.mark.parametrize("form", FORMATS)
def test_constant_matrices_times_traced_numbers(form):
    array, matrix = A.asformat(form), sp.csr_matrix(A).asformat(form)

    def f(x):
        a, m = array * x[0], matrix * x[1]
        parts = [a + array.T * x[2], a @ a, -a, a / x[3], a.diagonal(1), a.sum(axis=0), m.tocsr().power(2), m.tocoo()]
        return sum(map(size, parts)) + m.sum() + a.mean()

    check(f, X)


@pytest.mark.parametrize("form", ["lil", "dok"])
def test_matrices_that_are_filled_element_by_element(form):
    def f(x):
        m = sp.csr_array(N, dtype=x.dtype).asformat(form)
        for k in range(5):
            for i, j, sign in ((k, k, 1), (k + 1, k + 1, 1), (k, k + 1, -1), (k + 1, k, -1)):
                m[i, j] = m[i, j] + sign * x[k]
        m[5, :3], m[[0, 1], [4, 5]], m[-1, -1] = x[:3], x[5], x[1]
        m[[2, 4], 3:5] = np.outer(x[:2], x[2:4])
        return size(m.tocsr()) + size(m[1:3]) + m[2, -3] + size((A * x[0])[:, [3, 1]])

    check(f, X)


@pytest.mark.filterwarnings("ignore:Changing the sparsity")
@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix])
def test_new_elements_of_compressed_matrices(form):
    """Among others, at a place twice, and those below the diagonal."""

    def f(x):
        m = form(sp.diags_array([X, X[1:]], offsets=[0, 2], dtype=x.dtype))
        m[1, 4] = x[0]
        m[[2, 0, 2], [0, 3, 0]] = x[:3] ** 2
        m[2, 0] += x[1]
        m.setdiag(x[1] * x[:2], k=-1)
        return size(m) + size(m @ x)

    check(f, X)


@pytest.mark.parametrize("form", [sp.lil_array, sp.lil_matrix, sp.dok_array, sp.coo_array, sp.dia_array, sp.bsr_matrix])
def test_matrices_are_scaled_in_place(form):
    def f(x):
        m = form(A.astype(x.dtype))
        m *= x[0]
        m /= x[1]
        return size(m @ x)

    check(f, X)


def test_parts_of_constant_matrices():
    def f(x):
        parts = [(2 * A - A / 3).dot(x), x * sp.csr_matrix(A), A[2:] @ x, A[1] @ x, A[:, [3, 1]] @ x[:2]]
        return sum(map(size, parts)) + size(A.sum(axis=0) * A.diagonal() * x)

    check(f, X)


def both(b):
    return b @ b.T + b.multiply(b) - 2 * b


BUILT = {
    "csr": lambda d: sp.csr_array((d, A.indices, A.indptr), shape=N),
    "coo": lambda d: sp.coo_array((d, (ROWS, COLUMNS)), shape=N),
    "repeated": lambda d: sp.csr_array(
        (np.append(d, d[:4] ** 2), (np.append(ROWS, ROWS[:4]), np.append(COLUMNS, COLUMNS[:4])))
    ),
    "dia": lambda d: sp.dia_array((np.stack([d[:6], d[3:9]]), [0, 1]), shape=N),
    "bsr": lambda d: sp.bsr_array((d[:12].reshape(3, 2, 2), [0, 2, 1], [0, 1, 2, 3]), shape=N),
    "diags": lambda d: sp.diags([d[:6], d[:5], d[5:10] * 2], [0, 1, -1]),
    "diags_array": lambda d: sp.diags_array(d[:6]) + A,
    "block_array": lambda d: sp.block_array([[A[:3, :3], sp.diags_array(d[:3])], [None, A[3:, 3:]]], format="csr"),
    "stacked": lambda d: sp.vstack([sp.hstack([A[:2, :3], sp.csr_array(np.outer(d[:2], d[:3]))]), A[:4] * d[0]]),
    "full blocks": lambda d: sp.block_array([[np.outer(d[:3], d[1:4]), A[:3, :3]], [None, np.outer(d[:3], d[:3])]]),
    "full and constant blocks": lambda d: sp.bmat([[sp.diags(d[:5]), np.ones((5, 1))], [d[None, :5], None]]),
    "full stacked": lambda d: sp.vstack([sp.hstack([A[:4, :3], np.outer(d[:4], d[:3])]), np.outer(d[:2], d[:6])]),
    "kron": lambda d: sp.kron(sp.diags_array(d[:2]), A[:3, :3]),
    "kronsum": lambda d: sp.kronsum(sp.diags_array(d[:2]), A[:3, :3]),
    "product": lambda d: A.T @ sp.diags_array(d[:6]) @ A,
    "of both": lambda d: both(sp.csr_array((d, A.indices, A.indptr), shape=N)),
}


@pytest.mark.parametrize("name", BUILT)
def test_matrices_of_traced_numbers(name):
    def f(d):
        b = BUILT[name](d)
        assert sp.issparse(b)
        assert b.shape == N
        return size(b @ X) + size(b.toarray())

    check(f, A.data)


def test_parts_of_matrices_of_traced_numbers():
    def f(d):
        b = BUILT["csr"](d)
        parts = [b.T @ FULL[:, :2], b.sum(axis=1), b[1:4] @ X, b[[2, 0]].tocsc() @ X, b[:, ::2] @ X[:3]]
        return sum(map(size, [*parts, b.diagonal(), b.data**2, b[1, 2] * X]))

    check(f, A.data)


def test_conversions_where_whole_numbers_are_recorded():
    """An index into a plain array, by traced whole numbers, makes the function start again with all of them traced."""
    plain = np.arange(6.0)

    def f(d):
        turned = plain[np.argsort(d[:6].real)]
        return size(sp.coo_array(BUILT["csr"](d)).tolil().toarray()) + np.sum(turned * d[:6])

    check(f, A.data)


def test_elements_that_cancel_keep_their_derivative():
    def f(x):
        return size((sp.diags_array(np.ones(6)) - sp.diags_array(x)).tocsr() @ X)

    check(f, np.ones(6))


def test_sparse_jacobians_and_hessians():
    def f(x):
        return np.sin(A @ x) * x

    found = yota.jacobian(f, sparse=True)(X)
    expected = np.cos(A @ X)[:, None] * FULL * X[:, None] + np.diag(np.sin(A @ X))
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-13, atol=1e-14)
    assert found.nnz == np.count_nonzero(FULL)
    hessian = yota.hessian(lambda x: np.sum((A @ x) ** 3), sparse=True, target="c")(X)
    np.testing.assert_allclose(hessian.toarray(), FULL.T @ np.diag(6 * (A @ X)) @ FULL, rtol=1e-13, atol=1e-13)


def test_strict_is_bitwise():
    check(lambda d: size(BUILT["product"](d) @ X) + size(BUILT["coo"](d) @ X), A.data, strict=True)


def test_complex_and_single_precision():
    def loss(z):
        return np.sum(np.abs(A @ z) ** 2)

    z = X + 1j * X[::-1]
    np.testing.assert_allclose(yota.gradient(loss)(z), 2 * FULL.T @ (FULL @ z), rtol=1e-13)
    single = sp.csr_array(A.astype(np.float32))
    found = yota.gradient(lambda x: np.sum(single @ x))(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, FULL.sum(0), rtol=1e-6)


def test_changes_of_a_matrix_are_noticed():
    class Held:
        matrix = sp.csr_array(FULL)

    held = Held()
    held.matrix = sp.csr_array(FULL)
    slope = yota.gradient(lambda x: np.sum((held.matrix @ x) ** 2))

    def agrees():
        full = held.matrix.toarray()
        np.testing.assert_allclose(slope(X), 2 * full.T @ (full @ X), rtol=1e-12)

    agrees()
    held.matrix.data *= 2
    agrees()
    held.matrix.data = held.matrix.data + 1
    agrees()
    held.matrix.indices[:] = 5 - held.matrix.indices
    agrees()
    for form in ("lil", "dok"):
        held.matrix = sp.csr_array(FULL).asformat(form)
        agrees()
        held.matrix[0, 5] = 7.0
        agrees()


def test_patterns_of_traced_numbers_are_refused():
    with pytest.raises(TracingError, match="pattern"):
        yota.gradient(lambda x: size(sp.csr_array((x, np.argsort(x), np.arange(7))) @ X))(X)
    with pytest.raises(TracingError, match="is 0"):
        yota.gradient(lambda x: sp.csr_array((x * 0, np.arange(6), np.arange(7))).eliminate_zeros())(X)


def test_a_pattern_that_is_sorted_after_its_use():
    def f(d):
        matrix = sp.csr_array((d * 1.0, np.array([3, 1, 0, 2, 3, 0]), np.array([0, 3, 4, 4, 6])), shape=(4, 4))
        return size(matrix.sum(axis=0)) + matrix.sum()

    check(f, X)


def test_a_constant_full_matrix_stores_no_zeros() -> None:
    """What `sklearn.metrics.label_ranking_average_precision_score` does with labels."""

    def stored(x):
        matrix = np.zeros((2, 3))
        matrix[0, 1] = 2.0
        found = sp.csr_array(matrix)
        return found.nnz * np.sum(x) + np.sum((found @ x) ** 2)

    x = np.array([1.0, 3.0, 0.5])
    value, (gradient,) = yota.grad(stored, x)
    assert value == stored(x) == 4.5 + 36.0
    np.testing.assert_allclose(gradient, [1.0, 25.0, 1.0])
