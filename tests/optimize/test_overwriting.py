"""Adjoints of arrays that were written into need no copies of them."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from tests.optimize.tapes import names
from yota.optimize.pipeline import run


def many_additions(x):
    y = x * x
    for _ in range(3):
        y[1:] += 0.5 * y[:-1]
        y[:-2] *= y[2:]
    return np.sum(y * y)


def parts(x):
    y = np.zeros(6)
    y[:3] = x[3:]
    y[3:] = x[:3] * 2.0
    y[1:5] += x[:4]
    return np.sum(np.sin(y))


@pytest.mark.parametrize("f", [many_additions, parts])
def test_gradients_by_complex_steps(f):
    x = np.random.default_rng(0).normal(size=6)

    def complex_f(x):
        # `parts` makes a real array of its own.
        return many_additions(x) if f is many_additions else np.sum(np.sin(written(x)))

    def written(x):
        y = np.concatenate([x[3:], x[:3] * 2.0])
        y[1:5] += x[:4]
        return y

    value, gradient = yota.value_and_grad(f)(x)
    expected = [complex_f(x + 1e-30j * one).imag * 1e30 for one in np.eye(6)]
    np.testing.assert_allclose(value, f(x))
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_the_adjoint_of_an_addition_in_place_is_not_copied():
    def f(x):
        y = x * 2.0
        y[10:20] += x[:10]
        return np.sum(y * y)

    _, g = yota.grad(f, np.ones(100))
    assert names(run(g.tape)).count("setitem") == 1


def test_signs_of_zeros_in_the_value():
    def f(x):
        y = x * 1.0
        y[1:3] = 0
        return y + np.pad(x[1:3], (1, 1))

    x = np.array([-0.0, -0.0, 1.0, -0.0])
    for target in ("numpy", "c"):
        found = yota.compile(yota.trace(f, x)[1], target=target)(x)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(f(x)))
