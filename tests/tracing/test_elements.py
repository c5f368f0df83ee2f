"""Elements that are written one by one, into the same concrete array: nothing else that holds it may change."""

from __future__ import annotations

import numpy as np
import pytest

import yota

X = np.linspace(0.1, 1.0, 9)


def copies(x):
    s = np.zeros(9, x.dtype)
    s[0], s[1] = x[0], x[1]
    copied = s.copy()
    s[2] = x[2]
    same = s
    same[3] = x[3]
    view = s[:]
    view[4] = x[4]
    turned = s.T
    s[5] = x[5]
    apart = s * 1.0
    s[6] = x[6]
    return np.sum(np.stack([copied, s, same, view, turned, apart]) * np.arange(54.0).reshape(6, 9))


def matrix(x):
    s = np.zeros((3, 3), x.dtype)
    for i in range(3):
        for j in range(3):
            s[i, j] = x[3 * i + j] * (s[i - 1, j] + 1)
    kept = []
    for i in range(5):
        s[1, 2] = s[0, 0] * s[1, 2] + i
        kept.append(s.copy())
        s[-1, -1] = s[1, 1]
        kept.append(s + 0)
        s[0, 0] = 2 * x[1]
        kept.append(s)
    return np.sum(np.stack(kept) * np.arange(15 * 9.0).reshape(15, 3, 3))


def nested(x):
    s = x.copy()
    s[0] = 3
    s[1] = s[0] * x[2]
    kept = np.asarray(s)
    s[2] = x[5] ** 2
    rows = [s]
    s = s * 1
    s[1] = x[7]
    s[3] = x[1]

    def inner(y):
        q = y * 1.0
        q[1] = s[2] * y[0]
        q[2] = q[1] ** 2
        return np.sum(q**2)

    s[4] = inner(s)
    s[5] = s[4] * s[1]
    return np.sum(kept * rows[0]) + np.sum(s**2)


def through_views(x):
    s = np.zeros(9, x.dtype)
    s[0] = x[0]
    for i in range(1, 9):
        s[i] = s[i - 1] * x[i]
        s[i] += 1
        s[i] *= x[0]
        if i == 4:
            whole, part = s, s[2:5]
            part[1] = 5 * x[3]
            s[2] = x[8]
    return np.sum(s) + np.sum(whole * 2) + np.sum(part * 3)


@pytest.mark.parametrize("function", [copies, matrix, nested, through_views], ids=lambda each: each.__name__)
def test_value_and_gradient(function):
    direction = np.random.default_rng(0).normal(size=9)
    slope = function(X + 1e-30j * direction).imag / 1e-30
    for form in (function, yota.interpreted(function)):
        value, gradient = yota.value_and_grad(form)(X)
        assert value == pytest.approx(function(X), rel=1e-13)
        assert gradient @ direction == pytest.approx(slope, rel=1e-11)
    traced, tape = yota.trace(function, X)
    assert traced == tape.play(X) == function(X)


def test_an_element_that_is_not_there_is_an_error():
    def f(x):
        s = np.zeros(9)
        s[0] = x[0]
        s[9] = x[1]
        return np.sum(s)

    with pytest.raises(IndexError):
        yota.trace(f, X)


def test_a_long_array_is_filled_in_the_time_of_its_elements():
    def smoothed(x):
        s = np.zeros(30_000)
        s[0] = x[0]
        for i in range(1, 30_000):
            s[i] = 0.3 * x[i % 9] + 0.7 * s[i - 1]
        return np.sum(s**2)

    value, gradient = yota.value_and_grad(smoothed)(X)
    assert value == pytest.approx(smoothed(X), rel=1e-12)
    moved = np.array([smoothed(X + 1e-3 * each) - smoothed(X - 1e-3 * each) for each in np.eye(9)]) / 2e-3
    np.testing.assert_allclose(gradient, moved, rtol=1e-9)
