"""Every kind of derivative of functions with plain Python loops, against these functions run by Python."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.generated import loaded
from tests.loops.test_rolled import PLAIN, X, delayed, differs, filled, sine, stacked, triangular

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
