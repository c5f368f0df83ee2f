"""Hessians times a direction, against symbolic and complex derivatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import yota
from benchmarks.workloads.polynomials import polynomial
from tests.derivatives.test_compressed import HESSIANS, complex_steps
from tests.emit.compiled import needs_compiler
from yota.api.products import HessianProducts
from yota.errors import ArgumentError, DifferentiationError
from yota.run.result import operations_of
from yota.run.specialise import Target

RANDOM = np.random.default_rng(31)
TARGETS = ["numpy", pytest.param("c", marks=needs_compiler)]


def rational(x: Any) -> Any:
    return (x[0] * x[1] ** 3 - x[2]) ** 2 / (1.0 + x[3] ** 2) + x[4] * x[0]


def wave(x: Any) -> Any:
    sin, exp = (sympy.sin, sympy.exp) if isinstance(x[0], sympy.Basic) else (np.sin, np.exp)
    return exp(x[0] * x[1]) * sin(x[2]) + x[3] * sin(x[4] * x[0])


def looped(x: Any) -> Any:
    total, angle = 0.0, 0.0
    for each in x:
        angle = angle + each
        total = total + angle**3 * each
    return total


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("f", [rational, wave, looped, polynomial], ids=lambda f: f.__name__)
def test_scalar_code(f: Callable[..., Any], target: str) -> None:
    count = 8 if f is polynomial else 5
    x, v = RANDOM.uniform(0.5, 1.5, count), RANDOM.standard_normal(count)
    symbols = sympy.symbols(f"x:{count}")
    hessian = sympy.hessian(f(symbols), symbols).subs(dict(zip(symbols, x, strict=True)))
    expected = np.array(hessian, float) @ v
    found = yota.hvp(f, target=target)(x, v)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", HESSIANS)
def test_code_on_arrays(name: str, target: str) -> None:
    f, slope, _ = HESSIANS[name]
    x, v = RANDOM.uniform(0.5, 1.5, 24), RANDOM.standard_normal(24)
    found = yota.hvp(f, target=target)(x, v)
    np.testing.assert_allclose(found, complex_steps(slope, x) @ v, rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("f", [rational, wave, looped, polynomial], ids=lambda f: f.__name__)
def test_takes_a_small_multiple_of_the_gradient(f: Callable[..., Any]) -> None:
    x = np.ones(8 if f is polynomial else 5)
    _, gradient = yota.grad(f, x)
    prepared, *_ = HessianProducts(f, 0, Target(), dynamic=False).prepare((x, x), {})
    assert sum(operations_of(prepared.root.source).values()) <= 3 * sum(gradient.operations.values())


def linked(x: Any) -> Any:
    """How far the end of an arm is from a point; its joints turn about axes that are across each other."""
    t = np.eye(4)
    for number, angle in enumerate(x):
        c, s, d = np.cos(angle), np.sin(angle), 0.1 * number
        t = t @ np.array([[c, 0.0, -s, c], [s, 0.0, c, s], [0.0, -1.0, 0.0, d], [0.0, 0.0, 0.0, 1.0]])
    return np.sum((t[:3, 3] - 0.5) ** 2)


def test_matrices_of_kinematics_fall_apart_as_they_do_for_the_gradient() -> None:
    x, v = RANDOM.uniform(0.5, 1.5, 5), RANDOM.standard_normal(5)
    prepared, *_ = HessianProducts(linked, 0, Target(), dynamic=False).prepare((x, v), {})
    assert "matmul" not in operations_of(prepared.root.source)
    gradient = yota.gradient(linked)
    step = 1e-5
    expected = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(yota.hvp(linked)(x, v), expected, rtol=1e-8, atol=1e-8)


def test_long_arrays_stay_arrays() -> None:
    f = HESSIANS["chained"][0]
    x = np.ones(1_000_000)
    prepared, *_ = HessianProducts(f, 0, Target(), dynamic=False).prepare((x, x), {})
    assert len(prepared.root.gradient.tape) < 100
    found = yota.hvp(f)(x, x)
    np.testing.assert_allclose(found[1:-1], 802.0 + 200.0 - 800.0)


def falling(p: Any, trips: int = 10) -> Any:
    """A substance that an enzyme uses up: ten rounds of ten steps of Heun each."""
    amount, error = 2.0 * p[2], 0.0
    for _ in range(trips):
        for _ in range(10):
            first = -p[0] * amount / (p[1] + amount)
            middle = amount + 0.05 * first
            amount = amount + 0.025 * (first - p[0] * middle / (p[1] + middle))
        error = error + (amount - 0.3) ** 2
    return error


def test_few_long_trips_are_a_loop() -> None:
    x, v = np.array([1.0, 0.5, 1.0]), np.array([0.5, -1.0, 2.0])
    prepared, *_ = HessianProducts(falling, 0, Target(), dynamic=False).prepare((x, v), {})
    once, *_ = HessianProducts(lambda p: falling(p, 1), 0, Target(), dynamic=False).prepare((x, v), {})
    assert len(prepared.root.source.splitlines()) < 5 * len(once.root.source.splitlines())
    before, slope, after = (
        np.array([falling(at + 1e-30j * unit).imag / 1e-30 for unit in np.eye(3)])
        for at in (x - 1e-6 * v, x, x + 1e-6 * v)
    )
    np.testing.assert_allclose(yota.hvp(falling)(x, v), (after - before) / 2e-6, rtol=1e-7)
    np.testing.assert_allclose(yota.gradient(falling)(x), slope, rtol=1e-12)


def test_numbers_matrices_and_single_precision() -> None:
    assert yota.hvp(lambda x: x**3)(2.0, 1.5) == 18.0
    assert type(yota.hvp(lambda x: x**3)(2.0, 1.5)) is float
    boxed = yota.hvp(lambda x: x**3)(np.array(2.0), np.array(1.5))
    assert boxed == 18.0
    assert type(boxed) is np.ndarray
    matrix = yota.hvp(lambda x: np.sum(x @ x))(np.ones((2, 2)), np.eye(2))
    np.testing.assert_array_equal(matrix, 2.0 * np.ones((2, 2)))
    single = yota.hvp(lambda x: np.sum(x**4))(np.ones(3, np.float32), np.ones(3))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(yota.hvp(lambda x: np.sum(x**4))(np.ones(3), np.array([1, 0, 2])), [12.0, 0.0, 24.0])
    np.testing.assert_array_equal(yota.hvp(lambda x: 3.0 * x[0])(np.ones(3), np.ones(3)), np.zeros(3))


def test_third_derivatives() -> None:
    product = yota.hvp(lambda x: np.sum(x**4))
    found = yota.gradient(lambda x: np.sum(product(x, x**2)))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(found, 48.0 * np.array([1.0, 2.0]) ** 3)  # of 12 x^4


def test_what_a_function_reads_may_change() -> None:
    weights = np.ones(3)
    product = yota.hvp(lambda x: np.sum(weights * x**2))
    np.testing.assert_array_equal(product(np.ones(3), np.ones(3)), [2.0, 2.0, 2.0])
    weights[1] = 5.0
    np.testing.assert_array_equal(product(np.ones(3), np.ones(3)), [2.0, 10.0, 2.0])


class Spring:
    def __init__(self, stiffness: float) -> None:
        self.stiffness = stiffness

    def energy(self, x: Any) -> Any:
        return self.stiffness * np.sum(x**2) / 2


def test_methods() -> None:
    np.testing.assert_array_equal(yota.hvp(Spring(3.0).energy)(np.ones(2), np.array([1.0, 2.0])), [3.0, 6.0])


def test_refusals() -> None:
    product = yota.hvp(lambda x: np.sum(x**2))
    with pytest.raises(DifferentiationError, match=r"the direction has shape \(2,\), x of <lambda> has shape \(3,\)"):
        product(np.ones(3), np.ones(2))
    with pytest.raises(DifferentiationError, match="complex"):
        product(np.ones(3, complex), np.ones(3))
    with pytest.raises(ArgumentError, match=r"hvp\(f\)\(x, v\)"):
        product(np.ones(3))
    with pytest.raises(DifferentiationError, match="a gradient needs a scalar"):
        yota.hvp(lambda x: x**2)(np.ones(3), np.ones(3))


def bent(x: Any, weight: Any = 1.0) -> Any:
    return weight * np.sum(x**3) if x[0] > 0 else weight * np.sum(x**4)


@pytest.mark.parametrize("target", TARGETS)
def test_branches_are_followed(target: str) -> None:
    product = yota.hvp(bent, target=target, dynamic=True)
    x, v = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    for point, expected in ((x, 6 * x * v), (-x, 12 * x**2 * v), (2 * x, 12 * x * v)):
        np.testing.assert_allclose(product(point, v), expected, rtol=1e-13)


@pytest.mark.parametrize("wrt", [1, -2, "y"])
def test_by_another_argument(wrt: int | str) -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return np.sum(x * y**3) * z

    x, y, v = np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([0.5, -1.0])
    np.testing.assert_allclose(yota.hvp(f, wrt)(x, y, 2.0, v), 12 * x * y * v, rtol=1e-13)


def test_by_several_arguments_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"wrt=\(0, 1\): a Hessian times a direction is by one argument"):
        yota.hvp(bent, (0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("over", [None, 0, "x"])
def test_over_many_points(over: Any, target: str) -> None:
    x, v = RANDOM.uniform(0.5, 1.5, (7, 3)), RANDOM.standard_normal((7, 3))
    product = yota.hvp(yota.batch(lambda x, a: a * np.sum(x**3), over=over), target=target)
    np.testing.assert_allclose(product(x, 2.0, v), 12 * x * v, rtol=1e-13)


def test_the_signature_has_the_direction_and_arguments_may_be_named() -> None:
    def scaled(x: Any, a: float = 1.0, *, k: float = 2.0) -> Any:
        return a * k * np.sum(x**3)

    x, v = np.array([1.0, 2.0]), np.array([1.0, -1.0])
    product = yota.hvp(scaled)
    assert [*inspect.signature(product).parameters] == ["x", "a", "v", "k"]
    assert str(inspect.signature(yota.hvp(lambda v: v**3))) == "(v, vector, /)"
    assert str(inspect.signature(yota.hvp(yota.batch(lambda x: x**3)))) == "(x, v, /)"
    np.testing.assert_array_equal(product(x, 3.0, v, k=1.0), 18 * x * v)
    np.testing.assert_array_equal(product(x, v, k=1.0, a=2.0), 12 * x * v)
    outer = yota.gradient(lambda x: np.sum(product(x, v, a=2.0)))
    np.testing.assert_array_equal(outer(x), 24 * v)
