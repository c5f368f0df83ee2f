"""Hessians of long scalar code: a loop over rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota


def fit(x: Any) -> Any:
    """Squared errors of 8 steps of Runge and Kutta, two numbers a step."""
    prey, hunters, error = x[4], 0.5, 0.0

    def rate(a: Any, b: Any) -> tuple[Any, Any]:
        return x[0] * a - x[1] * a * b, x[2] * a * b - x[3] * b

    for step in range(8):
        k1, l1 = rate(prey, hunters)
        k2, l2 = rate(prey + 0.05 * k1, hunters + 0.05 * l1)
        k3, l3 = rate(prey + 0.05 * k2, hunters + 0.05 * l2)
        k4, l4 = rate(prey + 0.1 * k3, hunters + 0.1 * l3)
        prey = prey + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        hunters = hunters + 0.1 / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
        error = error + (prey - 1.0 - 0.01 * step) ** 2 + (hunters - 0.6) ** 2
    return error


POINT = np.array([1.1, 0.9, 0.7, 0.8, 1.2])


def stepped(function: Any, x: np.ndarray) -> np.ndarray:
    """The Hessian by complex steps of the first argument and differences of the second."""
    size, small, step = x.size, 1e-30, 1e-5
    rows = []
    for unit in np.eye(size):
        slopes = [
            [function(x + shift + 1j * small * other).imag / small for other in np.eye(size)]
            for shift in (step * unit, -step * unit)
        ]
        rows.append((np.array(slopes[0]) - slopes[1]) / (2 * step))
    return np.array(rows)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_hessians_of_long_scalar_code(target: str) -> None:
    found = yota.hessian(fit, target=target)
    np.testing.assert_allclose(found(POINT), stepped(fit, POINT), rtol=1e-6, atol=1e-8)
    # One function has all rows.
    assert "for " in found.source
    np.testing.assert_allclose(found(POINT + 0.1), stepped(fit, POINT + 0.1), rtol=1e-6, atol=1e-8)


def test_sums_over_small_arrays_stay_array_code() -> None:
    times = np.linspace(0.1, 2.0, 24)

    def errors(x: Any) -> Any:
        waves = x[0] * x[1] ** times * np.tanh(x[2] * times + np.sin(x[3] * times)) * np.cos(times * np.exp(x[4]))
        return np.sum((waves - times) ** 2)

    point = np.array([0.9, 1.2, 0.5, 1.4, 0.3])
    found = yota.hessian(errors, target="numpy")
    np.testing.assert_allclose(found(point), stepped(errors, point), rtol=1e-6, atol=1e-8)
    assert len(found.source.splitlines()) < 400
    assert "math" not in found.source


def test_the_value_and_the_gradient_come_along() -> None:
    value, slope, hessian = yota.hessian(fit, with_value=True)(POINT)
    assert value == pytest.approx(fit(POINT), rel=1e-13)
    np.testing.assert_allclose(slope, yota.gradient(fit)(POINT), rtol=1e-11)
    np.testing.assert_array_equal(hessian, yota.hessian(fit)(POINT))


def test_rows_have_the_shape_of_the_argument() -> None:
    square = np.linspace(0.6, 1.1, 4).reshape(2, 2)

    def function(x: Any) -> Any:
        return fit([x[0, 0], x[0, 1], x[1, 0], x[1, 1], 1.2])

    found = yota.hessian(function)(square)
    assert found.shape == (2, 2, 2, 2)
    whole = stepped(lambda x: function(x.reshape(2, 2)), square.ravel())
    np.testing.assert_allclose(found.reshape(4, 4), whole, rtol=1e-6, atol=1e-8)


def test_by_a_number() -> None:
    def function(rate: Any, start: Any) -> Any:
        return fit([rate, 0.9, 0.7, 0.8, start])

    found = yota.hessian(function)(1.1, 1.2)
    assert found.shape == ()
    whole = stepped(lambda x: function(x[0], 1.2), np.array([1.1]))
    np.testing.assert_allclose(found, whole[0, 0], rtol=1e-6)


def test_branches_are_followed() -> None:
    def function(x: Any) -> Any:
        return fit(x) if x[0] > 1 else 2 * fit(x)

    found = yota.hessian(function, dynamic=True)
    for point, factor in ((POINT, 1), (POINT - 0.3, 2), (POINT, 1)):
        np.testing.assert_allclose(found(point), factor * stepped(fit, point), rtol=1e-5, atol=1e-7)


def orbit(x: Any) -> Any:
    """100 steps with few operations: a loop before it is differentiated."""
    place, speed, error = x[0], x[1], 0.0
    for step in range(100):
        speed = speed - 0.05 * (x[2] * place + x[3] * speed + 0.1 * place**3)
        place = place + 0.05 * speed
        error = error + (place - np.cos(0.05 * step)) ** 2
    return error


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_hessians_of_loops(target: str) -> None:
    point = np.array([0.9, 0.2, 1.1, 0.3])
    found = yota.hessian(orbit, target=target, with_value=True)
    value, slope, hessian = found(point)
    assert value == pytest.approx(orbit(point), rel=1e-12)
    np.testing.assert_allclose(slope, yota.gradient(orbit)(point), rtol=1e-11)
    np.testing.assert_allclose(hessian, stepped(orbit, point), rtol=1e-6, atol=1e-8)
    # The trips stay loops, and what does not depend on the row is computed once.
    assert sum(op.name == "loop" for op in found.tape.ops) == 3


def test_products_of_loops() -> None:
    point, direction = np.array([0.9, 0.2, 1.1, 0.3]), np.array([0.5, -1.0, 0.3, 0.7])
    found = yota.hvp(orbit)
    np.testing.assert_allclose(found(point, direction), stepped(orbit, point) @ direction, rtol=1e-6, atol=1e-8)
    assert sum(op.name == "loop" for op in found.tape.ops) == 4


def pulled(x: Any) -> Any:
    """Twenty steps of two numbers, which repeat."""
    first, second = x[0], x[1]
    for _ in range(20):
        pull = x[2] / (first * first + second * second + 0.3)
        first, second = first + 0.1 * second - 0.02 * pull * first, second - 0.1 * pull * first + 0.03 * first * second
    return first * second + first**2


def test_steps_that_repeat_stay_a_loop_in_a_hessian() -> None:
    point = np.array([0.7, -0.4, 1.3])
    found, straight = yota.hessian(pulled), yota.hessian(pulled, effort="high")
    for each in (found, straight):
        np.testing.assert_allclose(each(point), stepped(pulled, point), rtol=1e-6, atol=1e-8)
    assert len(found.source.splitlines()) * 2 < len(straight.source.splitlines())


@pytest.mark.parametrize("size", [20, 150])
def test_full_hessians_of_array_code_are_not_coloured(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many products as rows would be written one after the other, or looked for in vain."""

    def coloured(matrix: Any) -> Any:
        raise AssertionError(f"{matrix.nnz} entries were coloured")

    monkeypatch.setattr("yota.transform.sparse.products.star", coloured)
    x = np.linspace(-1.0, 1.0, size)
    found = yota.hessian(lambda x: np.log(np.sum(np.exp(x))))
    shares = np.exp(x) / np.sum(np.exp(x))
    np.testing.assert_allclose(found(x), np.diag(shares) - np.outer(shares, shares), rtol=1e-12, atol=1e-15)
    assert len(found.tape) < 60
