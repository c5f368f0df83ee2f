"""Jacobians and Hessians: against complex steps and sympy, straight-line and by rows, sparse, batched, complex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import yota
from benchmarks.systems import cyclic, harmonics_by_recurrence, katsura
from tests.emit.compiled import has_compiler
from yota import batch, errors, hessian, jacobian

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="there is no C compiler"))]
X = np.array([0.3, -0.7, 1.1, 0.4])


def stepped(function: Any, x: np.ndarray) -> np.ndarray:
    """All partial derivatives by complex steps, in the shape of the result and then of the argument."""
    columns = []
    for position in np.ndindex(x.shape):
        z = x.astype(complex)
        z[position] += 1e-30j
        columns.append(np.imag(np.asarray(function(z))) / 1e-30)
    found = np.stack(columns, axis=-1)
    return found.reshape(*found.shape[:-1], *x.shape)


def chained(x: Any) -> Any:
    y = np.sin(x[0]) * x[1]
    z = np.exp(y) / (1 + x[2] ** 2)
    return np.array([[z * y, x[3] ** 3 - z], [x[0] * x[0], 2.0 * x[3] + x[2]]])


def rotated(q: Any) -> Any:
    """The matrix of a quaternion, written in place."""
    w, x, y, z = q / np.linalg.norm(q)
    R = np.zeros((3, 3), dtype=q.dtype)
    R[0] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
    R[1] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
    R[2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
    return R


def listed(x: Any) -> Any:
    return [x[0] * x[1], 2.0, x[2] ** 2]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [chained, listed, katsura(3), cyclic(4), harmonics_by_recurrence(3)])
def test_entries(function: Any, target: str) -> None:
    expected = stepped(lambda z: np.array(function(z)), X)
    found = jacobian(function, target=target)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    value, found = jacobian(function, with_value=True, target=target)(X)
    np.testing.assert_allclose(value, np.array(function(X), dtype=float), rtol=1e-13)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("target", TARGETS)
def test_each_of_several_values_keeps_the_order_of_its_sums(target: str) -> None:
    def several(x: Any) -> list[Any]:
        return [x[0] * x[1] + x[0] * x[2], (x[0] - x[1]) + (x[2] - x[3])]

    x = np.array([1.0, 1e17, 1e17, 1.0])
    value, _ = jacobian(several, with_value=True, target=target)(x)
    np.testing.assert_array_equal(value, several(x))


@pytest.mark.parametrize("target", TARGETS)
def test_quaternions(target: str) -> None:
    def smooth(q: Any) -> Any:
        return rotated(q) if q.dtype.kind != "c" else rotated_complex(q)

    def rotated_complex(q: Any) -> Any:
        # The norm of a complex vector is no analytic function; this continues the real one.
        scaled = q / np.sqrt(np.sum(q * q))
        return np.array(rotated_entries(*scaled))

    def rotated_entries(w: Any, x: Any, y: Any, z: Any) -> Any:
        return [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]

    np.testing.assert_allclose(jacobian(rotated, target=target)(X), stepped(smooth, X), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("target", TARGETS)
def test_second_derivatives_of_a_rational_function(target: str) -> None:
    def function(x: Any) -> Any:
        return x[0] ** 3 * x[1] / (1 + x[2] ** 2) - x[3] * x[1]

    symbols = sympy.symbols("x:4")
    matrix = sympy.hessian(function(symbols), symbols)
    slope = [sympy.diff(function(symbols), each) for each in symbols]
    at = dict(zip(symbols, X, strict=True))
    expected = np.array(matrix.subs(at).evalf(20), dtype=float)
    np.testing.assert_allclose(hessian(function, target=target)(X), expected, rtol=1e-12, atol=1e-14)
    value, gradient, found = hessian(function, with_value=True, target=target)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(gradient, [float(each.subs(at)) for each in slope], rtol=1e-12)
    np.testing.assert_allclose(value, function(X), rtol=1e-14)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("target", TARGETS)
def test_sparse_patterns(target: str) -> None:
    found = jacobian(chained, sparse=True, target=target)(X)
    assert found.format == "csr" and found.shape == (4, 4) and found.has_canonical_format
    np.testing.assert_array_equal(found.toarray() != 0, [[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 1, 1]])
    np.testing.assert_allclose(found.toarray(), stepped(chained, X).reshape(4, 4), rtol=1e-12, atol=1e-14)
    # A zero at one point is an entry like any other.
    assert jacobian(lambda x: x[0] * x[1], sparse=True)(np.zeros(2)).nnz == 2
    # A result belongs to its caller.
    again = jacobian(chained, sparse=True, target=target)
    first = again(X)
    first.indices[:] = 0
    np.testing.assert_allclose(again(X).toarray(), found.toarray())


def test_sparse_second_derivatives() -> None:
    def rosenbrock(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x = np.linspace(-1, 1, 30)
    value, gradient, found = hessian(rosenbrock, sparse=True, with_value=True)(x)
    assert found.nnz == 30 + 2 * 29
    np.testing.assert_allclose(found.toarray(), dense(x), rtol=1e-12)
    np.testing.assert_allclose(value, rosenbrock(x), rtol=1e-13)
    np.testing.assert_allclose(gradient, yota.gradient(rosenbrock)(x), rtol=1e-12)


def dense(x: np.ndarray) -> np.ndarray:
    """Rosenbrock's second derivatives by hand."""
    diagonal = np.zeros_like(x)
    diagonal[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal[1:] += 200
    return np.diag(diagonal) - 400 * (np.diag(x[:-1], 1) + np.diag(x[:-1], -1))


@pytest.mark.parametrize("target", TARGETS)
def test_complex_points(target: str) -> None:
    z = X + 1j * X[::-1]
    system = cyclic(4)
    symbols = sympy.symbols("z:4")
    matrix = sympy.Matrix(system(symbols)).jacobian(symbols)
    expected = np.array(sympy.lambdify(symbols, matrix)(*z), dtype=complex)
    found = jacobian(lambda x: np.stack(system(x)), target=target)(z)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # By rows too.
    found = jacobian(lambda x: np.fft.fft(x) * x, target=target)(z)
    expected = np.fft.fft(np.eye(4)) * z[:, None] + np.diag(np.fft.fft(z))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_complex_results_of_real_points() -> None:
    found = jacobian(lambda x: np.stack([np.exp(1j * x[0]), 2j * x[1]]))(X[:2])
    np.testing.assert_allclose(found, [[1j * np.exp(1j * X[0]), 0], [0, 2j]], rtol=1e-14)
    found = jacobian(np.fft.fft)(X)
    np.testing.assert_allclose(found, np.fft.fft(np.eye(4)), atol=1e-15)


def test_complex_functions_without_derivative() -> None:
    with pytest.raises(errors.DifferentiationError, match="not holomorphic"):
        jacobian(lambda z: np.conjugate(z) * z)(X + 1j)
    with pytest.raises(errors.DifferentiationError, match="a Hessian needs a real one"):
        hessian(lambda z: np.real(z[0] * z[1]))(X + 1j)
    # A real function has a gradient all the same: the direction of steepest ascent.
    np.testing.assert_allclose(jacobian(lambda z: np.abs(z) ** 2)(X + 1j), np.diag(2 * (X + 1j)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [0, -1])
def test_many_points(axis: int, target: str) -> None:
    points = np.random.default_rng(0).normal(size=(7, 4))
    expected = np.stack([stepped(chained, x) for x in points], axis=axis)
    rows = points if axis == 0 else np.ascontiguousarray(points.T)
    found = jacobian(batch(chained, axis=axis), target=target)(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(batch(jacobian(chained), axis=axis, target=target)(rows), found, rtol=1e-14)
    value, again = jacobian(batch(chained, axis=axis), with_value=True, target=target)(rows)
    np.testing.assert_allclose(again, found, rtol=1e-14)
    np.testing.assert_allclose(value, np.stack([chained(x) for x in points], axis=axis), rtol=1e-13)
    second = hessian(batch(lambda x: x[0] ** 2 * x[1] + x[2], axis=axis), target=target)(rows)
    assert second.shape == ((7, 4, 4) if axis == 0 else (4, 4, 7))
    np.testing.assert_allclose(np.moveaxis(second, axis, 0)[:, 0, 1], 2 * points[:, 0], rtol=1e-14)


def test_dtypes_and_numbers() -> None:
    found = jacobian(chained)(X.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, stepped(chained, X), rtol=1e-5, atol=1e-6)
    assert jacobian(lambda t: t**3)(2.0) == 12.0
    np.testing.assert_allclose(jacobian(lambda t: np.array([np.sin(t), t]))(0.5), [np.cos(0.5), 1])
    assert hessian(lambda t: t**3)(2.0) == 12.0
    matrix = X.reshape(2, 2)
    found = jacobian(np.linalg.inv)(matrix)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(found, -np.einsum("ik,lj->ijkl", inverse, inverse), rtol=1e-11)


def test_nothing_to_differentiate() -> None:
    np.testing.assert_array_equal(jacobian(lambda x: np.ones(2))(X), np.zeros((2, 4)))
    np.testing.assert_array_equal(jacobian(lambda x: x)(X), np.eye(4))
    np.testing.assert_array_equal(hessian(lambda x: 3 * x[0])(X), np.zeros((4, 4)))
    assert jacobian(lambda x: np.ones(2), sparse=True)(X).nnz == 0
    assert jacobian(lambda x: x[:0])(X).shape == (0, 4)


def test_what_is_not_chosen_has_no_derivative() -> None:
    found = jacobian(lambda x: np.array([np.where(x[0] > 0, np.sqrt(x[0]) * x[1], x[1])]))
    np.testing.assert_array_equal(found(np.array([0.0, 2.0])), [[0.0, 1.0]])
    np.testing.assert_array_equal(found(np.array([4.0, 2.0])), [[0.5, 2.0]])


def test_branches() -> None:
    def function(x: Any) -> Any:
        return [x[0] * x[1], x[0]] if x[0] > 0 else [x[1], x[1] ** 2]

    stale = jacobian(function, dynamic=False)
    stale(np.array([1.0, 2.0]))
    with pytest.raises(errors.StaleTapeError, match="if x"):
        stale(np.array([-1.0, 2.0]))
    found = jacobian(function, dynamic=True, sparse=True)
    np.testing.assert_array_equal(found(np.array([3.0, 2.0])).toarray(), [[2, 3], [1, 0]])
    np.testing.assert_array_equal(found(np.array([-3.0, 2.0])).toarray(), [[0, 1], [0, 4]])
    np.testing.assert_array_equal(found(np.array([3.0, 2.0])).toarray(), [[2, 3], [1, 0]])


def test_captured_data_is_read_afresh() -> None:
    scale = np.array([2.0, 3.0])
    found = jacobian(lambda x: [scale[0] * x[0] ** 2, scale[1] * x[1]])
    np.testing.assert_array_equal(found(np.array([1.0, 1.0])), [[4, 0], [0, 3]])
    scale[:] = 5, 7
    np.testing.assert_array_equal(found(np.array([1.0, 1.0])), [[10, 0], [0, 7]])


def test_by_name_and_with_other_arguments() -> None:
    def function(scale: float, x: Any, *, power: int = 2) -> Any:
        return [scale * x[0] ** power, x[1]]

    np.testing.assert_allclose(jacobian(function, "x")(2.0, X[:2]), [[4 * X[0], 0], [0, 1]])
    np.testing.assert_allclose(jacobian(function, 1)(2.0, X[:2], power=3), [[6 * X[0] ** 2, 0], [0, 1]])
    np.testing.assert_allclose(jacobian(function, "scale")(2.0, X[:2]), [X[0] ** 2, 0])
    np.testing.assert_allclose(jacobian(lambda w: w["a"] * 2)({"a": X})[("a",)], 2 * np.eye(len(X)))
    with pytest.raises(errors.ArgumentError, match="or a tuple of them"):
        jacobian(function, [0, 1])  # type: ignore[arg-type]


def test_inside_of_a_traced_function() -> None:
    def loss(x: Any) -> Any:
        return np.sum(jacobian(chained)(x) ** 2)

    step = 1e-6
    slope = [(loss(X + step * e) - loss(X - step * e)) / (2 * step) for e in np.eye(4)]
    np.testing.assert_allclose(yota.gradient(loss)(X), slope, rtol=1e-6)
    with pytest.raises(errors.TracingError, match="sparse"):
        yota.gradient(lambda x: jacobian(chained, sparse=True)(x).sum())(X)


def test_functions_of_long_arrays() -> None:
    x = np.linspace(0, 1, 100)
    found = jacobian(lambda x: np.fft.irfft(np.fft.rfft(x) ** 2))(x)
    inner = np.fft.irfft(np.fft.rfft(np.eye(100)), axis=-1)
    assert inner.shape == found.shape
    np.testing.assert_allclose(found @ x, 2 * np.fft.irfft(np.fft.rfft(x) ** 2), rtol=1e-10)


RANDOM = np.random.default_rng(3)
WIDE, TALL = RANDOM.normal(size=(5, 60)), RANDOM.normal(size=(60, 40))
TIMES = np.linspace(0, 1, 200)


def activated(x: Any) -> Any:
    return WIDE @ np.tanh(TALL @ x)


def normalised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / np.sqrt(np.sum(X**2, axis=1, keepdims=True))


def observations(p: Any) -> Any:
    return p[0] * np.exp(-p[1] * TIMES) + p[2:] @ np.stack([TIMES, TIMES**2, np.ones(200)])


def smoothed(x: Any) -> Any:
    return np.convolve(x, [1.0, 2.0, 3.0])


def exponentials(x: Any) -> Any:
    e = np.exp(x)
    return e / e.sum()


ARRAYS = [
    (activated, RANDOM.normal(size=40)),
    (normalised, RANDOM.normal(size=(20, 4))),
    (observations, np.array([1.0, 2.0, 0.3, 0.4, 0.5])),
    (smoothed, RANDOM.normal(size=50)),
    (exponentials, RANDOM.normal(size=50)),
    (lambda x: np.sin(x) * x, RANDOM.normal(size=90)),
    (lambda x: np.diff(x) ** 2 * x[1:], RANDOM.normal(size=90)),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("function", "x"), ARRAYS)
def test_array_code_stays_array_code(function: Any, x: np.ndarray, target: str) -> None:
    """A dense Jacobian takes as many lines as its function, whatever the sizes."""
    made = jacobian(function, with_value=True, target=target)
    value, found = made(x)
    np.testing.assert_allclose(value, function(x), rtol=1e-12)
    np.testing.assert_allclose(found, stepped(function, x), rtol=1e-10, atol=1e-12)
    assert made.source.count("\n") < (100 if target == "numpy" else 1200)


def test_products_with_diagonal_matrices() -> None:
    """What is elementwise after a matrix product multiplies the rows of the matrix, which is not multiplied again."""
    x = RANDOM.normal(size=40)
    made = jacobian(lambda x: np.tanh(TALL @ x))
    np.testing.assert_allclose(made(x), TALL / np.cosh(TALL @ x)[:, None] ** 2, rtol=1e-12)
    code = [line for line in made.source.splitlines() if "@" in line and "#" not in line]
    assert len(code) == 2  # the decorator, and the product in the function


def test_rules_of_the_user_count() -> None:
    steep = yota.diffrule(
        """
@elementwise
def steep(x: Real) -> y:
    y = 1 / (1 + exp(-x))
    d[y, x] = y * steep(-x)
"""
    )
    # The primal, differentiated as it stands, gives NaN at the end.
    x = np.array([-800.0, -1.0, 30.0])
    expected = [0.0, np.exp(-1.0) / (1 + np.exp(-1.0)) ** 2, np.exp(-30.0) / (1 + np.exp(-30.0)) ** 2]
    np.testing.assert_allclose(np.diagonal(jacobian(lambda x: steep(x))(x)), expected, rtol=1e-14)
    np.testing.assert_allclose(yota.gradient(lambda x: np.sum(steep(x)))(x), expected, rtol=1e-14)
    second = np.diagonal(hessian(lambda x: np.sum(steep(x)))(x))
    np.testing.assert_allclose(second[1], expected[1] * np.tanh(0.5), rtol=1e-14)
    assert np.all(np.isfinite(second))
