"""Operation counts of Hessians: few come out with the quick effort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from yota.ir.printing import total
from yota.optimize import pipeline
from yota.optimize.polynomials.symbolic import optimise
from yota.rules.registry import registry
from yota.run.derivatives.straight_line import entries
from yota.run.gradient_layout import Wanted


def valley(x: Any) -> Any:
    """Rosenbrock's function."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def products(x: Any) -> Any:
    one, other = x[0] * x[1] + x[2] * x[3], x[4] * x[5] + x[6] * x[7]
    return one**2 + other**2 + x[0] * x[2] * x[4] * x[6] - x[1] * x[3] * x[5] * x[7]


def pairs(x: Any) -> Any:
    """The Lennard-Jones energy of four atoms."""
    energy = 0.0
    for i in range(4):
        for j in range(i):
            cubed = 1.0 / np.sum((x[3 * i : 3 * i + 3] - x[3 * j : 3 * j + 3]) ** 2) ** 3
            energy += 4.0 * (cubed**2 - cubed)
    return energy


def epidemic(p: Any) -> Any:
    """Squared errors of 15 steps of the SIR model."""
    susceptible, infected, error = 0.99, 0.01, 0.0
    for _ in range(15):
        new, gone = p[0] * susceptible * infected, p[1] * infected
        susceptible, infected = susceptible - new, infected + new - gone
        error += (infected - 0.1 * p[2]) ** 2
    return error


def exponentials(x: Any) -> Any:
    """Biggs' EXP6 function."""
    times = 0.1 * np.arange(1, 14)
    found = x[2] * np.exp(-times * x[0]) - x[3] * np.exp(-times * x[1]) + x[5] * np.exp(-times * x[4])
    return np.sum((found - np.exp(-times) + 5.0 * np.exp(-10.0 * times) - 3.0 * np.exp(-4.0 * times)) ** 2)


def rotation(q: Any) -> Any:
    """The distance of a rotated vector, the rotation given by a quaternion."""
    w, x, y, z = q / np.sqrt(np.sum(q**2))
    first = (1 - 2 * (y * y + z * z)) * 0.3 + 2 * (x * y - z * w) * 0.7 + 2 * (x * z + y * w) * 1.1
    second = 2 * (x * y + z * w) * 0.3 + (1 - 2 * (x * x + z * z)) * 0.7 + 2 * (y * z - x * w) * 1.1
    return (first - 0.2) ** 2 + (second - 0.4) ** 2


@pytest.mark.parametrize(
    ("function", "size", "most"),
    [
        (valley, 10, 71),
        (products, 8, 58),
        (pairs, 12, 450),
        (epidemic, 3, 1210),
        (exponentials, 6, 869),
        (rotation, 4, 446),
    ],
)
def test_hessians_take_few_operations(function: Callable[[Any], Any], size: int, most: int) -> None:
    x = 0.4 + 1.2 * np.sin(1.0 + np.arange(size)) ** 2
    _, tape = yota.trace(function, x)
    found = entries(pipeline.run(tape, inlined=False, once=True), 0, Wanted(2), registry())
    assert found is not None
    operations = total(optimise(pipeline.run(found.tape, once=True)))
    assert operations <= most
