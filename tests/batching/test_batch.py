"""Functions of one point over many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import has_compiler, needs_compiler
from yota.api.batch import batch
from yota.errors import ArgumentError, StaleTapeError

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="there is no C compiler"))]


def polynomial(x: Any) -> Any:
    return x[0] * x[1] ** 3 - 2 * x[2] * x[0] + np.sin(x[1])


def network(x: Any, W: Any) -> Any:
    h = np.tanh(W @ x)
    return np.sum(h**2) + np.max(x) * (x @ x) + np.sum(np.outer(h, x)[1:, 0])


def written(x: Any) -> Any:
    out = np.zeros(3)
    out[0] = x[1]
    out[1:] = x[:2] * 2
    return np.concatenate([out, np.array([x[0], 1.0])])


def solved(x: Any) -> Any:
    A = np.eye(3) * (2 + x[0] ** 2) + np.outer(x, x)
    return np.linalg.solve(A, x) + np.linalg.inv(A)[0] + np.linalg.det(A)


def rearranged(x: Any) -> Any:
    return np.cumsum(np.reshape(x, (1, 3)).T[::-1, 0]) + np.broadcast_to(np.mean(x), (3,)) + x[np.array([2, 0, 1])]


def products(x: Any) -> Any:
    return np.kron(x[:2], np.outer(x, x)) @ np.kron(x, np.eye(2))[0]


POINTS = np.random.default_rng(0).normal(size=(50, 3))
WEIGHTS = np.random.default_rng(1).normal(size=(4, 3))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("function", [polynomial, written, solved, rearranged, products])
def test_same_as_a_loop(function: Any, axis: int, target: str) -> None:
    expected = np.stack([function(x) for x in POINTS])
    found = batch(function, axis=axis, target=target)(POINTS if axis == 0 else POINTS.T)
    np.testing.assert_allclose(found, expected if axis == 0 or found.ndim == 1 else expected.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_values_and_gradients_of_all_points(target: str) -> None:
    both = yota.value_and_grad(polynomial)
    values, gradients = batch(both, target=target)(POINTS)
    np.testing.assert_allclose(values, [both(x)[0] for x in POINTS], rtol=1e-12)
    np.testing.assert_allclose(gradients, [both(x)[1] for x in POINTS], rtol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_some_arguments_are_the_same_for_all_points(target: str) -> None:
    both = yota.value_and_grad(network, wrt=(0, 1))
    values, (by_x, by_W) = batch(both, over="x", target=target)(POINTS, WEIGHTS)
    for number, x in enumerate(POINTS):
        value, (one, other) = both(x, WEIGHTS)
        np.testing.assert_allclose(values[number], value, rtol=1e-12)
        np.testing.assert_allclose(by_x[number], one, rtol=1e-11)
        np.testing.assert_allclose(by_W[number], other, rtol=1e-11)


@pytest.mark.parametrize("target", TARGETS)
def test_can_be_differentiated(target: str) -> None:
    def loss(X: Any, W: Any) -> Any:
        return np.sum(batch(network, over=0)(X, W))

    value, (by_X, by_W) = yota.value_and_grad(loss, wrt=(0, 1), target=target)(POINTS, WEIGHTS)
    one_point = yota.value_and_grad(network, wrt=(0, 1))
    each = [one_point(x, WEIGHTS) for x in POINTS]
    np.testing.assert_allclose(value, sum(one[0] for one in each), rtol=1e-12)
    np.testing.assert_allclose(by_X, [one[1][0] for one in each], rtol=1e-11)
    np.testing.assert_allclose(by_W, sum(one[1][1] for one in each), rtol=1e-11)


def test_results_may_be_nested() -> None:
    found = batch(lambda x: {"a": x[0], "b": [x * 2, 3.0]})(POINTS)
    np.testing.assert_array_equal(found["a"], POINTS[:, 0])
    np.testing.assert_array_equal(found["b"][0], POINTS * 2)
    np.testing.assert_array_equal(found["b"][1], np.full(50, 3.0))


def test_scalars_and_keywords() -> None:
    found = batch(lambda t, *, scale=1.0: scale * t**2)(np.arange(4.0), scale=2.0)
    np.testing.assert_array_equal(found, [0, 2, 8, 18])


def test_points_that_branch_in_different_ways_are_refused() -> None:
    found = batch(lambda x: x[0] if x[0] > 0 else x[1])
    positive = np.abs(POINTS)
    np.testing.assert_array_equal(found(positive), positive[:, 0])
    with pytest.raises(StaleTapeError, match=r"branches on the values of a point.*of 50 as the first.*np.where"):
        found(POINTS)


def test_branches_that_all_points_take_otherwise() -> None:
    def f(x: Any) -> Any:
        return x[0] if x[0] > 0 else x[1] * int(x[0])

    following, points = batch(f, dynamic=True), np.abs(POINTS)
    points[:, 0] = 2.5
    for sign in (1.0, -1.0, 1.0):
        np.testing.assert_array_equal(following(sign * points), [f(x) for x in sign * points])
    with pytest.raises(StaleTapeError, match="points of one batch branch in different ways"):
        following(POINTS)
    stale = batch(f)
    stale(points)
    with pytest.raises(StaleTapeError, match=r"no point branches as the first one did.*Pass dynamic=True"):
        stale(-points)


@pytest.mark.parametrize("target", TARGETS)
def test_points_are_compared_before_arrays_of_their_sizes_are_made(target: str) -> None:
    points = np.array([[1.1, 2.2, 3.3, 1.2, 2.1], [4.0, 5.0, 6.0, 4.0, 6.0], [1.0, 2.0, 3.0, 4.0, 4.0]])
    found = batch(lambda x: np.unique(np.round(x)), target=target)
    np.testing.assert_array_equal(found(points[:2]), [[1, 2, 3], [4, 5, 6]])
    with pytest.raises(StaleTapeError, match="points of one batch branch in different ways: 2 of 3"):
        found(points)


def test_indices_of_points_that_count_from_the_end() -> None:
    def f(x: Any, i: Any) -> Any:
        return x[i] * 2

    found, places = batch(f), np.array([[0, 1], [2, 1]])
    for each in (places, places - 3, places):
        np.testing.assert_array_equal(found(POINTS[:2], each), 2 * np.take_along_axis(POINTS[:2], places, axis=1))
    with pytest.raises(StaleTapeError, match=r"an array of indices counts from the end.*np.mod"):
        found(POINTS[:2], places - [[0, 0], [3, 0]])


def put(x: Any) -> Any:
    out = np.zeros((3, 4))
    out[1:, np.argsort(x)] = x * x
    np.add.at(out[0], np.argsort(x) // 2, x)
    return out


CUBE = np.arange(64.0).reshape(4, 4, 4)
BY_POINT: dict[str, Any] = {
    "order": lambda x: np.sort(x)[::-1] * x[np.argsort(x)],
    "columns": lambda x: np.outer(x, x)[:, np.argsort(x)],
    "of a constant": lambda x: CUBE[:, np.argsort(x)] @ x,
    "apart": lambda x: (CUBE * x)[np.argsort(x), :, np.argsort(-x)],
    "apart and shared": lambda x: (CUBE * x)[[0, 1, 2, 3], :, [1, 0, 3, 2]],
    "rows": lambda x: np.outer(x, x)[np.argsort(x)[:2]],
    "written": put,
    "statistics": lambda x: np.median(x) + np.quantile(x, 0.3) + np.ptp(x),
    "factors": lambda x: np.linalg.cholesky(np.outer(x, x) + np.eye(4)) @ x,
    "singular values": lambda x: np.linalg.svd(np.outer(x, x) + np.diag(x))[1],
    "least squares": lambda x: np.linalg.lstsq(np.outer(x, x) + np.eye(4), x, rcond=None)[0],
    "interpolated": lambda x: np.interp(0.3, np.array([0.0, 0.5, 1.0, 2.0]), x),
    "convolved": lambda x: np.convolve(x, x),
    "masked": lambda x: np.sum(x[x > -100.0]),
}


@pytest.mark.parametrize("count", [0, 1, 4, 6])  # 4 is the extent of other axes too
@pytest.mark.parametrize("name", BY_POINT)
def test_ops_by_what_each_point_has(name: str, count: int) -> None:
    """Places, factors and solutions that differ between points, with derivatives inside and outside of the batch."""
    function, points = BY_POINT[name], np.random.default_rng(2).normal(size=(count, 4))

    def loss(x: Any) -> Any:
        return np.sum(function(x) ** 2)

    found, gradients = batch(function)(points), batch(yota.gradient(loss))(points)
    outside = yota.gradient(lambda all_points: np.sum(batch(loss)(all_points)))(points)
    assert len(found) == count
    assert gradients.shape == outside.shape == (count, 4)
    for number, x in enumerate(points):
        np.testing.assert_allclose(found[number], function(x), rtol=1e-12, atol=1e-12)
        expected = yota.gradient(loss)(x)
        np.testing.assert_allclose(gradients[number], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(outside[number], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
def test_a_derivative_with_a_target_is_recorded_from_its_source(target: str) -> None:
    points = np.random.default_rng(3).normal(size=(3, 4))

    def loss(x: Any) -> Any:
        return np.sum((CUBE[:, np.argsort(x)] @ x) ** 2)

    found = batch(yota.gradient(loss, target=target))(points)
    for x, slopes in zip(points, found, strict=True):
        differences = [(loss(x + step) - loss(x - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
        np.testing.assert_allclose(slopes, differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [0, -1])
def test_no_points_have_no_results(axis: int, target: str) -> None:
    """A function that fails at zero and at one shows that no such point is made up."""

    def f(x: Any) -> Any:
        matrix = np.outer(x, x) - np.eye(3)
        return np.linalg.inv(matrix)[:2] / x[0]

    def empty(*shape: int) -> tuple[int, ...]:
        return (0, *shape) if axis == 0 else (*shape, 0)

    none = np.zeros(empty(3))
    assert batch(f, axis=axis, target=target)(none).shape == empty(2, 3)
    assert batch(yota.jacobian(f), axis=axis, target=target)(none).shape == empty(2, 3, 3)
    values, gradients = yota.value_and_grad(batch(polynomial, axis=axis), target=target)(none)
    assert values.shape == (0,)
    assert gradients.shape == none.shape
    both = batch(polynomial, axis=axis, target=target)
    assert both(none).dtype == np.float64
    points = POINTS if axis == 0 else POINTS.T
    np.testing.assert_allclose(both(points), [polynomial(x) for x in POINTS], rtol=1e-12)


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentError, match="different numbers of points"):
        batch(lambda x, y: x[0] * y[0])(POINTS, WEIGHTS)
    with pytest.raises(ArgumentError, match="without an array of points"):
        batch(lambda x: x * 2.0)(3.0)
    with pytest.raises(ArgumentError, match="first axis"):
        batch(polynomial, axis=1)


def test_compiled_once_for_each_kind() -> None:
    runs = []

    def counted(x: Any) -> Any:
        runs.append(1)
        return x[0] * 2

    many = batch(counted)
    many(POINTS), many(POINTS), many(POINTS[:10])
    assert len(runs) == 2


@pytest.mark.parametrize("target", TARGETS)
def test_value_and_grad_of_a_batch_is_point_by_point(target: str) -> None:
    values, gradients = yota.value_and_grad(batch(polynomial, axis=-1), target=target)(POINTS.T)
    both = yota.value_and_grad(polynomial)
    np.testing.assert_allclose(values, [both(x)[0] for x in POINTS], rtol=1e-12)
    np.testing.assert_allclose(gradients.T, [both(x)[1] for x in POINTS], rtol=1e-12)
    np.testing.assert_allclose(yota.gradient(batch(polynomial), target=target)(POINTS), gradients.T, rtol=1e-12)


def test_branches_on_what_is_the_same_for_all_points() -> None:
    def f(x: Any, s: float) -> Any:
        return np.sum(x) * s if s > 0 else np.sum(x * x)

    points = np.arange(6.0).reshape(3, 2)
    stale = batch(f, over=0)
    np.testing.assert_allclose(stale(points, 2.0), points.sum(axis=1) * 2)
    with pytest.raises(StaleTapeError, match="Pass dynamic=True"):
        stale(points, -1.0)
    found = batch(f, over=0, dynamic=True)
    for _ in range(2):
        np.testing.assert_allclose(found(points, 2.0), points.sum(axis=1) * 2)
        np.testing.assert_allclose(found(points, -1.0), (points**2).sum(axis=1))
    gradients = yota.value_and_grad(found, 0)
    np.testing.assert_allclose(gradients(points, 2.0)[1], np.full((3, 2), 2.0))


def system(x: Any) -> Any:
    n = len(x)
    return np.array([x[i] ** 2 + sum(x[j] * x[(i + j) % n] for j in range(n)) - x[i - 1] for i in range(n)])


@pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("size", [4, 5, 7])
def test_jacobians_over_points_are_one_loop(size: int, axis: int) -> None:
    x = np.random.default_rng(size).normal(size=(40, size))
    each = batch(yota.jacobian(system), axis=axis, target="c")
    found = np.moveaxis(each(x if axis == 0 else x.T.copy()), axis, 0)
    assert each.source.count("_loops(") == 2 and "np.stack" not in each.source
    for point, matrix in zip(x, found, strict=True):
        slopes = [system(point + 1e-30j * unit).imag / 1e-30 for unit in np.eye(size)]
        np.testing.assert_allclose(matrix, np.transpose(slopes), rtol=1e-14, atol=1e-14)


def chosen(x: Any, sign: float) -> Any:
    return np.sum(x**2) if sign > 0 else np.sum(x**3)


@pytest.mark.parametrize("derivative", [yota.value_and_grad, yota.gradient, yota.jacobian, yota.hessian])
def test_derivatives_follow_branches_when_they_are_asked_to(derivative: Any) -> None:
    found, one = derivative(batch(chosen, over=0), dynamic=True), derivative(chosen, dynamic=True)
    for sign in (1.0, -1.0, 2.0):
        parts, expected = found(POINTS, sign), [one(x, sign) for x in POINTS]
        if derivative is yota.value_and_grad:
            parts, expected = parts[1], [gradient for _, gradient in expected]
        np.testing.assert_allclose(parts, expected, rtol=1e-13)
    stale = derivative(batch(chosen, over=0), dynamic=False)
    stale(POINTS, 1.0)
    with pytest.raises(StaleTapeError):
        stale(POINTS, -1.0)


def test_sizes_with_names_are_refused() -> None:
    with pytest.raises(ArgumentError, match="args= compiles polynomial for all sizes"):
        yota.gradient(batch(polynomial), args={"x": "float64[N,3]"})


def test_points_in_the_last_argument() -> None:
    found = batch(lambda a, x: a * np.sum(x), over=-1)(np.float64(2.0), POINTS)
    np.testing.assert_allclose(found, 2 * POINTS.sum(axis=1))


@pytest.mark.parametrize("target", TARGETS)
def test_decisions_that_no_point_has_a_part_in(target):
    def path(x: Any) -> Any:
        costs = np.full((3, 3), np.inf)
        costs[0, 0] = 0.0
        for i in range(2):
            for j in range(2):
                costs[i + 1, j + 1] = x[2 * i + j] ** 2 + min(costs[i, j], costs[i, j + 1], costs[i + 1, j])
        return costs[2, 2]

    X = np.arange(1.0, 9.0).reshape(2, 4)
    value, gradient = batch(yota.value_and_grad(path, target=target))(X)
    on_the_way = [1, 0, 0, 1]
    np.testing.assert_allclose(value, np.sum(X**2 * on_the_way, axis=1))
    np.testing.assert_allclose(gradient, 2 * X * on_the_way)


@needs_compiler
def test_a_derivative_keeps_its_target() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(x) * np.sin(x))

    inner = yota.value_and_grad(f, target="c", strict=True)
    over = batch(inner)
    value, slope = over(POINTS)
    assert "target c" in repr(over)
    np.testing.assert_array_equal(value, [f(each) for each in POINTS])
    np.testing.assert_allclose(slope, np.exp(POINTS) * (np.sin(POINTS) + np.cos(POINTS)), rtol=1e-14)
    assert "target numpy" in repr(batch(inner, target="numpy"))
