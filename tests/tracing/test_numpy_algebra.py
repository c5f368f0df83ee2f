"""Products, norms and factorisations of NumPy, with their keywords, against central differences."""

from typing import Any

import numpy as np
import pytest
from scipy import linalg, special

import yota
from tests.generated import loaded
from tests.tracing.checking import check, compound, real
from yota import errors

M = real(3, 4)
N = real(4, 2)
T = real(2, 3, 4)
V = real(4)
W = real(4, seed=3)
Z = compound(3, 4)
SQUARE = real(3, 3) + 3 * np.eye(3)
STACK = real(2, 3, 3) + 3 * np.eye(3)
CSQUARE = compound(3, 3) + 3 * np.eye(3)
CSTACK = compound(2, 3, 3) + 3 * np.eye(3)
TALL, WIDE, CTALL, CWIDE = real(5, 3), real(3, 5), compound(5, 3), compound(3, 5)
POSITIVE = SQUARE @ SQUARE.T


def symmetric(x):
    return x + np.swapaxes(np.conj(x), -1, -2)


def projectors(vectors):
    """What does not depend on the phases of the columns."""
    return np.einsum("...ik,...jk->...kij", vectors, np.conj(vectors))


PRODUCTS = {
    "dot": (lambda x, y: np.dot(x, y), M, N),
    "dot vectors": (lambda x, y: np.dot(x, y), V, W),
    "dot scalar": (lambda x, y: np.dot(x, y), M, 1.5),
    "dot 3-d": (lambda x, y: np.dot(x, y), T, N),
    "dot 3-d 3-d": (lambda x, y: np.dot(x, y), T, real(2, 4, 2)),
    "dot lists": (lambda x: np.dot([x[0], x[1]], [2.0, x[2]]), V),
    "vdot": (lambda x, y: np.vdot(x, y), Z, compound(3, 4, seed=3)),
    "inner": (lambda x, y: np.inner(x, y), M, T),
    "outer": (lambda x, y: np.outer(x, y), M, V),
    "matmul": (lambda x, y: np.matmul(x, y), T, N),
    "matmul vector": (lambda x, y: np.matmul(x, y), V, N),
    "matmul complex": (lambda x, y: x @ y, Z, compound(4, 2)),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1, 2], [0, 1])), T, M),
    "tensordot count": (lambda x, y: np.tensordot(x, y, axes=1), T, N),
    "tensordot negative": (lambda x, y: np.tensordot(x, y, axes=(-1, 0)), T, N),
    "tensordot 0": (lambda x, y: np.tensordot(x, y, 0), V, W),
    "einsum": (lambda x, y: np.einsum("ij,jk->ik", x, y), M, N),
    "einsum implicit": (lambda x, y: np.einsum("ij,jk", x, y), M, N),
    "einsum ellipsis": (lambda x, y: np.einsum("...ij,jk->...ik", x, y), T, N),
    "einsum optimize": (lambda x, y, z: np.einsum("ij,jk,kl->il", x, y, z, optimize=True), M, N, real(2, 2)),
    "einsum greedy": (lambda x, y: np.einsum("ij,jk->ik", x, y, optimize="greedy"), M, N),
    "einsum one row": (lambda x, y: np.einsum("ij,ij->ij", x, y), M, real(1, 4)),
    "einsum one column": (lambda x, y: np.einsum("ij,ij->j", x, y), real(3, 1), M),
    "einsum one of each": (lambda x, y: np.einsum("ij,jk", x, y), real(2, 1), real(3, 1)),
    "einsum one in an ellipsis": (lambda x, y: np.einsum("...i,...i->...", x, y), M, real(1, 4)),
    "einsum one everywhere": (lambda x, y: np.einsum("ij,ij->j", x, y), real(1, 1), real(1, 3)),
    "einsum repeated": (lambda x: np.einsum("ii->i", x), SQUARE),
    "einsum trace": (lambda x: np.einsum("...ii", x), STACK),
    "einsum lists": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [0, 2]), M, N),
    "einsum lists implicit": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), M, N),
    "einsum lists ellipsis": (lambda x, y: np.einsum(x, [..., 0, 1], y, [1, 2], [..., 0, 2]), T, N),
    "einsum dtype": (lambda x: np.einsum("ij->j", x, dtype=np.complex128), M),
    "kron": (lambda x, y: np.kron(x, y), M, N),
    "kron ndim": (lambda x, y: np.kron(x, y), V, M),
    "cross": (lambda x, y: np.cross(x, y), real(4, 3), real(4, 3, seed=2)),
    "cross axes": (lambda x, y: np.cross(x, y, axisa=0, axisb=1, axisc=0), real(3, 4), real(4, 3)),
    "trace": (lambda x: np.trace(x, offset=1), M),
    "trace axes": (lambda x: np.trace(x, axis1=0, axis2=2), T),
    "vecdot": (lambda x, y: np.vecdot(x, y), Z, compound(4)) if hasattr(np, "vecdot") else (lambda x, y: x * y, V, W),
    "vecdot axis": (lambda x, y: np.linalg.vecdot(x, y, axis=0), M, real(3, 4, seed=5)),
    "matvec": (lambda x, y: np.matvec(x, y), T, V) if hasattr(np, "matvec") else (lambda x, y: x @ y, T, V),
    "vecmat": (lambda x, y: np.vecmat(x, y), compound(3), Z) if hasattr(np, "vecmat") else (lambda x, y: x @ y, T, V),
    "linalg.matmul": (lambda x, y: np.linalg.matmul(x, y), M, N),
    "linalg.outer": (lambda x, y: np.linalg.outer(x, y), V, W),
    "linalg.cross": (lambda x, y: np.linalg.cross(x, y), real(4, 3), real(4, 3, seed=2)),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), T, N),
    "linalg.trace": (lambda x: np.linalg.trace(x), T),
    "linalg.diagonal": (lambda x: np.linalg.diagonal(x, offset=1), T),
    "linalg.matrix_transpose": (lambda x: np.linalg.matrix_transpose(x), T),
    "multi_dot": (lambda x, y, z: np.linalg.multi_dot([x, y, z]), M, N, real(2, 3)),
    "multi_dot four": (lambda x, y: np.linalg.multi_dot([x, y, y.T, x.T]), M, N),
    "multi_dot vectors": (lambda x, y, z: np.linalg.multi_dot([x, y, z]), real(3), M, V),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 5), SQUARE / 3),
    "matrix_power 0": (lambda x: np.linalg.matrix_power(x, 0) + x, SQUARE),
    "matrix_power -2": (lambda x: np.linalg.matrix_power(x, -2), STACK),
}

