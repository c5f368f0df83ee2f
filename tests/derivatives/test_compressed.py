"""Sparse Jacobians and Hessians of code that works on arrays as a whole, against complex steps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from yota.errors import DifferentiationError
from yota.transform.sparse.colouring import apart, star
from yota.transform.sparse.csr import library
from yota.transform.sparse.element_maps import Pairs

scipy_sparse = pytest.importorskip("scipy.sparse")

Array = np.ndarray
Function = Callable[[Any], Any]
RANDOM = np.random.default_rng(20)
FEW = np.where(RANDOM.random((9, 24)) < 0.15, RANDOM.standard_normal((9, 24)), 0.0)
PLACES = RANDOM.integers(0, 24, 40)


def complex_steps(f: Function, x: Array, step: float = 1e-30) -> Array:
    """The Jacobian by W. Squire and G. Trapp, "Using complex variables to estimate derivatives" (1998)."""
    columns = []
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1j * step
        columns.append(np.ravel(f(moved)).imag / step)
    return np.stack(columns, axis=1)


def laplacian(u: Any) -> Any:
    p = np.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4.0 * u


def written(x: Any) -> Any:
    y = np.zeros(30, x.dtype)
    y[2:26] = np.sin(x)
    y[5:9] += x[:4] * x[4:8]
    return y


def scattered(x: Any) -> Any:
    y = np.zeros(24, x.dtype)
    np.add.at(y, PLACES, x[PLACES[::-1]] ** 2)
    return y


# A function of 24 numbers, and how many entries its Jacobian has: None where the pattern may be more than the entries.
FUNCTIONS: dict[str, tuple[Function, int | None]] = {
    "elementwise": (lambda x: np.exp(x) * x, 24),
    "shifted": (lambda x: x[1:] - x[:-1] ** 2, 46),
    "strided": (lambda x: x[::2] * x[1::2], 24),
    "reversed": (lambda x: x * x[::-1], 48),
    "gathered": (lambda x: x[PLACES] ** 2, 40),
    "scattered": (scattered, None),
    "written": (written, 32),
    "padded": (lambda x: laplacian(x.reshape(4, 6)), 5 * 24 - 2 * 10),
    "broadcast": (lambda x: x.reshape(4, 6) * x[:6], 24 + 18),
    "outer": (lambda x: x[:3, None] * x[None, 3:], 2 * 3 * 21),
    "sums of rows": (lambda x: np.sum(x.reshape(4, 6) ** 2, axis=1), 24),
    "sums of columns": (lambda x: np.sum(x.reshape(4, 6) ** 2, axis=0, keepdims=True), 24),
    "one number": (lambda x: np.sum(x**3), 24),
    "products": (lambda x: np.prod(x.reshape(4, 6), axis=1), 24),
    "running sums": (lambda x: np.cumsum(x.reshape(4, 6), axis=1), None),
    "known matrix": (lambda x: FEW @ np.sin(x), int(np.count_nonzero(FEW))),
    "known matrix on the right": (lambda x: np.sin(x) @ FEW.T, int(np.count_nonzero(FEW))),
    "matrix product": (lambda x: x[:12].reshape(3, 4) @ x[12:].reshape(4, 3), 9 * 8),
    "many matrix products": (lambda x: x.reshape(4, 2, 3) @ FEW[:3, :5], None),
    "stretched matrix products": (lambda x: x[:12].reshape(2, 2, 3) @ x[12:].reshape(1, 3, 4), 16 * 6),
    "einsum": (lambda x: np.einsum("bi,bi->b", x.reshape(4, 6), x.reshape(4, 6)), 24),
    "einsum of a known factor": (lambda x: np.einsum("ij,kj->ki", FEW, x[None] ** 2), int(np.count_nonzero(FEW))),
    "transposed": (lambda x: x.reshape(4, 6).T ** 2, 24),
    "joined": (lambda x: np.concatenate([x[:5] ** 2, np.ones(3), x[10:] * 2.0]), 19),
    "stacked": (lambda x: np.stack([x[0] * x[1], x[2], x[2] * 3.0]), 4),
    "rolled": (lambda x: np.roll(x, 3) * x, 48),
    "blocks": (lambda x: np.linalg.inv(x[:16].reshape(4, 2, 2) + 3.0 * np.eye(2)), 4 * 16),
    "where": (lambda x: np.where(np.arange(24) % 2 == 0, x**2, np.roll(x, 1)), None),
    "list": (lambda x: [x[0] * x[1], x[5]], 3),
    "constant": (lambda x: np.ones(5) + 0.0 * x[:5], 5),
    "nothing": (lambda x: np.ones(5) * 2.0, 0),
    "empty": (lambda x: x[:0] ** 2, 0),
}


@pytest.fixture(autouse=True)
def always_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small functions too go by products."""
    monkeypatch.setattr("yota.run.derivatives.matrix_entries.straight_line", lambda *_, **__: None)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian(name: str) -> None:
    f, count = FUNCTIONS[name]
    x = RANDOM.uniform(0.5, 1.5, 24)
    value, found = yota.jacobian(f, sparse=True, with_value=True)(x)
    expected = np.asarray(f(x))
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    assert found.format == "csr"
    assert found.shape == (expected.size, 24)
    assert found.has_canonical_format
    np.testing.assert_allclose(found.toarray(), complex_steps(lambda z: np.asarray(f(z)), x), rtol=1e-11, atol=1e-13)
    assert count is None or found.nnz == count


