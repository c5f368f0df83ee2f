"""Quantiles that SciPy searches are one op for all elements, with the derivative of the inverse function."""

import numpy as np
import pytest

import yota
from yota.solvers.roots import increasing_root

stats = pytest.importorskip("scipy.stats")


class Rate(stats.rv_continuous):
    def _cdf(self, x, rate):
        return -np.expm1(-rate * x)


class Wide(stats.rv_continuous):
    def _cdf(self, x, width):
        return 0.5 + np.arctan(x / width) / np.pi


q = np.array([0.02, 0.3, 0.5, 0.97])


@pytest.mark.parametrize(
    ("distribution", "shape", "unit"),
    [
        (Rate(a=0.0, name="rate"), 0.04, lambda q, rate: -np.log1p(-q) / rate),
        (Wide(name="wide"), 30.0, lambda q, width: width * np.tan(np.pi * (q - 0.5))),
    ],
)
def test_quantiles_are_those_of_the_inverse_function(distribution, shape, unit):
    weights = np.array([1.0, -2.0, 0.5, 3.0])

    def function(q, shape, loc, scale):
        return np.sum(weights * distribution.ppf(q, shape, loc=loc, scale=scale))

    fg = yota.value_and_grad(function, wrt=(0, 1, 2, 3))
    for at in (shape, 1.1 * shape):
        value, gradient = fg(q, at, 0.5, 2.0)
        expected = unit(q, at)
        assert value == pytest.approx(np.sum(weights * (0.5 + 2.0 * expected)), rel=1e-12)
        slope = np.imag(unit(q + 1e-30j, at)) / 1e-30
        np.testing.assert_allclose(gradient[0], weights * 2.0 * slope, rtol=1e-9)
        by_shape = 2.0 * np.imag(np.sum(weights * unit(q, at + 1e-30j))) / 1e-30
        assert gradient[1:] == pytest.approx([by_shape, 1.5 + 1.0, np.sum(weights * expected)], rel=1e-9)
    tape = yota.trace(function, q, shape, 0.5, 2.0)[1]
    assert sum(op.primitive.name == "solved" for op in tape.ops) == 1


def test_roots_between_ends_and_without():
    size, target = (3,), np.array([-1e7, 1e-3, 900.0])
    np.testing.assert_allclose(
        increasing_root(lambda x: np.cbrt(x) - np.cbrt(target), -np.inf, np.inf, size), target, rtol=1e-14
    )
    ends = np.array([0.0, 0.0, 800.0]), np.array([1.0, np.inf, np.inf])
    found = increasing_root(lambda x: x**3 - np.array([0.5, 2e6, 1e9]), *ends, size)
    np.testing.assert_allclose(found, [0.5 ** (1 / 3), 2e6 ** (1 / 3), 1e3], rtol=1e-15)
    assert np.isnan(increasing_root(lambda x: x * np.nan, 0.0, 1.0, ()))