NORMS = {}
for _order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
    NORMS[f"matrix norm {_order}"] = (lambda x, o=_order: np.linalg.norm(x, o), M)
    NORMS[f"matrix norm {_order} of complex"] = (lambda x, o=_order: np.linalg.norm(x, o), Z)
    NORMS[f"matrix norm {_order} axes"] = (lambda x, o=_order: np.linalg.norm(x, o, axis=(2, 0), keepdims=True), T)
for _order in (None, 0, 1, -1, 2, -2, 3, 0.5, 2.5, np.inf, -np.inf):
    NORMS[f"vector norm {_order}"] = (lambda x, o=_order: np.linalg.norm(x, o), V)
    NORMS[f"vector norm {_order} axis"] = (lambda x, o=_order: np.linalg.norm(x, o, axis=0, keepdims=True), Z)
NORMS |= {
    "norm of all axes": (lambda x: np.linalg.norm(x), T),
    "norm keepdims": (lambda x: np.linalg.norm(x, keepdims=True), T),
    "norm of list": (lambda x: np.linalg.norm([x[0], x[1] * 2]), V),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, ord=3), M),
    "vector_norm axes": (lambda x: np.linalg.vector_norm(x, axis=(0, 2), keepdims=True), T),
    "matrix_norm": (lambda x: np.linalg.matrix_norm(x, ord="nuc", keepdims=True), T),
    "cond": (lambda x: np.linalg.cond(x), SQUARE),
    "cond tall": (lambda x: np.linalg.cond(x), TALL),
    "cond -2": (lambda x: np.linalg.cond(x, -2), STACK),
    "cond fro": (lambda x: np.linalg.cond(x, "fro"), STACK),
    "cond 1": (lambda x: np.linalg.cond(x, 1), SQUARE),
    "cond inf": (lambda x: np.linalg.cond(x, np.inf), SQUARE),
}