def test_transforms_of_rows() -> None:
    """A linear function, which complex steps cannot follow."""

    def f(x: Any) -> Any:
        return np.real(np.fft.fft(x.reshape(4, 6), axis=1))

    found = yota.jacobian(f, sparse=True)(np.ones(24))
    np.testing.assert_allclose(found.toarray(), np.stack([np.ravel(f(row)) for row in np.eye(24)], axis=1), atol=1e-14)
    assert found.nnz == 24 * 6


@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=needs_compiler)])
def test_one_of_several_results(target: str) -> None:
    """Each has places of its own among those of all."""
    a = RANDOM.standard_normal((3, 3)) + 4.0 * np.eye(3)
    found = yota.jacobian(lambda a: np.linalg.slogdet(a)[1], target=target)(a)
    np.testing.assert_allclose(found, np.linalg.inv(a).T, rtol=1e-12)
    s = a + a.T
    values, vectors = np.linalg.eigh(s)
    found = yota.jacobian(lambda s: np.linalg.eigh(s)[0], sparse=True, target=target)(s).toarray()
    expected = np.einsum("ik,jk->kij", vectors, vectors).reshape(3, 9)
    sym = (found.reshape(3, 3, 3) + found.reshape(3, 3, 3).transpose(0, 2, 1)).reshape(3, 9)
    np.testing.assert_allclose(sym, 2.0 * expected, rtol=1e-11, atol=1e-13)
    x = RANDOM.uniform(0.1, 0.9, 6)
    found = yota.jacobian(lambda x: np.modf(3.0 * x)[0] + np.frexp(x[:, None] * np.ones(2))[0][:, 1], sparse=True)(x)
    np.testing.assert_allclose(found.toarray(), np.diag(3.0 + 0.5 ** np.frexp(x)[1]), rtol=1e-14)


def test_zeros_of_a_matrix_outside_may_change() -> None:
    matrix = FEW.copy()
    jacobian = yota.jacobian(lambda x: matrix @ np.sin(x), sparse=True)
    x = RANDOM.uniform(0.5, 1.5, 24)
    for _ in range(3):
        found = jacobian(x)
        np.testing.assert_allclose(found.toarray(), matrix * np.cos(x), rtol=1e-13)
        assert found.nnz == np.count_nonzero(matrix)
        matrix[RANDOM.integers(9), RANDOM.integers(24)] += 1.0


