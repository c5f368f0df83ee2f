"""`yota.gradcheck`: right gradients pass, wrong ones do not, and what differences cannot judge is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota import testing

X = np.linspace(0.1, 3.0, 7)


def lennard_jones(x, pairs):
    gap = x[pairs[:, 0]] - x[pairs[:, 1]]
    inverse = 1 / np.sum(gap * gap, axis=1) ** 3
    return np.sum(4 * (inverse * inverse - inverse))


def crowded(count=30, side=4.0):
    """Atoms some of which are so near each other that a step of a hundredth leaves the region of convergence."""
    places = np.random.default_rng(0).uniform(0, side, (count, 3))
    return places, np.array([(i, j) for i in range(count) for j in range(i)])


RIGHT = {
    "product": (lambda x: np.sum(np.sin(x) * x), X),
    "gaussians": (lambda x: np.sum(np.exp(-(x**2))), np.linspace(-3, 3, 50)),
    "many magnitudes": (lambda x: np.sum(np.log(x)), np.logspace(-8, 8, 30)),
    "small beside large": (lambda x: np.sqrt(np.sum(x**2)), np.array([1e-8, 1.0, 1e3])),
    "near a kink": (lambda x: np.sum(np.abs(x)), np.array([1e-5, 1.0, -2.0])),
    "oscillating": (lambda x: np.sum(np.sin(1e4 * x)), X),
    "flat at the point": (lambda x: np.sum(x**3), np.zeros(4)),
    "constant": (lambda x: np.sum(0 * x) + 3, np.ones(4)),
    "long": (lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2), np.random.default_rng(1).normal(size=1000)),
    "empty": (lambda x: np.sum(x**2), np.zeros((0, 3))),
    "number": (lambda x: x**3, 2.0),
    "complex": (lambda z: np.sum(np.abs(np.exp(1j * z)) ** 2), np.array([1 + 2j, 0.3 - 0.4j])),
    "structure": (lambda p: np.sum(p["a"] * p["b"][0]), {"a": X, "b": (X[::-1].copy(), "name")}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name):
    f, x = RIGHT[name]
    for seed in range(20):
        assert yota.gradcheck(f, x, random=seed)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e3])
def test_steep_potentials_pass_in_all_units(unit):
    x, pairs = crowded()
    assert yota.gradcheck(lambda x: lennard_jones(x / unit, pairs), x * unit, directions=10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex64])
@pytest.mark.parametrize("name", ["product", "gaussians", "flat at the point"])
def test_other_precisions_are_judged_by_their_digits(name, dtype):
    f, x = RIGHT[name]
    real = f if dtype is not np.complex64 else lambda z: np.real(f(z))
    for seed in range(20):
        assert yota.gradcheck(real, x.astype(dtype), random=seed)


class Scaled:
    """Gradients that are off by a factor."""

    def __init__(self, gradients: Any, factor: float) -> None:
        self.gradients, self.factor = gradients, factor

    def __getitem__(self, position: int) -> Any:
        found = self.gradients[position]
        return (
            {path: each * self.factor for path, each in found.items()} if type(found) is dict else found * self.factor
        )


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in ("flat at the point", "constant", "empty")])
def test_wrong_gradients_fail(name, monkeypatch):
    f, x = RIGHT[name]
    value, g = yota.grad(f, x)
    monkeypatch.setattr(testing, "grad", lambda f, *args: (value, Scaled(g, 1 + 1e-4)))
    for seed in range(20):
        with pytest.raises(AssertionError, match="central differences give"):
            yota.gradcheck(f, x, random=seed)


def test_a_wrong_element_of_a_steep_gradient_fails(monkeypatch):
    x, pairs = crowded()
    value, g = yota.grad(lennard_jones, x, pairs)
    wrong = g[0].copy()
    wrong[np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)] *= 1 + 1e-4
    monkeypatch.setattr(testing, "grad", lambda f, *args: (value, (wrong, None)))
    with pytest.raises(AssertionError, match="central differences give"):
        yota.gradcheck(lennard_jones, x, pairs)


def test_a_jump_tells_nothing():
    with pytest.raises(AssertionError, match="finite differences have no correct digit"):
        yota.gradcheck(lambda x: np.sum(np.floor(x) * x), np.array([1.0, 2.0]))


def test_values_that_are_rounded_are_tested_less_accurately():
    with pytest.warns(UserWarning, match="tested less accurately than rtol=1e-06"):
        assert yota.gradcheck(lambda x: np.sum(np.sin(x)) + 1e10, X)


def test_steps_out_of_the_domain_are_passed_over():
    def f(x):
        if np.any(x < 0.999) or np.any(x > 1.001):
            raise ValueError("out of range")
        return np.sum(np.sqrt(1.001 - x) * np.sqrt(x - 0.999))

    assert yota.gradcheck(f, np.array([1.0, 1.0002]))
