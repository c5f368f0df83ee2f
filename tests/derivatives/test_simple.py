"""`simplegrad` calls the generated function itself where it can, and refuses what it was not compiled for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError

W, X = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])


def weighted(w: Any, x: Any) -> Any:
    return np.sum(w * w * x)


def test_values_and_gradients() -> None:
    gradient = yota.simplegrad(weighted, W, X)
    for w in (W, W[::-1], np.stack([W, W])[:, 0:3][1]):
        value, dw, dx = gradient(w, X)
        assert value == np.sum(w * w * X)
        np.testing.assert_array_equal(dw, 2 * w * X)
        np.testing.assert_array_equal(dx, w * w)


def test_the_generated_function_is_called_at_once() -> None:
    gradient = yota.simplegrad(weighted, W, X)
    gradient._prepared = None  # type: ignore[assignment]
    assert gradient(W, X)[0] == np.sum(W * W * X)


@pytest.mark.parametrize(
    "args",
    [(W.astype(np.float32), X), (np.ones(4), X), (W,), (W, X, X), (W, 1.0), (W.reshape(1, 3), X), (W + 0j, X)],
)
def test_other_arguments_are_refused(args: tuple[Any, ...]) -> None:
    with pytest.raises(ArgumentError):
        yota.simplegrad(weighted, W, X)(*args)


def test_arguments_that_the_generated_function_does_not_take_as_they_are() -> None:
    value, dw, dx = yota.simplegrad(weighted, W, X.astype(">f8"))(W, X.astype(">f8"))
    np.testing.assert_array_equal(dx, W * W)
    value, dp = yota.simplegrad(lambda p: np.sum(p["w"] * p["x"]), {"w": W, "x": X})({"w": X, "x": W})
    assert value == np.sum(W * X)
    np.testing.assert_array_equal(dp[("w",)], W)
    value, dw, count = yota.simplegrad(lambda w, n: n * np.sum(w), W, 3)(W, 3)
    assert (value, count) == (18.0, None)
    value, dw = yota.simplegrad(lambda w: w * w, 3.0)(4.0)
    assert (value, dw) == (16.0, 8.0)
    value, dw = yota.simplegrad(lambda w: np.sum(w * w), np.array(3.0))(np.array(4.0))
    assert (value, dw) == (16.0, 8.0)
    assert isinstance(dw, np.ndarray)


@pytest.mark.parametrize("wrt", [(0, 1), (1, 0), (1,), ("x", "w"), None])
def test_several_gradients_come_as_a_tuple_in_the_order_asked_for(wrt: Any) -> None:
    function = yota.value_and_grad(weighted, wrt)
    expected = {0: 2 * W * X, 1: W * W, "w": 2 * W * X, "x": W * W}
    for _ in range(3):
        value, gradients = function(W, X)
        assert value == np.sum(W * W * X)
        assert isinstance(gradients, tuple)
        for found, each in zip(gradients, (0, 1) if wrt is None else wrt, strict=True):
            np.testing.assert_array_equal(found, expected[each])
