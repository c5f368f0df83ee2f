"""Stable distributions, against their characteristic function by complex steps."""

import numpy as np
import pytest
from scipy import stats

import yota
from yota.errors import TracingError

GAUSS = np.polynomial.legendre.leggauss(100)
NODES = np.ravel((GAUSS[0] + np.arange(-39, 41, 2)[:, None]) / 40)
WEIGHTS = np.tile(GAUSS[1] / 40, 40)
"""Those of 40 intervals, each by Gauss and Legendre."""


def exact(method, x, a, b, scale):
    x = x / scale
    end = 40.0 ** (1 / np.real(a))
    # The fourth power takes the singularity at 0 away.
    part = 0.5 * (NODES + 1)
    t, weights = end * part**4, end * 2 * part**3 * WEIGHTS
    power = np.exp(a * np.log(t))
    phase = x * t - b * np.tan(0.5 * np.pi * a) * power
    if method == "pdf":
        return np.sum(weights * np.exp(-power) * np.cos(phase)) / np.pi / scale
    return 0.5 + np.sum(weights * np.exp(-power) * np.sin(phase) / t) / np.pi


@pytest.mark.parametrize("method", ["pdf", "cdf"])
@pytest.mark.parametrize(
    "point",
    [
        (0.7, 1.8, -0.5, 1.2),
        (-2.3, 1.2, 0.9, 1.0),
        (1.6, 0.8, 0.3, 0.7),
        (-1.1, 1.9, 0.999, 1.0),
        (1.1, 1.6, 1.0, 1.0),
        (2.0, 1.05, -0.2, 1.0),
    ],
)
def test_by_the_characteristic_function(method, point):
    def function(x, a, b, scale):
        return getattr(stats.levy_stable, method)(x, a, b, scale=scale)

    value, g = yota.value_and_grad(function, wrt=(0, 1, 2, 3))(*point)
    assert value == pytest.approx(exact(method, *point), rel=1e-10)
    for place, found in enumerate(g):
        moved = [each + 1e-30j * (place == number) for number, each in enumerate(point)]
        assert found == pytest.approx(np.imag(exact(method, *moved)) / 1e-30, rel=1e-8, abs=1e-12)


def test_in_the_middle():
    x = np.array([-2.0, -0.5, 0.0, 1e-5, 0.4])
    for shapes in [(0.6, 0.9), (0.6, -0.5), (1.7, 0.4)]:
        for method in (stats.levy_stable.pdf, stats.levy_stable.cdf):
            found = yota.trace(lambda x: method(x, *shapes), x)[0]  # noqa: B023
            np.testing.assert_allclose(found, method(x, *shapes), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("x", "shapes"), [(-0.7, (0.6, 1.0)), (0.7, (0.6, -1.0)), (-0.7, (1.6, 1.0))])
def test_the_light_tail_is_refused(x, shapes):
    def function(x):
        return stats.levy_stable.pdf(x, *shapes)

    with pytest.raises(TracingError, match="light tail"):
        yota.grad(function, x)
    assert yota.gradcheck(function, -x)


def test_quantiles_and_likelihoods():
    data = np.array([-1.3, 0.2, 0.9, 4.0])
    assert yota.gradcheck(lambda a, b: stats.levy_stable.nnlf((a, b, 0.1, 1.3), data), 1.7, -0.4)
    assert yota.gradcheck(lambda q, a: np.sum(stats.levy_stable.ppf(q, a, 0.3)), np.array([0.2, 0.9]), 1.6)


def test_a_shape_of_nearly_1_is_refused():
    with pytest.raises(TracingError, match="nearly 1"):
        yota.grad(lambda a: stats.levy_stable.pdf(0.3, a, 0.5), 1.01)
