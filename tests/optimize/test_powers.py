"""Powers of one base whose exponents differ by 1: one is computed, with NumPy's values at all ends."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler

ENDS = np.array([0.0, -0.0, np.inf, 1.0, 5e-324, 1e-310, 1e308, 1e-200, 1e200, np.nan])
TARGETS = ["numpy", pytest.param("c", marks=needs_compiler)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("exponent", [1.3, 2.5, 7.75, -0.3, -1.5, -6.25, 0.3, 0.75])
def test_a_power_and_its_slope_are_one_power(exponent: float, target: str) -> None:
    made = yota.value_and_grad(lambda x: np.sum(x**exponent), target=target)
    x = np.geomspace(1e-20, 1e20, 1001)
    value, slope = made(x)
    assert f"{2 if 0 < exponent < 1 else 1} power" in made.source
    with mpmath.workdps(40):
        exact = [float(exponent * mpmath.mpf(each) ** (mpmath.mpf(exponent) - 1)) for each in x]
        total = float(mpmath.fsum(mpmath.mpf(each) ** mpmath.mpf(exponent) for each in x))
    np.testing.assert_allclose(slope, exact, rtol=2e-14)
    np.testing.assert_allclose(value, total, rtol=1e-14)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("exponent", [1.3, 2.5, -0.3, -1.5])
def test_values_and_slopes_at_the_ends_are_those_of_numpy(exponent: float, target: str) -> None:
    made = yota.jacobian(lambda x: x**exponent, with_value=True, target=target)
    value, slope = made(ENDS)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(value, ENDS**exponent, rtol=1e-14)
        np.testing.assert_allclose(np.diag(slope), exponent * ENDS ** (exponent - 1), rtol=1e-13)


def test_second_derivatives_and_single_precision() -> None:
    x = np.linspace(0.1, 3, 7)
    hessian = yota.hessian(lambda x: np.sum(x**2.3))(x)
    np.testing.assert_allclose(np.diag(hessian), 2.3 * 1.3 * x**0.3, rtol=1e-13)
    single = np.geomspace(1e-9, 1e9, 501).astype(np.float32)
    made = yota.jacobian(lambda x: x**1.3, with_value=True)
    value, slope = made(single)
    assert value.dtype == slope.dtype == np.float32
    np.testing.assert_array_equal(value, single ** np.float32(1.3))  # float32(1.3) - 1 is not float32(0.3)
    exact = yota.value_and_grad(lambda x: np.sum(x**1.5))
    exact(single)
    assert "1 power" in exact.source


def test_with_strict_the_value_stays() -> None:
    x = np.linspace(0.1, 3, 997)
    made = yota.jacobian(lambda x: x**1.3, with_value=True, strict=True)
    np.testing.assert_array_equal(made(x)[0], x**1.3)
    assert yota.grad(lambda x: np.sum(x**1.3), x, strict=True)[0] == np.sum(x**1.3)
