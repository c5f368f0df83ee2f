"""On a branch cut the derivative is that of the side which the sign of a zero chooses: mpmath has the limits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import yota
from tests.cuda.hosted import load, needs_compiler
from yota.emit.targets import cuda
from yota.optimize.pipeline import run
from yota.rules.registry import registry
from yota.run.derivatives.directions import along
from yota.transform.reverse.backward import gradient_tape

MP = mpmath.MPContext()
MP.dps = 60
OFF = MP.mpf(10) ** -45
"""How far from the cut the limit is taken."""
REAL, IMAGINARY = (-2.25, 2.0, -0.5, 0.5, -30.25, 1.25), (-2.0, 2.0, -0.5, 0.5)
ON_AXES = [complex(a, b) for a, b in itertools.product(REAL, (0.0, -0.0))] + [
    complex(a, b) for a, b in itertools.product((0.0, -0.0), IMAGINARY)
]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "arcsin": (np.arcsin, lambda z: 1 / MP.cos(MP.asin(z)), lambda z: z / MP.cos(MP.asin(z)) ** 3),
    "arccos": (np.arccos, lambda z: -1 / MP.sin(MP.acos(z)), lambda z: -z / MP.sin(MP.acos(z)) ** 3),
    "arccosh": (np.arccosh, lambda z: 1 / MP.sinh(MP.acosh(z)), lambda z: -z / MP.sinh(MP.acosh(z)) ** 3),
    "arcsinh": (np.arcsinh, lambda z: 1 / MP.cosh(MP.asinh(z)), lambda z: -z / MP.cosh(MP.asinh(z)) ** 3),
    "arctan": (np.arctan, lambda z: 1 / (1 + z * z), lambda z: -2 * z / (1 + z * z) ** 2),
    "arctanh": (np.arctanh, lambda z: 1 / (1 - z * z), lambda z: 2 * z / (1 - z * z) ** 2),
    "sqrt": (np.sqrt, lambda z: 0.5 / MP.sqrt(z), lambda z: -0.25 / MP.sqrt(z) ** 3),
    "log": (np.log, lambda z: 1 / z, lambda z: -1 / z**2),
    "log1p": (np.log1p, lambda z: 1 / (1 + z), lambda z: -1 / (1 + z) ** 2),
    "power": (
        lambda z: np.power(z, 0.375),
        lambda z: MP.mpf(0.375) * z ** MP.mpf(-0.625),
        lambda z: MP.mpf(-0.234375) * z ** MP.mpf(-1.625),
    ),
    "float_power": (
        lambda z: np.float_power(z, 0.25 + 0.5j),
        lambda z: MP.mpc(0.25, 0.5) * z ** MP.mpc(-0.75, 0.5),
        lambda z: MP.mpc(0.25, 0.5) * MP.mpc(-0.75, 0.5) * z ** MP.mpc(-1.75, 0.5),
    ),
    "loggamma": (scipy.special.loggamma, MP.digamma, lambda z: MP.psi(1, z)),
}
ELEMENTARY = [name for name in FUNCTIONS if name != "loggamma"]
"""Those that kernels have, and whose second derivatives take complex numbers."""


def side(z: complex) -> Any:
    """A point next to ``z``, where the signs of its zeros say."""
    real, imag = (MP.mpf(part) if part else MP.mpf(float(np.copysign(1.0, part))) * OFF for part in (z.real, z.imag))
    return MP.mpc(real, imag)


def limits(derivative: Callable[..., Any]) -> np.ndarray:
    """The gradient of the real part at all points, from mpmath."""
    return np.conj(np.array([complex(derivative(side(z))) for z in ON_AXES]))


def close(found: Any, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


def of_all(names: Iterable[str]) -> Callable[..., Any]:
    """One function of as many rows of points as there are names, so that compilers run once."""
    functions = [FUNCTIONS[name][0] for name in names]

    def total(z: Any) -> Any:
        values = [function(row) for function, row in zip(functions, z, strict=True)]
        return sum(np.sum(value.real + 2 * value.imag) for value in values)

    return total


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_the_side_is_that_of_the_zero(target: str) -> None:
    found = yota.gradient(of_all(FUNCTIONS), target=target)(np.array([ON_AXES] * len(FUNCTIONS)))
    for row, (_, derivative, _) in zip(found, FUNCTIONS.values(), strict=True):
        close(row, (1 + 2j) * limits(derivative))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_numbers(name: str) -> None:
    function, derivative, _ = FUNCTIONS[name]
    alone = yota.gradient(lambda z: function(z).real)
    close([alone(np.complex128(z)) for z in ON_AXES], limits(derivative))


def test_second_derivatives_too() -> None:
    points, total = np.array([ON_AXES] * len(ELEMENTARY)), of_all(ELEMENTARY)
    _, tape = yota.trace(lambda z, direction: total(z), points, np.ones_like(points))
    found = yota.compile(run(along(tape, 0, registry())))(points, np.ones_like(points))
    for row, name in zip(found, ELEMENTARY, strict=True):
        close(row, (1 + 2j) * limits(FUNCTIONS[name][2]))


@pytest.mark.parametrize("change", [lambda z: 1 - z, lambda z: z * z + 1, lambda z: (z - 1) * (1 + z)])
def test_sums_that_are_shared_with_the_value_change_no_side(change: Callable[..., Any]) -> None:
    names = ("arcsin", "arccos", "arccosh", "arcsinh")
    points, total = np.array([ON_AXES] * len(names)), of_all(names)
    found = yota.gradient(lambda z: total(z) + np.sum(change(z).real))(points)
    rest = yota.gradient(lambda z: np.sum(change(z).real))(points)
    for row, other, name in zip(found, rest, names, strict=True):
        np.testing.assert_allclose(row, other + (1 + 2j) * limits(FUNCTIONS[name][1]), rtol=1e-9, atol=1e-12)


@needs_compiler
def test_kernels_for_the_gpu() -> None:
    points = np.array([ON_AXES] * len(ELEMENTARY))
    _, tape = yota.trace(of_all(ELEMENTARY), points)
    (generated,) = load([cuda.generate(run(gradient_tape(tape, (tape.inputs[0].variable,), registry()).tape))])
    for row, name in zip(generated(points)[1], ELEMENTARY, strict=True):
        close(row, (1 + 2j) * limits(FUNCTIONS[name][1]))
