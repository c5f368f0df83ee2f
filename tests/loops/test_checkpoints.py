"""Derivatives of long loops under a bound of memory, against those that keep everything, and against optimal counts."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import yota
from yota.errors import TracingError
from yota.transform.reverse.checkpoints import depth, states

X = np.random.default_rng(0).normal(size=3)


def scanned():
    def f(x, a):
        def step(carry, row):
            c, k = carry
            c = c + 0.01 * np.sin(c) * row * a
            return (c, k * 0.99 + a), np.sum(c) * k

        (c, k), ys = yota.scan(step, (x, 1.0), np.linspace(0, 1, 47))
        return np.sum(c**2) + np.sum(ys**2) + k

    return f


def counted():
    def f(x, a):
        return np.sum(yota.fori(53, lambda i, c: c + a * np.sin(c * i) / (i + 1.0), x) ** 2)

    return f


def nested():
    def f(x, a):
        def outer(i, c):
            return yota.fori(5, lambda j, d: d + 0.1 * a * np.cos(d + j), c) * 0.9

        return np.sum(yota.fori(11, outer, x) ** 2)

    return f


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize(("make", "memory"), [(scanned, 500), (counted, 1), (nested, 150)])
def test_a_bound_of_memory_changes_nothing(make, memory, target):
    value, wanted = yota.value_and_grad(make(), (0, 1), target=target)(X, 1.5)
    with yota.configure(memory=memory):
        found, slopes = yota.value_and_grad(make(), (0, 1), target=target)(X, 1.5)
    np.testing.assert_allclose(found, value, rtol=1e-14)
    for one, two in zip(slopes, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12)


def test_second_derivatives_under_a_bound():
    wanted = yota.hessian(scanned())(X, 1.5)
    with yota.configure(memory=500):
        np.testing.assert_allclose(yota.hessian(scanned())(X, 1.5), wanted, rtol=1e-12)


def test_the_bound_holds():
    def loss(x):
        return np.sum(yota.fori(400, lambda i, c: np.sin(c) + 0.01 * c, x) ** 2)

    peaks = []
    for part in (1.0, 0.2):
        with yota.configure(memory=int(part * 400 * 8000)):
            gradient = yota.gradient(loss)
            gradient(np.ones(1000))
        tracemalloc.start()
        gradient(np.ones(1000))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 0.2 * peaks[0]


def fewest_trips(trips, kept):
    """Trips that the binomial schedule runs forward (Griewank and Walther 2000, equation 2)."""
    times = next(r for r in range(1, trips + 1) if math.comb(kept + r, kept) >= trips)
    return times * trips - math.comb(kept + times, kept + 1)


@pytest.mark.parametrize(("levels", "excess"), [(1, 1.002), (2, 1.04), (3, 1.25), (4, 1.6)])
@pytest.mark.parametrize("trips", [1000, 2000, 4321, 100_000])
def test_levels_are_close_to_the_optimum(trips, levels, excess):
    kept = states(trips, levels)
    assert depth(trips, kept) == levels
    assert fewest_trips(trips, kept) <= levels * trips <= excess * fewest_trips(trips, kept)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_checkpoint_computes_once_more(target):
    def layer(w, x, scale=1.0):
        return {"h": np.tanh(w @ x) * scale}

    def network(layer):
        def f(w, x):
            for _ in range(4):
                x = layer(w, x, scale=2.0)["h"]
            return np.sum(x**2)

        return f

    w = np.random.default_rng(1).normal(size=(3, 3))
    kept, again = yota.checkpoint(layer), layer
    for order in (lambda f: yota.gradient(f, (0, 1), target=target), lambda f: yota.hessian(f, 1, target=target)):
        for one, two in zip(order(network(kept))(w, X), order(network(again))(w, X), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)
    assert kept(w, X)["h"] is not None and kept.__name__ == "layer"


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_stopped_gradient_is_a_constant(target):
    def f(x, y):
        held = yota.stop_gradient({"a": x * y, "b": [x, "text"]})
        return np.sum(x * held["a"] + y**2 * held["b"][0])

    x, y = np.array([2.0, 3.0]), 5.0
    value, (by_x, by_y) = yota.value_and_grad(f, (0, 1), target=target)(x, y)
    assert value == f(x, y)
    np.testing.assert_array_equal(by_x, x * y)
    np.testing.assert_array_equal(by_y, np.sum(2 * y * x))
    np.testing.assert_array_equal(yota.hessian(f, 0, target=target)(x, y), np.zeros((2, 2)))
    assert yota.stop_gradient(x) is x


def test_python_numbers_of_a_checkpoint_give_way():
    f = yota.checkpoint(lambda s, x: np.sum(np.sin(x * s)))
    x = X.astype(np.float32)
    value = yota.value_and_grad(f, (0, 1))(0.3, x)[0]
    assert value.dtype == f(0.3, x).dtype == np.float32


def test_a_checkpoint_of_constants():
    assert yota.value_and_grad(lambda x: np.sum(x) * yota.checkpoint(lambda y: 3.0)(x))(X)[1] == pytest.approx(3.0)


def test_a_checkpoint_that_writes_into_an_argument_is_refused():
    @yota.checkpoint
    def f(y):
        y[0] = 2 * y[0]
        return np.sin(y)

    def g(x):
        y = x * 1.0
        return np.sum(f(y) * y)

    with pytest.raises(TracingError, match=r"checkpoint\(f\) writes into an argument"):
        yota.value_and_grad(g)(X)
