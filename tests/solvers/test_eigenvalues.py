"""eigsh, eigs and svds of scipy.sparse.linalg in traced functions, against closed forms and numpy.linalg."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigs, eigsh, svds

import yota
from yota.errors import DifferentiationError, TracingError
from yota.solvers import eigenvalues

COUNT = 24
START = np.cos(np.arange(float(COUNT)))
PLACES = np.arange(COUNT)


def chain(p, form="csr"):
    """Not symmetric in its places: those of one side come from other numbers than those of the other."""
    side = 1.0 + 0.1 * np.sin(p[1] * PLACES[1:])
    return sp.diags_array([p[0] * np.sqrt(PLACES + 1.0), side, 1.0 * side], offsets=[0, 1, -1]).asformat(form)


def differences(f, x):
    coarse, fine = (np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))]) for h in (2e-4, 1e-4))
    return (4 * fine - coarse) / 3


@pytest.mark.parametrize(
    "options", [{"k": 3}, {"k": 4, "which": "SA"}, {"k": 3, "sigma": 2.5}, {"k": 2, "which": "BE", "tol": 1e-12}]
)
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_values_and_vectors(options, form):
    probe = np.sin(np.arange(float(COUNT)))

    def loss(p, solver):
        matrix = chain(p) if form == "csr" else chain(p).toarray()
        values, vectors = solver(matrix)
        alone = eigsh(matrix, v0=START, return_eigenvectors=False, **options) if solver is partial else values
        return np.sum(values**2) + np.sum((probe @ vectors) ** 4) + np.sum(np.cos(alone))

    def partial(matrix):
        return eigsh(matrix, v0=START, **options)

    def full(matrix):
        found = partial(matrix)[0]
        values, vectors = np.linalg.eigh(matrix.toarray() if sp.issparse(matrix) else matrix)
        chosen = np.argmin(np.abs(values[:, None] - found), axis=0)
        return values[chosen], vectors[:, chosen]

    p = np.array([1.2, 0.7])
    value, slope = yota.value_and_grad(lambda p: loss(p, partial))(p)
    assert value == pytest.approx(loss(p, full), rel=1e-11)
    np.testing.assert_allclose(slope, differences(lambda p: loss(p, full), p), rtol=1e-8, atol=1e-8)
    if form == "csr":
        second = yota.hessian(lambda p: loss(p, partial))(p)
        gradient = yota.gradient(lambda p: loss(p, partial))
        np.testing.assert_allclose(second, differences(gradient, p), rtol=1e-6, atol=1e-6)


def test_a_chain_of_springs():
    """The squares of its frequencies are 2 - 2 cos(j pi / (n + 1)), times the stiffness."""
    exact = 2 - 2 * np.cos(np.arange(1, 4) * np.pi / (COUNT + 1))
    line = sp.diags_array([np.full(COUNT, 2.0), *np.full((2, COUNT - 1), -1.0)], offsets=[0, 1, -1]).tocsc()
    slopes = yota.jacobian(lambda s: np.sort(eigsh(s**2 * line, k=3, sigma=0, return_eigenvectors=False)))(1.5)
    np.testing.assert_allclose(slopes, 3.0 * exact, rtol=1e-11)


def test_single_precision():
    line = sp.diags_array([np.full(COUNT, 2.0), *np.full((2, COUNT - 1), -1.0)], offsets=[0, 1, -1]).tocsr()

    def loss(x):
        values, vectors = eigsh(line.astype(x.dtype) + sp.diags_array(x), k=2, v0=START.astype(x.dtype))
        return np.sum(values) + np.sum(vectors**4)

    x = np.linspace(0.0, 1.0, COUNT)
    found = yota.gradient(loss)(x.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, differences(loss, x), atol=2e-4)


def test_what_is_refused():
    ring = sp.csr_array(np.roll(np.eye(COUNT), 1, 0) + np.roll(np.eye(COUNT), -1, 0))
    repeated = yota.gradient(lambda s: eigsh(s * ring, k=2, which="SA", sigma=1.7, return_eigenvectors=False).sum())
    with pytest.raises(DifferentiationError, match=r"eigenvalue \S+ is repeated"):
        repeated(1.0)
    with pytest.raises(TracingError, match="complex numbers"):
        yota.gradient(lambda s: eigsh((s * 1j) * ring, k=2)[0].sum())(1.0)
    with pytest.raises(TracingError, match="with M"):
        yota.gradient(lambda s: eigsh(s * ring, k=2, M=ring)[0].sum())(1.0)


def test_a_wrong_place_shows(monkeypatch):
    def transposed(self, data, value, vector):
        return kept(self, data, -value, vector)

    kept = eigenvalues.Places.bordered
    monkeypatch.setattr(eigenvalues.Places, "bordered", transposed)
    with pytest.raises(AssertionError):
        test_values_and_vectors({"k": 5}, "csr")


@pytest.mark.parametrize("shape", [(14, 9), (9, 14), (11, 11)])
@pytest.mark.parametrize("form", ["csr", "dense"])
def test_singular_values_and_vectors(shape, form):
    random = np.random.default_rng(3)
    places = sp.random_array(shape, density=0.4, format="csr", rng=random)
    places.data = random.standard_normal(places.nnz)
    probes = [np.sin(1.0 + np.arange(float(extent))) for extent in shape]

    def matrix(x):
        return sp.csr_array((x, places.indices, places.indptr), shape=shape)

    def loss(found):
        u, s, vh = found
        return np.sum(s**3) + np.sum((probes[0] @ u) ** 4) + np.sum((probes[0] @ u) * (vh @ probes[1]) * s)

    def partial(x):
        a = matrix(x) if form == "csr" else matrix(x).toarray()
        return loss(svds(a, k=3, v0=np.ones(min(shape))))

    def full(x):
        u, s, vh = np.linalg.svd(matrix(x).toarray(), full_matrices=False)
        return loss((u[:, :3], s[:3], vh[:3]))

    x = places.data
    value, slope = yota.value_and_grad(partial)(x)
    assert value == pytest.approx(full(x), rel=1e-11)
    np.testing.assert_allclose(slope, differences(full, x), rtol=1e-7, atol=1e-7)
    # The slope of a sum of singular values is the sum of the products of their vectors.
    total = yota.gradient(lambda x: svds(matrix(x), k=2, return_singular_vectors=False).sum())(x)
    u, _, vh = np.linalg.svd(matrix(x).toarray(), full_matrices=False)
    np.testing.assert_allclose(total, (u[:, :2] @ vh[:2])[places.nonzero()], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("complex_numbers", [False, True])
def test_eigenvalues_of_any_matrix(complex_numbers):
    random = np.random.default_rng(4)
    places = sp.csr_array(sp.random_array((13, 13), density=0.3, rng=random) + sp.diags_array(np.arange(1.0, 14)))
    extra = 1j * random.standard_normal(places.nnz) if complex_numbers else 0.0
    weights = random.standard_normal((13, 3))

    def matrix(x):
        return sp.csr_array((x + extra, places.indices, places.indptr), shape=places.shape)

    def loss(values, vectors):
        """Not changed by the phases of the vectors."""
        return np.sum(values.real**2 + values.imag) + np.sum(np.abs(vectors * weights) ** 2 * np.arange(1.0, 4.0))

    def partial(x):
        return loss(*eigs(matrix(x), k=3, v0=np.ones(13)))

    def full(x):
        values, vectors = np.linalg.eig(matrix(x).toarray())
        chosen = np.argmin(np.abs(values[:, None] - eigs(matrix(x), k=3, v0=np.ones(13))[0]), axis=0)
        return loss(values[chosen], vectors[:, chosen])

    x = places.data
    value, slope = yota.value_and_grad(partial)(x)
    assert slope.dtype == float
    assert value == pytest.approx(full(x), rel=1e-11)
    np.testing.assert_allclose(slope, differences(full, x), rtol=1e-7, atol=1e-7)
    alone = yota.gradient(lambda x: np.abs(eigs(matrix(x), k=3, v0=np.ones(13), return_eigenvectors=False)).sum())(x)
    values, right = np.linalg.eig(matrix(x).toarray())
    left = np.linalg.inv(right)
    top = np.argsort(-np.abs(values))[:3]
    moved = sum(values[i].conj() / abs(values[i]) * np.outer(left[i], right[:, i]) for i in top).real
    np.testing.assert_allclose(alone, moved[places.nonzero()], rtol=1e-9, atol=1e-11)


def test_the_gradient_by_complex_numbers():
    line = sp.diags_array([np.arange(1.0, 9.0), np.ones(7), 0.5j * np.ones(7)], offsets=[0, 1, -1])
    slope = yota.gradient(lambda z: eigs(line * z, k=2, v0=np.ones(8), return_eigenvectors=False).sum().real)(2.0 + 1j)
    total = eigs(sp.csr_array(line), k=2, v0=np.ones(8), return_eigenvectors=False).sum()
    np.testing.assert_allclose(slope, np.conj(total), rtol=1e-10)


def test_repeated_singular_values_and_sides():
    ones = sp.diags_array([3.0, 3.0, 2.0, 1.0, 0.5])
    with pytest.raises(
        DifferentiationError, match=r"svds at .* has no derivative here: the singular value 3 is repeated"
    ):
        yota.gradient(lambda s: svds(s * ones, k=2, v0=np.ones(5))[0].sum())(1.0)
    with pytest.raises(TracingError, match="vectors on one side"):
        yota.gradient(lambda s: svds(s * ones, k=2, return_singular_vectors="u")[1].sum())(1.0)
    with pytest.raises(TracingError, match="eigs with M"):
        yota.gradient(lambda s: eigs(s * ones, k=2, M=sp.eye_array(5))[0].real.sum())(1.0)
