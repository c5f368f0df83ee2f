"""Pass `loops`: small arrays that trips read and make element by element become numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.ir.tape import Tape
from yota.optimize import pipeline


def shapes(tape: Tape) -> list[tuple[int, ...]]:
    """Of the inputs of each loop's body, without the number of the trip."""
    bodies = [op.keyword("region").body for op in tape.ops if op.name == "loop"]
    return [body.types[entry.variable].shape for body in bodies for entry in body.inputs[1:]]


def turned(x: Any, angle: Any) -> Any:
    """A plane vector that turns, an element at a time."""

    def step(_: Any, pair: Any) -> Any:
        return np.array([pair[0] - angle * pair[1], pair[1] + angle * pair[0] * x[2]])

    return yota.fori(20, step, x[:2])


def plain(x: Any, angle: Any) -> Any:
    a, b = x[0], x[1]
    for _ in range(20):
        a, b = a - angle * b, b + angle * a * x[2]
    return np.array([a, b])


X = np.array([0.3, 0.8, 1.2])


def test_small_arrays_become_numbers() -> None:
    value, tape = yota.trace(turned, X, 0.1)
    np.testing.assert_array_equal(value, plain(X, 0.1))
    made = pipeline.run(tape)
    assert shapes(tape) != [()] * len(shapes(tape))
    assert shapes(made) == [()] * len(shapes(made))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_values_and_derivatives(target: str) -> None:
    found = yota.jacobian(turned, target=target, with_value=True)
    value, jacobian = found(X, 0.1)
    np.testing.assert_allclose(value, plain(X, 0.1), rtol=1e-15)
    steps = [plain(X + 1e-30j * unit, 0.1).imag / 1e-30 for unit in np.eye(3)]
    np.testing.assert_allclose(jacobian, np.array(steps).T, rtol=1e-13)


def test_arrays_that_are_needed_whole_stay() -> None:
    def function(x: Any) -> Any:
        return yota.fori(5, lambda _, y: np.array([y[0] * np.sum(y), y[1] + x[0]]), x[:2])

    value, tape = yota.trace(function, X)
    y = X[:2].copy()
    for _ in range(5):
        y = np.array([y[0] * np.sum(y), y[1] + X[0]])
    np.testing.assert_allclose(value, y, rtol=1e-14)
    np.testing.assert_allclose(yota.batch(function)(np.array([X, X]))[1], y, rtol=1e-14)
    assert pipeline.run(tape).outputs


def test_elements_that_nobody_reads() -> None:
    def function(x: Any) -> Any:
        return yota.fori(6, lambda _, y: np.array([y[1], y[1] * x[2], 1.5]), x)

    y = X
    for _ in range(6):
        y = np.array([y[1], y[1] * X[2], 1.5])
    np.testing.assert_allclose(yota.batch(function)(np.array([X, X]))[0], y, rtol=1e-14)
    np.testing.assert_allclose(yota.jacobian(function)(X)[1, 1], X[2] ** 6, rtol=1e-14)