FACTORS = {
    "inv": (lambda x: np.linalg.inv(x), STACK),
    "det": (lambda x: np.linalg.det(x), STACK),
    "det complex": (lambda x: np.linalg.det(x), CSQUARE),
    "solve": (lambda x, y: np.linalg.solve(x, y), STACK, real(2, 3, 2)),
    "solve vector": (lambda x, y: np.linalg.solve(x, y), SQUARE, real(3)),
    "slogdet": (lambda x: np.linalg.slogdet(x), SQUARE),
    "slogdet negative": (lambda x: np.linalg.slogdet(-x).logabsdet, STACK),
    "slogdet complex": (lambda x: np.linalg.slogdet(x), CSTACK),
    "cholesky": (lambda x: np.linalg.cholesky(symmetric(x @ x.T)), SQUARE),
    "cholesky upper": (lambda x: np.linalg.cholesky(symmetric(x @ np.conj(x.T)), upper=True), CSQUARE),
    "cholesky stack": (lambda x: np.linalg.cholesky(symmetric(x @ np.swapaxes(x, -1, -2))), STACK),
    "qr": (lambda x: np.linalg.qr(x), SQUARE),
    "qr tall": (lambda x: np.linalg.qr(x), TALL),
    "qr wide": (lambda x: np.linalg.qr(x), WIDE),
    "qr complex tall": (lambda x: np.linalg.qr(x), CTALL),
    "qr complex wide": (lambda x: np.linalg.qr(x), CWIDE),
    "qr stack": (lambda x: np.linalg.qr(x), T),
    "qr r": (lambda x: np.linalg.qr(x, mode="r"), TALL),
    "qr complete": (lambda x: np.linalg.qr(x, mode="complete").Q, WIDE),
    "qr complete tall": (lambda x: np.linalg.qr(x, mode="complete").R, TALL),
    "svd full": (lambda x: np.linalg.svd(x)[1:], TALL),
    "svd full wide": (lambda x: np.linalg.svd(x)[:2], WIDE),
    "svd": (lambda x: np.linalg.svd(x), SQUARE),
    "svd tall": (lambda x: np.linalg.svd(x, full_matrices=False), TALL),
    "svd wide": (lambda x: np.linalg.svd(x, full_matrices=False), WIDE),
    "svd stack": (lambda x: np.linalg.svd(x, full_matrices=False), T),
    "svd values": (lambda x: np.linalg.svd(x, compute_uv=False), TALL),
    "svd complex values": (lambda x: np.linalg.svd(x, compute_uv=False), CWIDE),
    "svd hermitian": (lambda x: np.linalg.svd(symmetric(x), hermitian=True), SQUARE),
    "svd hermitian values": (
        lambda x: np.linalg.svd(symmetric(x - 3 * np.eye(3)), hermitian=True, compute_uv=False),
        SQUARE,
    ),
    "svd complex projectors": (lambda x: _singular_projectors(x), CTALL),
    "svd complex wide": (lambda x: _singular_projectors(x), CWIDE),
    "svd complex square": (lambda x: _singular_projectors(x), CSTACK),
    "svdvals": (lambda x: np.linalg.svdvals(x), T),
    "eigh": (lambda x: np.linalg.eigh(symmetric(x)), SQUARE),
    "eigh upper": (lambda x: np.linalg.eigh(symmetric(x), "U"), STACK),
    "eigh values": (lambda x: np.linalg.eigh(symmetric(x)).eigenvalues, CSQUARE),
    "eigh complex": (lambda x: projectors(np.linalg.eigh(symmetric(x)).eigenvectors), CSTACK),
    "eigvalsh": (lambda x: np.linalg.eigvalsh(symmetric(x)), STACK),
    "eigvalsh complex": (lambda x: np.linalg.eigvalsh(symmetric(x), UPLO="U"), CSQUARE),
    "eig": (lambda x: np.linalg.eig(x @ np.diag(np.arange(1.0, 4.0)) @ np.linalg.inv(x)), SQUARE),
    "eig stack": (lambda x: np.linalg.eig(np.tril(x) + 3 * np.diag(np.arange(3.0))), STACK),
    "eig complex pair": (lambda x: _pairs(x), real(3, 3)),
    "eig complex": (lambda x: projectors(np.linalg.eig(x).eigenvectors), CSTACK),
    "eigvals": (lambda x: np.linalg.eigvals(x), CSTACK),
    "eigvals real": (lambda x: np.linalg.eigvals(np.tril(x) + 3 * np.diag(np.arange(3.0))), SQUARE),
    "pinv": (lambda x: np.linalg.pinv(x), TALL),
    "pinv wide": (lambda x: np.linalg.pinv(x), T),
    "pinv complex": (lambda x: np.linalg.pinv(x), CWIDE),
    "pinv rcond": (lambda x: np.linalg.pinv(x, rcond=1e-10), SQUARE),
    "pinv rtol": (lambda x: np.linalg.pinv(x, rtol=1e-10), SQUARE),
    "pinv cut off": (lambda x: np.linalg.pinv(x, rcond=0.5), TALL),
    "pinv cut off complex": (lambda x: np.linalg.pinv(x, rcond=0.5), CWIDE),
    "pinv hermitian cut off": (lambda x: np.linalg.pinv(symmetric(x), 0.5, hermitian=True), SQUARE),
    "pinv hermitian": (lambda x: np.linalg.pinv(symmetric(x), hermitian=True), SQUARE),
    "pinv of low rank": (lambda x: np.linalg.pinv(x @ x.T @ x[:, :1] @ x[0:1]), real(3, 3)),
    "lstsq": (lambda x, y: np.linalg.lstsq(x, y), TALL, real(5)),
    "lstsq many": (lambda x, y: np.linalg.lstsq(x, y, rcond=None), TALL, real(5, 2)),
    "lstsq wide": (lambda x, y: np.linalg.lstsq(x, y)[0], WIDE, real(3)),
    "lstsq complex": (lambda x, y: np.linalg.lstsq(x, y), CTALL, compound(5, 2)),
    "lstsq cut off": (lambda x, y: np.linalg.lstsq(x, y, rcond=0.5)[0], TALL, real(5, 2)),
    "lstsq singular": (lambda x, y: np.linalg.lstsq(x[:, :1] @ x[:1], y)[0], TALL, real(5)),
    "tensorinv": (lambda x: np.linalg.tensorinv(np.reshape(x, (2, 3, 6)) + _unit()), real(6, 6)),
    "tensorinv ind": (lambda x: np.linalg.tensorinv(np.reshape(x + 4 * np.eye(6), (6, 2, 3)), ind=1), real(6, 6)),
    "tensorsolve": (lambda x, y: np.linalg.tensorsolve(np.reshape(x, (2, 3, 6)) + _unit(), y), real(6, 6), real(2, 3)),
    "tensorsolve axes": (
        lambda x, y: np.linalg.tensorsolve(np.reshape(x + 4 * np.eye(6), (6, 2, 3)), y, axes=(0,)),
        real(6, 6),
        real(2, 3),
    ),
    "matrix_rank": (lambda x: np.linalg.matrix_rank(x) * x, SQUARE),
    "matrix_rank hermitian": (lambda x: np.linalg.matrix_rank(symmetric(x), hermitian=True) * x, SQUARE),
}


