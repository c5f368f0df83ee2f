"""Axes of points by argument and result, and results that are structures."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import yota
from tests.emit.compiled import has_compiler
from yota.api.batch import batch
from yota.errors import ArgumentError, TracingError

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="there is no C compiler"))]
DRAW = np.random.default_rng(0).normal


def mixed(x: Any, w: Any) -> Any:
    return (w @ x)[:, None] * x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize(
    ("in_axes", "out_axes"), [((1, None), 2), ((0, 2), 1), ((-1, 1), -1), ((0, 0), -3), ((None, 1), 0)]
)
def test_axes_are_those_of_jax(in_axes, out_axes, dtype, target):
    def points(shape, axis):
        return DRAW(size=shape if axis is None else np.insert(shape, axis % (len(shape) + 1), 5)).astype(dtype)

    x, w = points((3,), in_axes[0]), points((2, 3), in_axes[1])
    found = batch(mixed, in_axes=in_axes, out_axes=out_axes, target=target)(x, w)
    with jax.enable_x64(True):
        expected = np.asarray(jax.vmap(mixed, in_axes, out_axes)(x, w))
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype is np.float32 else 1e-12)


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class State:
    at: Any
    name: str = "state"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [0, 1, 4])
def test_results_that_are_structures(count, target):
    def f(x):
        return {"pair": Pair(np.sum(x), x * 2), "state": State(np.outer(x, x)), "list": [x[0], (1.5, None)]}

    found = batch(f, target=target)(points := DRAW(size=(count, 3)))
    assert type(found["pair"]) is Pair and type(found["state"]) is State and found["state"].name == "state"
    assert found["list"][1][1] is None
    np.testing.assert_allclose(found["pair"].first, points.sum(1))
    np.testing.assert_allclose(found["pair"].second, points * 2)
    np.testing.assert_allclose(found["state"].at, points[:, :, None] * points[:, None])
    np.testing.assert_allclose(found["list"][1][0], np.full(count, 1.5))


@pytest.mark.parametrize("target", TARGETS)
def test_axes_of_structures(target):
    def f(p, x):
        return {"a": p["w"] @ x, "b": p["s"] * np.sum(x), "c": np.sum(p["s"])}

    p = {"w": DRAW(size=(2, 4, 3)), "s": np.float64(2.0)}
    x = DRAW(size=(3, 4))
    found = batch(f, in_axes=({"w": 1, "s": None}, -1), out_axes={"a": 1, "b": 0, "c": None}, target=target)(p, x)
    np.testing.assert_allclose(found["a"], np.einsum("inj,jn->in", p["w"], x))
    np.testing.assert_allclose(found["b"], 2.0 * x.sum(0))
    assert np.shape(found["c"]) == () and found["c"] == 2.0


def test_derivatives_of_functions_with_axes():
    many = batch(lambda x, w: np.sum(np.sin(w * x)), in_axes=(1, None))
    x, w = DRAW(size=(3, 5)), DRAW(size=3)
    values, slopes = yota.value_and_grad(many)(x, w)
    np.testing.assert_allclose(values, np.sin(w[:, None] * x).sum(0))
    np.testing.assert_allclose(slopes, (w[:, None] * np.cos(w[:, None] * x)).T)
    direction = DRAW(size=(3, 5))
    product = yota.hvp(many)(x, w, direction)
    np.testing.assert_allclose(product, (-(w[:, None] ** 2) * np.sin(w[:, None] * x) * direction).T)
    total = yota.gradient(lambda x: np.sum(many(x, w) ** 2))(x)
    inner = np.sin(w[:, None] * x).sum(0)
    np.testing.assert_allclose(total, 2 * inner * w[:, None] * np.cos(w[:, None] * x))


def test_what_does_not_fit_is_refused():
    x = np.ones((3, 4))
    with pytest.raises(ArgumentError, match=r"in_axes=.* is for 2 arguments, and <lambda> was called with 1"):
        batch(lambda x: x, in_axes=(0, 1))(x)
    with pytest.raises(ArgumentError, match="points are along axis 2, and x has 2 axes"):
        batch(lambda x: x, in_axes=(2,))(x)
    with pytest.raises(ArgumentError, match="an axis is an integer"):
        batch(lambda x: x, in_axes=(1.0,))(x)
    with pytest.raises(ArgumentError, match="has no entry for 'b'"):
        batch(lambda p: p["a"], in_axes=({"a": 0},))({"a": x, "b": x})
    with pytest.raises(ArgumentError, match="different numbers of points"):
        batch(lambda x, y: x[0], in_axes=(0, 1))(x, x)
    with pytest.raises(ArgumentError, match="out_axes=None is for results that all points share"):
        batch(np.sum, out_axes=None)(x)
    with pytest.raises(ArgumentError, match="has 1 axes, and no axis 1"):
        batch(np.sum, out_axes=1)(x)
    with pytest.raises(ArgumentError, match="leave over= out"):
        batch(np.sum, over=0, in_axes=(0,))
    with pytest.raises(ArgumentError, match="give one or the other"):
        batch(np.sum, axis=-1, out_axes=1)
    with pytest.raises(TracingError, match="returned a set"):
        batch(lambda x: {"a": {1.0}})(x)
