"""``value_and_grad(f, args=...)``: compiled once for all sizes, never traced again, and never silently stale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

import yota
from tests.package.test_sizes import looping
from yota.errors import ArgumentError, StaleTapeError

RANDOM = np.random.default_rng(5)
SIZES = (1, 2, 3, 50, 1000)


def pairs(x, scale):
    one, other = np.triu_indices(len(x), 1)
    squared = np.sum((x[one] - x[other]) ** 2, axis=1)
    return scale * np.sum(np.exp(-squared)) / len(x)


def test_one_compilation_serves_all_sizes() -> None:
    runs = []

    def counted(x, scale):
        runs.append(len(x))
        return pairs(x, scale)

    both = yota.value_and_grad(counted, (0, 1), args={"x": "float64[N,3]", "scale": "float"})
    known = len(runs)
    single = yota.value_and_grad(pairs, (0, 1))
    for size in (1, 2, 7, 60):
        x = RANDOM.normal(size=(size, 3))
        value, (dx, dscale) = both(x, 1.5)
        expected, (wanted, slope) = single(x, 1.5)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(dx, wanted, rtol=1e-10, atol=1e-13)
        assert dscale == pytest.approx(slope, rel=1e-12)
    assert len(runs) == known


def test_against_a_gradient_written_by_hand() -> None:
    both = yota.value_and_grad(rosen, args={"x": "float64[N]"})
    for size in (2, 3, 11, 500):
        x = RANDOM.normal(size=size)
        value, gradient = both(x)
        assert value == pytest.approx(rosen(x), rel=1e-12)
        np.testing.assert_allclose(gradient, rosen_der(x), rtol=1e-10, atol=1e-10)
    assert minimize(both, np.full(5, 0.9), jac=True).success


@dataclass
class Layer:
    W: Any
    b: Any


def dense(layer, X, power=2):
    return np.mean(np.tanh(X @ layer.W + layer.b) ** power)


def test_structures_and_static_values() -> None:
    specs = {"layer": "Layer(W=float64[D,K], b=float64[K])", "X": "float64[N,D]", "power": "4"}
    both = yota.value_and_grad(dense, args=specs)
    for n, d, k in ((1, 1, 1), (5, 2, 3), (2, 40, 1)):
        layer, X = Layer(RANDOM.normal(size=(d, k)), RANDOM.normal(size=k)), RANDOM.normal(size=(n, d))
        value, found = both(layer, X, 4)
        expected, wanted = yota.value_and_grad(dense)(layer, X, 4)
        assert value == pytest.approx(expected, rel=1e-12)
        assert list(found) == [("W",), ("b",)]
        for path, part in wanted.items():
            np.testing.assert_allclose(found[path], part, rtol=1e-10, atol=1e-14)
        assert both(layer, X=X, power=4)[0] == value
        with pytest.raises(ArgumentError, match="other static values"):
            both(layer, X, 3)
        with pytest.raises(ArgumentError, match="another structure"):
            both([layer.W, layer.b], X, 4)


def test_sizes_must_agree() -> None:
    both = yota.value_and_grad(lambda a, b: np.sum(a * b), args={"a": "float64[N]", "b": "float64[N]"})
    with pytest.raises(ValueError, match=r"b has shape \(4,\), not \(N\) with N = 3"):
        both(np.ones(3), np.ones(4))
    with pytest.raises(TypeError, match="a has dtype complex128, not float64"):
        both(np.ones(3, complex), np.ones(3))


def guarded(x):
    return np.sum(x**2) if x[0] > 0 else np.sum(x)


def test_decisions_are_checked_at_each_call() -> None:
    both = yota.value_and_grad(guarded, args=["float64[N]"])
    assert both(np.array([1.0, 2.0]))[1].tolist() == [2.0, 4.0]
    with pytest.raises(StaleTapeError, match=r"return np.sum\(x\*\*2\) if x\[0\] > 0 .*np.where"):
        both(np.array([-1.0, 2.0, 3.0]))


def test_what_is_captured_is_never_stale() -> None:
    weights = np.array([1.0, 2.0])
    power = 2

    def f(x):
        return np.sum(x**power) * np.sum(weights)

    both = yota.value_and_grad(f, args={"x": "float64[N]"})
    assert both(np.ones(3))[0] == 9.0
    weights[0] = 3.0
    assert both(np.ones(3))[0] == 15.0
    power = 3
    assert both(np.full(2, 2.0))[1].tolist() == [60.0, 60.0]


def test_inside_of_a_trace() -> None:
    first = yota.gradient(lambda x: np.sum(x**3) / len(x), args={"x": "float64[N]"})
    np.testing.assert_allclose(yota.jacobian(first)(np.array([1.0, 2.0])), np.diag([3.0, 6.0]))


@pytest.mark.parametrize("size", SIZES)
def test_strict_has_numpys_bits(size: int) -> None:
    def f(x):
        return np.sum(x * x * x) / len(x) - np.std(x)

    x = RANDOM.normal(size=size)
    assert yota.value_and_grad(f, args={"x": "float64[N]"}, strict=True)(x)[0] == f(x)


def test_a_loop_over_a_size_that_ends_early_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"looping, line \d+: `total = total .*Fix the size.*or write that line"):
        yota.value_and_grad(looping, args={"x": "float64[N]"})


@pytest.mark.parametrize("options, message", [({"target": "c"}, "leave args= out"), ({"dynamic": True}, "choose one")])
def test_options_that_do_not_fit(options: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        yota.value_and_grad(guarded, args={"x": "float64[N]"}, **options)