def _unit():
    return 4 * np.eye(6).reshape(2, 3, 6)


def _pairs(x):
    values, vectors = np.linalg.eig(x - x.T + 0.1 * x)
    order = np.argsort(np.imag(values) + 0.1 * np.real(values))
    return values[order], projectors(vectors[:, order])


def _singular_projectors(x):
    left, values, right = np.linalg.svd(x, full_matrices=False)
    return np.einsum("...ik,...kj->...kij", left, right), values


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name):
    check(*PRODUCTS[name])


@pytest.mark.parametrize("name", NORMS)
def test_norm(name):
    check(*NORMS[name])


@pytest.mark.parametrize("name", FACTORS)
def test_factor(name):
    check(*FACTORS[name])


SECOND = (
    "slogdet", "slogdet complex", "cholesky", "qr tall", "qr wide", "svd wide", "svd tall", "svdvals", "eigh",
    "eigvalsh", "eig", "eigvals", "pinv", "lstsq", "inv", "det",
)  # fmt: skip


@pytest.mark.parametrize("name", SECOND)
def test_second_order_of_factors(name):
    check(*FACTORS[name], second=True)


REFUSED = {
    "svd full": (lambda x: np.sum(np.linalg.svd(x)[0]), TALL, "full_matrices=False"),
    "qr complete": (lambda x: np.sum(np.linalg.qr(x, mode="complete")[0]), TALL, 'mode="reduced"'),
    "complex points": (
        lambda x: np.sum(np.abs(np.gradient(np.arange(5.0), 1j * x[:, 0]))),
        TALL,
        "Write the differences",
    ),
    "a cast of complex values": (lambda x: np.real(special.lqn(2, 1j * x[0, 0])[0][1]), TALL, "Take .real"),
    "Lyapunov's equation": (
        lambda x: np.sum(np.abs(linalg.solve_continuous_lyapunov(np.ones((3, 3)), 1j * x))),
        SQUARE,
        "all as complex",
    ),
    "Sylvester's equation": (
        lambda x: np.sum(np.abs(linalg.solve_sylvester(1j * x, np.ones((3, 3)), x))),
        SQUARE,
        "all as complex",
    ),
    "qr raw": (lambda x: np.sum(np.linalg.qr(x, mode="raw")[0]), TALL, 'mode="reduced"'),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_determined_is_refused(name):
    function, x, cure = REFUSED[name]
    with pytest.raises((errors.TracingError, errors.DifferentiationError), match=cure):
        yota.grad(function, x)


KINKS = {
    "norm at 0": (lambda x: np.linalg.norm(x), np.zeros(3), np.zeros(3)),
    "norm of rows at 0": (lambda x: np.sum(np.linalg.norm(x, axis=1)), np.array([[0.0, 0.0], [3.0, 4.0]]),
                          np.array([[0.0, 0.0], [0.6, 0.8]])),
    "norm 3 at 0": (lambda x: np.linalg.norm(x, 3), np.zeros(3), np.zeros(3)),
    "norm 1 at 0": (lambda x: np.linalg.norm(x, 1), np.zeros(3), np.zeros(3)),
    "complex norm at 0": (lambda x: np.linalg.norm(x), np.zeros(3, complex), np.zeros(3, complex)),
    "ties in the largest": (lambda x: np.linalg.norm(x, np.inf), np.array([1.0, -1.0, 0.5]), np.array([0.5, -0.5, 0])),
    "std of equal elements": (lambda x: np.std(x), np.full(3, 2.0), np.zeros(3)),
    "equal eigenvalues": (lambda x: np.sum(np.linalg.eigvalsh(x)), np.eye(3), np.eye(3)),
    "equal singular values": (lambda x: np.sum(np.linalg.svd(x, compute_uv=False)), np.eye(3), np.eye(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_convention(name):
    function, x, expected = KINKS[name]
    np.testing.assert_allclose(yota.grad(function, x)[1][0], expected, atol=1e-15)


WEIGHTS = np.random.default_rng(5).normal(size=(4, 4))
TURN = np.linalg.qr(WEIGHTS)[0]
REPEATED = [each * np.array([1.0, 1.0, 2.0, 3.0]) @ each.T for each in (np.eye(4), TURN)]


def exponential(a):
    w, v = np.linalg.eigh((a + a.T) / 2)
    return np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T))


def orthogonal(a):
    u, _, vh = np.linalg.svd(a)
    return np.sum(WEIGHTS * (u @ vh))


def largest(a):
    vector = np.linalg.eigh((a + a.T) / 2)[1][:, 3]
    return vector @ WEIGHTS @ vector


def cubes(a):
    return np.sum(np.linalg.eigvalsh((a + a.T) / 2) ** 3)


@pytest.mark.parametrize("a", REPEATED, ids=["equal", "equal up to rounding"])
def test_vectors_of_equal_eigenvalues_have_no_derivatives(a):
    assert np.isnan(yota.gradient(exponential)(a)).any()
    assert np.isnan(yota.gradient(orthogonal)(a)).any()
    assert np.isnan(yota.hvp(cubes)(a, WEIGHTS)).any()
    direction = WEIGHTS + WEIGHTS.T
    steps = [(f(a + 1e-5 * direction) - f(a - 1e-5 * direction)) / 2e-5 for f in (largest, cubes)]
    found = [np.sum(yota.gradient(f)(a) * direction) for f in (largest, cubes)]
    np.testing.assert_allclose(found, steps, rtol=1e-7)


@pytest.mark.parametrize(
    "loss",
    [
        lambda a: np.sum(np.linalg.cholesky(np.tril(a)) ** 3),
        lambda a: np.sum(np.linalg.cholesky(np.triu(a), upper=True) ** 3),
        lambda a: np.sum(np.linalg.eigvalsh(np.triu(a), "U") ** 3) + np.abs(np.linalg.eigh(np.tril(a))[1][0, 1]),
    ],
)
@pytest.mark.parametrize("kind", [float, complex])
def test_a_triangle_alone_has_its_own_gradient(loss, kind):
    random = np.random.default_rng(0)
    a = random.standard_normal((4, 4)).astype(kind)
    a = a @ a.conj().T + 3 * np.eye(4)
    if kind is complex:
        a = a + 0.3j * np.triu(a, 1) - 0.3j * np.tril(a, -1)

    def real(a):
        return np.sum(np.abs(loss(a)))

    assert yota.gradcheck(real, a)
    assert yota.grad(real, a)[0] == real(a)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: np.sum(np.linalg.cholesky(a) ** 3),
        lambda a: np.sum(np.linalg.eigh(a)[0] ** 3),
        lambda a: np.sum(np.linalg.eigvalsh(a, UPLO="U") ** 3),
    ],
)
def test_that_a_matrix_was_symmetric_is_a_guard(f: Any) -> None:
    """Of another matrix one triangle is read, which the code for symmetric ones does not know."""
    symmetric = np.eye(4) * 4 + 0.3
    other = symmetric + 0.1 * np.random.default_rng(0).random((4, 4))
    both = yota.value_and_grad(f, dynamic=False)
    both(symmetric)
    both(symmetric * (1 + 1e-13 * np.random.default_rng(1).random((4, 4))))
    with pytest.raises(yota.errors.StaleTapeError, match=r"`.*: the matrix was Hermitian .* pass dynamic=True"):
        both(other)
    sizes = yota.value_and_grad(f, args={"a": "float64[N,N]"})
    sizes(symmetric)
    with pytest.raises(yota.errors.StaleTapeError, match=r"the matrix was Hermitian .* leave args= out"):
        sizes(other)
    with pytest.raises(ValueError, match="whether the triangles of the matrix differ` decides on is False"):
        loaded(str(yota.generate(f, {"a": symmetric}, name="f"))).f(other)

    def branching(a: Any) -> Any:
        return f(a) if a[0, 0] > 4 else 2 * f(a)

    # Tapes of other matrices have no such guard, and stand in the tree of decisions even so.
    dynamic = yota.value_and_grad(branching, dynamic=True)
    for a in (symmetric, other, other - 0.4 * np.eye(4), symmetric - 0.4 * np.eye(4), symmetric, other):
        expected = np.zeros((4, 4))
        for place in np.ndindex(4, 4):
            step = np.zeros((4, 4))
            step[place] = 1e-6
            expected[place] = (branching(a + step) - branching(a - step)) / 2e-6
        found = dynamic(a)[1]
        if np.all(a == a.T):  # both triangles may have a share
            found, expected = found + found.T, expected + expected.T
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_equal_singular_values_share_the_slope_of_the_condition_number():
    slope = yota.gradient(np.linalg.cond)(np.diag([2.0, 2.0, 1.0]))
    np.testing.assert_allclose(slope, np.diag([0.5, 0.5, -2.0]), atol=1e-15)
    np.testing.assert_allclose(yota.gradient(np.linalg.cond)(np.eye(3)), np.zeros((3, 3)), atol=1e-15)
