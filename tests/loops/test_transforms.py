"""Every kind of derivative of functions with plain Python loops, against these functions run by Python."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.generated import loaded
from tests.loops.test_rolled import PLAIN, X, chained, delayed, differs, filled, sine, stacked, triangular
from tests.package.test_c import built, called

RNG = np.random.default_rng(1)
V, W = RNG.normal(size=(2, *X.shape))
SHORT = 1000


def slope_of(function, x, direction):
    return function(x + 1e-30j * direction).imag / 1e-30


@pytest.mark.parametrize("function", PLAIN, ids=lambda each: each.__name__)
def test_second_derivatives(function):
    products = yota.hvp(function, target="c" if function is stacked else "numpy")
    found = products(X, V) @ W
    assert len(products.tape) < SHORT
    step = 1e-5
    expected = (slope_of(function, X + step * V, W) - slope_of(function, X - step * V, W)) / (2 * step)
    assert found == pytest.approx(expected, rel=1e-6)
    slope = yota.jvp(function, (X,), (V,))[1]
    assert slope == pytest.approx(slope_of(function, X, V), rel=1e-9)


def smoothed(x):
    states = [x[:3]]
    for i in range(1, 250):
        states.append(0.5 * np.tanh(states[-1]) + x[i % 40] * 0.01 * i)
    return states[-1] * states[5]


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_jacobian(target):
    jacobian = yota.jacobian(smoothed, target=target)
    found = jacobian(X) @ V
    assert len(jacobian.tape) < SHORT
    np.testing.assert_allclose(found, slope_of(smoothed, X, V), rtol=1e-10)


def test_nested_gradients():
    def along(x, v):
        return np.sum(yota.gradient(sine)(x) * v)

    nested = yota.gradient(along)
    np.testing.assert_allclose(nested(X, V), yota.hvp(sine)(X, V), rtol=1e-12, atol=1e-15)
    assert len(nested.tape) < SHORT


def test_many_points():
    points = RNG.normal(size=(4, *X.shape))
    for function in (sine, delayed, filled, triangular):
        batched = yota.batch(yota.value_and_grad(function))
        values, slopes = batched(points)
        assert len(batched.tape) < SHORT
        for value, slope, point in zip(values, slopes, points, strict=True):
            assert value == pytest.approx(function(point), rel=1e-12)
            assert slope @ V == pytest.approx(slope_of(function, point, V), rel=1e-9)


def rosenbrock(x):
    return sum(100 * (x[i - 1] ** 2 - x[i]) ** 2 + (x[i - 1] - 1) ** 2 for i in range(1, len(x)))


def test_hessian_that_is_zero():
    def weighted(x):
        several = [x[0] for _ in range(600)]
        return 2.0 * x[0] + sum(each * k for k, each in enumerate(several))

    np.testing.assert_array_equal(yota.hessian(weighted)(X[:4]), np.zeros((4, 4)))


def test_sparse_hessian_of_a_chained_sum():
    x = RNG.normal(size=600)
    hessian = yota.hessian(rosenbrock, sparse=True)
    found = hessian(x)
    assert found.nnz == 3 * 600 - 2
    assert len(hessian.tape) < SHORT
    expected = np.diag(np.append(1200 * x[:-1] ** 2 - 400 * x[1:] + 2, 0) + np.append(0, np.full(599, 200.0)))
    expected += np.diag(-400 * x[:-1], 1) + np.diag(-400 * x[:-1], -1)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12)


def test_patterns_go_through_trips():
    scale = np.diag([1.0, 0.5, 0.25, 0.0])

    def spread(x, a):
        s, t, rows = x[:4], x[4], []
        for i in range(130):
            s = s + 0.01 * np.sin(s) + scale @ x[5:9] * a[1]
            t = t * 0.9 + np.sin(t)
            rows.append(np.tanh(x[139 - i]) * t if i > 120 else x[9 + i] * x[0])
        return np.concatenate([s, np.stack(rows)])

    x, a = RNG.normal(size=140), np.array([1.0, 3.0])
    jacobian = yota.jacobian(spread, sparse=True)
    found = jacobian(x, a)
    dense = np.stack([slope_of(lambda moved: spread(moved, a), x, each) for each in np.eye(140)], axis=1)
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-10, atol=1e-14)
    assert found.nnz < dense.size / 10


@pytest.mark.parametrize("function", [differs, filled, stacked])
def test_written_modules(function):
    module = yota.generate(function, {"x": X}, with_=("value", "gradient", "hvp"), strict=True, effort="quick")
    assert str(module).count("\n") < SHORT
    written = loaded(str(module))
    name = function.__name__
    assert getattr(written, name)(X) == function(X)
    assert getattr(written, f"{name}_gradient")(X) @ V == pytest.approx(slope_of(function, X, V), rel=1e-9)
    np.testing.assert_allclose(getattr(written, f"{name}_hvp")(X, V), yota.hvp(function)(X, V), rtol=1e-9, atol=1e-12)


def swung(x):
    """Four arrays are carried, one of them too large for the stack; there is a loop in the loop, and a table."""
    state, momentum, rows, total = x[:3], x[3:6] * 1.0, np.tile(x, 10), 0.0
    for i in range(170):
        force = ROWS[i] @ state + 0.1 * np.sin(state)
        for _ in range(3):
            momentum = 0.99 * momentum - 0.001 * force * momentum[0]
        state = state + 0.01 * momentum
        rows = 0.5 * rows + 0.01 * np.cos(rows) * state[1]
        total = total + np.sum(rows) * TABLE[i % 7]
    return total + np.sum(state)


ROWS, TABLE = RNG.normal(size=(170, 3, 3)), RNG.normal(size=7)


def relaxed(x):
    def step(state, row):
        state = yota.fori(20, lambda k, y: 0.9 * y + 0.01 * k * np.sin(y) * row[0], state)
        return state, np.sum(state) * row[1]

    last, rows = yota.scan(step, x[:3], x[20:].reshape(50, 2))
    return np.sum(last) + np.sum(rows**2)


@needs_compiler
@pytest.mark.parametrize("function", [*PLAIN, swung, relaxed], ids=lambda each: each.__name__)
def test_written_c(function, tmp_path):
    name, contents = function.__name__, ("value", "gradient", "hvp")
    module = yota.generate(function, {"x": X}, target="c", with_=contents, effort="quick", self_test=True)
    source = module.files[f"{name}.c"]
    assert function is chained or "for (ptrdiff_t trip" in source
    library, value, slope, product = built(module, tmp_path), np.zeros(()), np.zeros(120), np.zeros(120)
    assert called(library, f"{name}_value_and_gradient", [X], [value, slope]) == 0
    assert value == pytest.approx(function(X), rel=1e-11)
    assert slope @ V == pytest.approx(slope_of(function, X, V), rel=1e-9)
    assert called(library, f"{name}_hvp", [X, V], [product]) == 0
    np.testing.assert_allclose(product, yota.hvp(function)(X, V), rtol=1e-8, atol=1e-10 * np.max(np.abs(product)))


@needs_compiler
def test_written_c_unrolls_trips_that_c_does_not_know(tmp_path):
    def solved(x):
        for i in range(180):
            x = np.linalg.solve(np.array([[2.0, x[0]], [x[1], 3.0]]), x + 0.1 * i) + 0.01 * np.sin(x)
        return np.sum(x)

    module = yota.generate(solved, {"x": X[:2]}, target="c", with_="gradient", effort="quick")
    library, value, slope = built(module, tmp_path), np.zeros(()), np.zeros(2)
    assert called(library, "solved_value_and_gradient", [X[:2]], [value, slope]) == 0
    np.testing.assert_allclose(slope, yota.gradient(solved)(X[:2]), rtol=1e-9)


def test_all_that_trips_carry_has_the_bits_of_numpy():
    def two(x):
        a, b = x[0], x[1]
        for i in range(200):
            a, b = 0.9 * np.tanh(a), np.tanh(0.3 * b + x[i % 24]) + 0.1 * np.tanh(b * i)
        return a + b

    gradient = yota.value_and_grad(two, strict=True)
    points = RNG.normal(size=(40, 24))
    assert [gradient(point)[0] for point in points] == [two(point) for point in points]
    assert "loop" in gradient.tape.operations


@needs_compiler
def test_written_c_counts_the_trips_of_loops_with_conditions(tmp_path):
    def doubled(x):
        _, found = yota.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + x[1], s[1] * x[0]), (0.0, x[0]))
        return found

    x = np.array([1.1, 0.5])
    module = yota.generate(doubled, {"x": x}, target="c", with_=("value", "gradient"), effort="quick")
    library, value, slope = built(module, tmp_path), np.zeros(()), np.zeros(2)
    for step, trips in [(0.5, 10), (0.25, 20)]:
        x[1] = step
        assert called(library, "doubled_value_and_gradient", [x], [value, slope]) == 0
        np.testing.assert_allclose([value, *slope], [1.1 ** (trips + 1), (trips + 1) * 1.1**trips, 0], rtol=1e-12)
    x[1] = 0.001
    assert called(library, "doubled_value_and_gradient", [x], [value, slope]) != 0
