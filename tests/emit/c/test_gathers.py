"""Reads and sums by index arrays that are known when C is generated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.emit.programs import Writer, check, evaluate
from yota.emit.targets import c
from yota.ir.indexing import GATHER, Slice
from yota.optimize import pipeline
from yota.run.machine import native

pytestmark = needs_compiler

random = np.random.default_rng(3)
PLACES, J = random.integers(-30, 30, 200), random.integers(0, 6, 200)
K = random.integers(0, 30, (10, 20))
W, LINE = random.normal(size=(30, 6)), random.normal(size=3000)
FAR = random.integers(0, 3000, 20_000)


def pairs(x):
    one, other = np.triu_indices(len(x), 1)
    s = 1 / (0.1 + np.sum((x[one] - x[other]) ** 2, axis=1))
    return np.sum(s**6 - s**3)


def both_axes(x):
    return np.sum(np.sin(x[PLACES, J]) ** 2)


def computed(x):
    return np.sum(np.exp(x)[PLACES] * x[PLACES, ::-1])


def sliced_after(x):
    return np.sum(np.tanh(x[K][:, 3:7, 1:]) * 2)


def transposed(x):
    return np.sum((x.T[J, PLACES] - x[PLACES, 2]) ** 3)


def with_new_axis(x):
    return np.sum(x[0, K % 6] ** 3) * np.sum(x[K, None, 0] ** 2)


def apart(x):
    return np.sum(x.reshape(5, 6, 6)[K[:, :1] % 5, :, J[:20]] ** 2)


def few(x):
    return np.sum(x[:, [0, 0, 5]] ** 2) + np.sum(x[[3], [4]]) + np.prod(x[[1, 1, 2], [0, 0, 3]])


def one(x):
    return x[[3], [4]][0] ** 2


def in_turn(x):
    return np.sum(x[PLACES][K.reshape(-1)] ** 2 * np.arange(6))


def grid(x):
    z = np.cos(x)[PLACES[:, None], J[None, :]]
    return np.sum(z * z) + np.max(z)


def after_differences(x):
    return np.sum(np.diff(x, axis=0)[np.array([0, 5, 5, 1])] ** 2)


def into_an_array(x):
    y = np.zeros((50, 6))
    y[5:45] = x[PLACES[:40]]
    return np.sum(y[K] ** 3)


def nothing(x):
    return np.sum(x[np.zeros(0, int)]) + np.sum(x)


def taken(x):
    return np.sum(np.take(x, J, axis=1) * np.take(x, K)[0, 0])


FUNCTIONS = [pairs, both_axes, computed, sliced_after, transposed, with_new_axis, apart, few, one, in_turn, grid]
FUNCTIONS += [after_differences, into_an_array, nothing, taken]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_agrees_with_numpy(f: Callable[..., Any], dtype: str) -> None:
    x = W.astype(dtype)
    expected, gradient = yota.grad(f, x)
    found, compiled = yota.grad(f, x, target="c")
    tolerance = 200 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    np.testing.assert_allclose(compiled[0], gradient[0], rtol=tolerance, atol=tolerance * np.max(np.abs(gradient[0])))


def test_complex_numbers() -> None:
    def f(z):
        return np.sum(np.abs(z[PLACES] * z[J]) ** 2)

    z = random.normal(size=40) + 1j * random.normal(size=40)
    expected, gradient = yota.grad(f, z)
    found, compiled = yota.grad(f, z, target="c")
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(compiled[0], gradient[0], rtol=1e-12)


def test_kernels_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    load = native.load

    def noted(source: c.Source) -> Callable[..., Any]:
        sources.append(source)
        return load(source)

    monkeypatch.setattr(native, "load", noted)
    yota.grad(lambda x: both_axes(x), W, target="c")
    (source,) = sources
    assert "np.add.at" not in source.driver
    assert re.search(r"omp simd.* reduction", source.code)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_add_up(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x):
        y = x[FAR]
        for _ in range(20):
            y = y + np.sin(y) / 8
        return np.sum(y)

    monkeypatch.setenv("YOTA_NUM_THREADS", threads)
    expected, gradient = yota.grad(f, LINE)
    found, compiled = yota.grad(f, LINE, target="c")
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(compiled[0], gradient[0], rtol=1e-12)
    assert yota.grad(f, LINE, target="c")[1][0].tobytes() == compiled[0].tobytes()


def test_strict_values_have_the_bits_of_numpy() -> None:
    def f(x):
        y = np.zeros(6)
        np.add.at(y, J, x[PLACES, 0] * 0.1)
        np.add.at(y, J[:50], x[PLACES[:50], 1])
        return y[1] * y[2] + y[3]

    assert yota.grad(f, W, target="c", strict=True)[0] == f(W)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "int16"])
def test_index_arrays_may_be_arguments(dtype: str) -> None:
    def f(x, index, columns):
        return np.sum(np.sin(x[index, columns]) ** 2 * x[index, 0]) + np.sum(x[columns])

    places, columns = (PLACES % 30).astype(dtype), J.astype(dtype)
    both, plain = yota.value_and_grad(f, target="c"), yota.value_and_grad(f)
    for index in (places, places[::-1], places[::2].repeat(2)):
        value, gradient = both(W, index, columns)
        expected, other = plain(W, index, columns)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        np.testing.assert_allclose(gradient, other, rtol=1e-12, atol=1e-14)


def test_places_among_the_arguments_are_checked() -> None:
    write = Writer("gather")
    x, index = write.input("x", (30, 6)), write.input("index", (40,), "int64")
    picked = write("getitem", x, index, index=(GATHER, Slice(0, 6)))
    tape = write.finish(write("sum", write("square", picked)), write("multiply", picked, 2.0))
    source = c.generate(pipeline.run(tape))
    assert "checked_places(index, 30" in source.code
    function = native.load(source)
    values = random.integers(-30, 30, 40)
    before = values.copy()
    check(tape, function(W, values), evaluate(tape, W, values))
    np.testing.assert_array_equal(values, before)
    for wrong in (30, -31, 2**40):
        with pytest.raises(IndexError, match="out of bounds for an axis with size 30"):
            function(W, np.where(np.arange(40) == 7, wrong, 3))


def test_places_that_are_values_too_stay_with_numpy() -> None:
    def f(x, index):
        return np.sum(x[index] * index[:, None])

    both, plain = yota.value_and_grad(f, target="c"), yota.value_and_grad(f)
    np.testing.assert_allclose(both(W, PLACES % 30)[1], plain(W, PLACES % 30)[1], rtol=1e-12)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("first", [None, [0, 1], [-1, 0]])
@pytest.mark.parametrize("places", [[-6, 0], [0, -10], [-11, -1], [5, 0]])
def test_indices_out_of_bounds_are_refused(target: str, first: Any, places: list[int]) -> None:
    """Also those whose sum with the extent would count from the end once more."""
    function = yota.value_and_grad(lambda x, i: np.sum(x[i] ** 2 + np.take(x, i)), target=target)
    x = np.arange(5.0)
    if first is not None:
        function(x, np.array(first))
    with pytest.raises(IndexError, match=r"out of bounds for .*axis .*size 5"):
        function(x, np.array(places))
    assert function(x, np.array([-5, -1]))[1].tolist() == [1, 0, 0, 0, 9]
