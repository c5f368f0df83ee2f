"""Derivatives in one direction, against central differences and exact values."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError, DifferentiationError

RANDOM = np.random.default_rng(3)
STEP = 1e-6


def real(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def complex_(*shape: int) -> Any:
    return RANDOM.normal(size=shape) + 1j * RANDOM.normal(size=shape)


@pytest.mark.parametrize(
    ("f", "args", "tangents"),
    [
        (lambda A, x: np.tanh(A @ x) + x[0], (real(3, 4), real(4)), (real(3, 4), real(4))),
        (lambda A, x: np.tanh(A @ x) + x[0], (real(3, 4), real(4)), (None, real(4))),
        (lambda x: np.sum(x**3), (real(2, 3),), (real(2, 3),)),
        (lambda z: np.exp(z) * np.conj(z), (complex_(4),), (complex_(4),)),
        (lambda x: np.exp(1j * x), (real(3),), (real(3),)),
        (lambda x, n: x[:n] ** n, (real(5), 2), (real(5), None)),
        (lambda x: np.linalg.inv(x), (real(3, 3) + 3 * np.eye(3),), (real(3, 3),)),
    ],
)
def test_pushforward(f: Any, args: tuple[Any, ...], tangents: tuple[Any, ...]) -> None:
    def at(step: float) -> Any:
        return f(*(arg if t is None else arg + step * t for arg, t in zip(args, tangents, strict=True)))

    value, tangent = yota.jvp(f, args, tangents)
    np.testing.assert_allclose(value, f(*args))
    np.testing.assert_allclose(tangent, (at(STEP) - at(-STEP)) / (2 * STEP), rtol=1e-7, atol=1e-8)
    assert np.shape(tangent) == np.shape(value)


def test_numbers_and_fixed_arguments() -> None:
    value, tangent = yota.jvp(np.sin, (0.5,), (2.0,))
    assert tangent == pytest.approx(2 * np.cos(0.5), rel=1e-15)
    assert isinstance(tangent, float)
    assert yota.jvp(np.sin, (0.5,), (None,))[1] == 0.0


def test_derivatives_of_bound_functions_take_their_own_data() -> None:
    def scaled(factor: Any, x: Any) -> Any:
        return factor * x**2

    x, v = real(3), real(3)
    for factor in (real(3), real(3), 2.0, 3.0):
        for f in (functools.partial(scaled, factor), types.MethodType(scaled, factor), lambda x: scaled(factor, x)):  # noqa: B023  (called in this iteration)
            np.testing.assert_allclose(yota.jvp(f, (x,), (v,))[1], 2 * factor * x * v)
            np.testing.assert_allclose(yota.vjp(f, x)[1](v)[0], 2 * factor * x * v)


def test_bad_tangents() -> None:
    with pytest.raises(ArgumentError, match="2 arguments and 1 tangents; give None"):
        yota.jvp(np.multiply, (1.0, 2.0), (1.0,))
    with pytest.raises(DifferentiationError, match=r"tangent 2 has shape \(2,\), its argument has shape \(3,\)"):
        yota.jvp(np.multiply, (np.ones(3), np.ones(3)), (None, np.ones(2)))


def test_arguments_that_the_function_writes_to_stay_as_they_are() -> None:
    def doubled(x: Any) -> Any:
        x *= 2.0
        return np.sum(x**3)

    given, direction = real(3), real(3)
    x, slope = given.copy(), 24.0 * given**2
    wanted = slope @ direction
    for _ in range(2):
        np.testing.assert_allclose(yota.jvp(doubled, (x,), (direction,)), (8.0 * np.sum(given**3), wanted))
        np.testing.assert_allclose(yota.vjp(doubled, x)[1](1.0)[0], slope)
        np.testing.assert_allclose(yota.grad(doubled, x, seed=2.0)[1][0], 2.0 * slope)
        np.testing.assert_allclose(yota.jacobian(lambda x: (doubled(x), x), has_aux=True)(x)[0], slope)
        np.testing.assert_array_equal(x, given)
    np.testing.assert_allclose(yota.gradient(doubled, args={"x": "float64[N]"})(x), slope)
