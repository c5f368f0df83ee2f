"""Derivatives of functions that return something beside the value: ``has_aux=True``."""

from __future__ import annotations

import collections
import dataclasses
import pickle
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError, DifferentiationError, TracingError
from yota.run.machine import native

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]
X, W = np.array([0.3, 0.7]), np.array([1.0, 2.0])


class Parts(NamedTuple):
    hidden: Any
    name: str


def f(x, w, *, scale=1.0):
    hidden = np.tanh(w * x) * scale
    aux = {"parts": Parts(hidden, "tanh"), "most": [np.max(hidden), None, 2.5], "n": 3, "flag": True, "x": x}
    return np.sum(hidden**2), aux


@dataclasses.dataclass
class Record:
    hidden: Any
    n: int


AUXILIARY = {
    "dataclass": (lambda a: Record(a, 3), lambda found: found.hidden),
    "named tuple": (lambda a: Parts(a, "t"), lambda found: found.hidden),
    "ordered dict": (lambda a: collections.OrderedDict(a=a), lambda found: found["a"]),
    "object": (lambda a: types.SimpleNamespace(a=a), lambda found: found.a),
    "nested": (lambda a: {"q": [Record((a, 1), 2)], "n": "x"}, lambda found: found["q"][0].hidden[0]),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", AUXILIARY)
def test_each_call_has_a_structure_of_its_own(kind, target):
    made, array = AUXILIARY[kind]
    fg = yota.value_and_grad(lambda x: (np.sum(x), made(x * 2)), has_aux=True, target=target)
    found = [fg(np.full(2, float(number)))[0][1] for number in range(6)]
    assert [array(each).tolist() for each in found] == [[2.0 * number] * 2 for number in range(6)]
    assert len(set(map(id, found))) == 6 and {*map(type, found)} == {type(made(X))}


def slopes(x, w, scale=1.0):
    t = np.tanh(w * x)
    inner = 2 * t * (1 - t**2) * scale**2
    return inner * w, inner * x


def check_aux(found, x, w, scale=1.0, rtol=1e-12):
    expected = f(x, w, scale=scale)[1]
    assert type(found["parts"]) is Parts and found["parts"].name == "tanh"
    assert found["n"] == 3 and type(found["n"]) is int and found["flag"] is True
    assert found["most"][1] is None and found["most"][2] == 2.5
    np.testing.assert_allclose(found["parts"].hidden, expected["parts"].hidden, rtol=rtol)
    assert found["parts"].hidden.dtype == expected["parts"].hidden.dtype
    np.testing.assert_allclose(found["most"][0], expected["most"][0], rtol=rtol)
    np.testing.assert_array_equal(found["x"], x)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("options", [{}, {"strict": True}, {"dynamic": True}, {"effort": "high"}])
def test_the_gradients(options, target):
    options = {**options, "target": target, "has_aux": True}
    fg = yota.value_and_grad(f, (0, 1), **options)
    for _ in range(2):
        (value, aux), found = fg(X, W, scale=2.0)
        np.testing.assert_allclose(value, f(X, W, scale=2.0)[0])
        np.testing.assert_allclose(found, slopes(X, W, 2.0))
        check_aux(aux, X, W, 2.0)
        (value, aux), found = fg(X, W)
        check_aux(aux, X, W)
    if options.get("strict"):
        np.testing.assert_array_equal(aux["parts"].hidden, np.tanh(W * X) * 1.0)
    slope, aux = yota.gradient(f, "w", **options)(X, W)
    np.testing.assert_allclose(slope, slopes(X, W)[1])
    check_aux(aux, X, W)
    (value, aux), g = yota.grad(f, X, W, **options)
    np.testing.assert_allclose(g[0], slopes(X, W)[0])
    check_aux(aux, X, W)


@pytest.mark.parametrize("target", TARGETS)
def test_other_kinds_of_numbers(target):
    fg = yota.value_and_grad(f, has_aux=True, target=target)
    x, w = X.astype(np.float32), W.astype(np.float32)
    (value, aux), slope = fg(x, w)
    assert value.dtype == slope.dtype == np.float32
    check_aux(aux, x, w, rtol=1e-5)

    def energy(z):
        wave = np.exp(1j * z)
        return np.sum(np.abs(wave) ** 2), wave

    z = np.array([1 + 2j, 0.3 - 0.4j])
    (value, wave), slope = yota.value_and_grad(energy, has_aux=True, target=target)(z)
    np.testing.assert_allclose(wave, np.exp(1j * z))
    np.testing.assert_allclose(slope, -2j * np.exp(-2 * z.imag))
    (value, aux), slope = yota.value_and_grad(lambda x: (np.sum(x), x * 2), has_aux=True, target=target)(
        np.zeros((0, 3))
    )
    assert value == 0 and aux.shape == slope.shape == (0, 3)


def test_branches_have_their_own_aux():
    def branching(x):
        return (x**2, {"way": "up", "x": x}) if x > 0 else (-x, ("down", x))

    fg = yota.value_and_grad(branching, has_aux=True, dynamic=True)
    for x in (1.5, -2.0, 3.0, -1.0):
        (value, aux), slope = fg(x)
        assert (value, aux) == branching(x) and slope == (2 * x if x > 0 else -1.0)


def test_inside_of_others():
    fg = yota.value_and_grad(f, has_aux=True)
    points = np.stack([X, X + 1])
    (values, aux), found = yota.batch(fg, in_axes=(0, None))(points, W)
    (again, _), others = yota.value_and_grad(yota.batch(f, in_axes=(0, None)), has_aux=True)(points, W)
    for row, x in enumerate(points):
        np.testing.assert_allclose([values[row], again[row]], f(x, W)[0])
        np.testing.assert_allclose([found[row], others[row]], [slopes(x, W)[0]] * 2)
        np.testing.assert_allclose(aux["parts"].hidden[row], np.tanh(W * x))
    total = yota.gradient(lambda x: np.sum(fg(x, W)[0][1]["parts"].hidden) + np.sum(fg(x, W)[1]))
    plain = yota.gradient(lambda x: np.sum(np.tanh(W * x)) + np.sum(2 * np.tanh(W * x) * (1 - np.tanh(W * x) ** 2) * W))
    np.testing.assert_allclose(total(X), plain(X))
    assert yota.gradcheck(lambda x: np.sum(fg(x, W)[1] ** 2), X)


def test_structures_and_seeds():
    (value, aux), found = yota.value_and_grad(lambda p: (np.sum(p["a"] * X), p), has_aux=True)({"a": 2.0, "b": "text"})
    assert aux == {"a": 2.0, "b": "text"} and found[("a",)] == np.sum(X)
    (value, aux), g = yota.grad(lambda x: (x**2, x + 1), X, seed=W, has_aux=True)
    np.testing.assert_array_equal(aux, X + 1)
    np.testing.assert_allclose(g[0], 2 * X * W)


@pytest.mark.parametrize("target", TARGETS)
def test_the_jacobian(target):
    def pair(x):
        return np.sin(x) * x[0], {"x": x * 2}

    expected = yota.jacobian(lambda x: np.sin(x) * x[0])(X)
    made = yota.jacobian(pair, has_aux=True, target=target)
    matrix, aux = made(X)
    np.testing.assert_allclose(matrix, expected)
    np.testing.assert_array_equal(aux["x"], X * 2)
    (value, aux), matrix = yota.jacobian(pair, has_aux=True, with_value=True, target=target)(x=X)
    np.testing.assert_allclose(value, np.sin(X) * X[0])
    matrices, aux = yota.batch(yota.jacobian(pair, has_aux=True))(np.stack([X, W]))
    np.testing.assert_allclose(matrices[0], expected)
    assert "1 compiled" in repr(made)


def test_pickles_keep_it():
    fg = pickle.loads(pickle.dumps(yota.gradient(f, has_aux=True)))
    np.testing.assert_allclose(fg(X, W)[0], slopes(X, W)[0])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ArgumentError, match=r"returns \(value, aux\), and sum returned a float64"):
        yota.gradient(np.sum, has_aux=True)(X)
    with pytest.raises(ArgumentError, match="returned 3 values"):
        yota.gradient(lambda x: (np.sum(x), x, x), has_aux=True)(X)
    with pytest.raises(DifferentiationError, match="a gradient needs a scalar"):
        yota.gradient(lambda x: (x, x), has_aux=True)(X)
    with pytest.raises(TracingError, match="returned a set"):
        yota.gradient(lambda x: (np.sum(x), {1.0}), has_aux=True)(X)
    with pytest.raises(ArgumentError, match="leave args= out"):
        yota.gradient(f, has_aux=True, args={"x": "float64[N]", "w": "float64[N]"})