def chained(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def chained_slope(x: Any) -> Any:
    g = np.zeros_like(x)
    inner = x[1:] - x[:-1] ** 2
    g[1:] += 200.0 * inner
    g[:-1] -= 400.0 * x[:-1] * inner + 2.0 * (1.0 - x[:-1])
    return g


def arrow(x: Any) -> Any:
    return np.sum(x[0] * np.sin(x[1:])) + x[0] ** 3


def arrow_slope(x: Any) -> Any:
    return np.concatenate([[np.sum(np.sin(x[1:])) + 3.0 * x[0] ** 2], x[0] * np.cos(x[1:])])


def grid(x: Any) -> Any:
    u = x.reshape(4, 6)
    return np.sum((u[1:] - u[:-1]) ** 4) + np.sum((u[:, 1:] - u[:, :-1]) ** 4)


def grid_slope(x: Any) -> Any:
    u = x.reshape(4, 6)
    g = np.zeros_like(u)
    for one, other in (((slice(1, None),), (slice(-1),)), ((slice(None), slice(1, None)), (slice(None), slice(-1)))):
        each = 4.0 * (u[one] - u[other]) ** 3
        g[one] += each
        g[other] -= each
    return g.ravel()


HESSIANS: dict[str, tuple[Function, Function, int]] = {
    "chained": (chained, chained_slope, 24 + 2 * 23),
    "arrow": (arrow, arrow_slope, 24 + 2 * 23),
    "grid": (grid, grid_slope, 24 + 2 * (3 * 6 + 4 * 5)),
    "diagonal": (lambda x: np.sum(np.exp(x)), np.exp, 24),
    "linear": (lambda x: np.sum(3.0 * x), lambda x: 3.0 + 0.0 * x, 0),
    "nothing": (lambda x: np.float64(2.0), lambda x: 0.0 * x, 0),
}


@pytest.mark.parametrize("name", HESSIANS)
@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=needs_compiler)])
def test_hessian(name: str, target: str) -> None:
    f, slope, count = HESSIANS[name]
    x = RANDOM.uniform(0.5, 1.5, 24)
    value, gradient, found = yota.hessian(f, sparse=True, with_value=True, target=target)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-13)
    np.testing.assert_allclose(gradient, slope(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.toarray(), complex_steps(slope, x), rtol=1e-11, atol=1e-11)
    assert found.nnz == count


def test_few_products_for_an_arrow() -> None:
    matrix = scipy_sparse.csr_array(np.eye(30, dtype=bool) | (np.arange(30) == 0) | (np.arange(30) == 0)[:, None])
    assert star(matrix).max() == 1
    assert apart(matrix).max() == 29


@pytest.mark.parametrize("number", range(20))
def test_colours_tell_entries_apart(number: int) -> None:
    random = np.random.default_rng(number)
    matrix = scipy_sparse.csr_array(random.random((25, 30)) < random.uniform(0.02, 0.3))
    colours = apart(matrix)
    for row in range(25):
        own = colours[matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]]
        assert len(set(own)) == len(own)
    square = random.random((30, 30)) < random.uniform(0.02, 0.2)
    dense = square | square.T | np.eye(30, dtype=bool)
    colours = star(scipy_sparse.csr_array(dense))
    for row, column in np.argwhere(dense):
        alone = [
            np.count_nonzero(colours[np.flatnonzero(dense[one])] == colours[other])
            for one, other in ((row, column), (column, row))
        ]
        assert 1 in alone, (row, column)


@pytest.mark.parametrize("sparse", [True, False])
def test_index_arrays_may_change(sparse: bool) -> None:
    jacobian = yota.jacobian(lambda x, where: x[where] ** 2, sparse=sparse)
    x = RANDOM.standard_normal(24)
    for where in (np.array([3, 1, 1]), np.array([0, 2, 5]), np.array([0, 2, 5])):
        expected = np.zeros((3, 24))
        expected[np.arange(3), where] = 2.0 * x[where]
        found = jacobian(x, where)
        np.testing.assert_allclose(found.toarray() if sparse else found, expected)


def test_long_arrays_go_by_products_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "yota.run.derivatives.matrix_entries.straight_line", lambda *_, **__: pytest.fail("scalar code")
    )
    x = RANDOM.standard_normal(700)
    found = yota.hessian(chained, sparse=True)(x)
    np.testing.assert_allclose(found.diagonal(1), -400.0 * x[:-1])
    assert found.nnz == 700 + 2 * 699


@pytest.mark.parametrize(
    "name, target",
    [
        *((name, "numpy") for name in FUNCTIONS),
        *(
            pytest.param(name, "c", marks=needs_compiler)
            for name in ("padded", "scattered", "broadcast", "known matrix", "empty", "nothing")
        ),
    ],
)
def test_whole_matrices(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are not asked to be sparse are spread out."""
    monkeypatch.setattr("yota.api.row_pullbacks.Rows", lambda *_, **__: pytest.fail("one row after the other"))
    f, _ = FUNCTIONS[name]
    x = RANDOM.uniform(0.5, 1.5, 24)
    value, found = yota.jacobian(f, with_value=True, target=target)(x)
    expected = np.asarray(f(x))
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    assert found.shape == (*expected.shape, 24)
    steps = complex_steps(lambda z: np.asarray(f(z)), x)
    np.testing.assert_allclose(found.reshape(steps.shape), steps, rtol=1e-11, atol=1e-13)


def test_matrices_of_matrices() -> None:
    x = RANDOM.uniform(0.5, 1.5, (4, 6))
    found = yota.jacobian(laplacian)(x)
    assert found.shape == (4, 6, 4, 6)
    np.testing.assert_allclose(found.reshape(24, 24), complex_steps(laplacian, x), atol=1e-13)
    hessian = yota.hessian(lambda u: np.sum(laplacian(u) ** 2))(x)
    half = complex_steps(laplacian, x)
    np.testing.assert_allclose(hessian.reshape(24, 24), 2.0 * half.T @ half, atol=1e-12)


def test_dense_matrices_and_no_scipy_take_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    x = RANDOM.uniform(0.5, 1.5, 100)
    np.testing.assert_allclose(yota.hessian(lambda x: np.sum(x) ** 2)(x), np.full((100, 100), 2.0))
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    np.testing.assert_allclose(yota.hessian(lambda x: np.sum(x**3))(x), np.diag(6.0 * x))


def test_float32_and_layouts() -> None:
    x = np.asfortranarray(RANDOM.uniform(0.5, 1.5, (4, 6)).astype(np.float32))
    found = yota.jacobian(laplacian, sparse=True)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.toarray(), complex_steps(laplacian, np.array(x)), rtol=1e-6)


def test_what_is_returned_is_the_callers() -> None:
    jacobian = yota.jacobian(lambda x: x[1:] * x[:-1], sparse=True)
    first = jacobian(np.arange(24.0))
    first.indices[:] = 0
    first.data[:] = 7.0
    np.testing.assert_array_equal(jacobian(np.ones(24)).toarray(), np.eye(23, 24) + np.eye(23, 24, 1))


def test_dense_patterns_are_refused() -> None:
    with pytest.raises(DifferentiationError, match=r"not sparse enough: 10000 of 100 x 100 .* leave sparse=True out"):
        yota.hessian(lambda x: np.sum(np.exp(x)) ** 2, sparse=True)(np.ones(100))
    with pytest.raises(DifferentiationError, match=r"cumsum makes too many .*sparse=True"):
        yota.jacobian(np.cumsum, sparse=True)(np.ones(20_000))
    with pytest.raises(DifferentiationError, match="complex function"):
        yota.jacobian(lambda x: x**2, sparse=True)(np.ones(100, complex))


def test_branches_are_seen() -> None:
    hessian = yota.hessian(
        lambda x: np.sum(x**3) if x[0] > 0 else np.sum(x[1:] ** 3 * x[:-1]), sparse=True, dynamic=True
    )
    x = RANDOM.uniform(0.5, 1.5, 24)
    assert hessian(x).nnz == 24
    assert hessian(-x).nnz > 24
    assert hessian(x).nnz == 24


def test_no_value_is_missing_from_a_planted_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison above can fail: a link that is left out is seen."""
    empty = np.zeros(0, np.int64)
    monkeypatch.setattr("yota.transform.sparse.dependence.link", lambda *_: Pairs(empty, empty))
    x = RANDOM.uniform(0.5, 1.5, 24)
    assert yota.jacobian(FUNCTIONS["shifted"][0], sparse=True)(x).nnz == 0
    assert library() is not None
