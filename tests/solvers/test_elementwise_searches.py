"""Roots, minima and brackets of scipy.optimize.elementwise, against closed forms."""

import numpy as np
import pytest

import yota
from yota.errors import DifferentiationError

elementwise = pytest.importorskip("scipy.optimize.elementwise")

C = np.array([0.7, 0.6, 0.2])
WEIGHTS = np.array([1.0, -2.0, 3.0])


def quartic(x, c):
    return (x - c) ** 2 + 0.1 * x**4


def least(c):
    """Where the quartic is least, and its first two derivatives by ``c``."""
    roots = [np.roots([0.4, 0, 2, -2 * each]) for each in c]
    x = np.array([each[np.abs(each.imag) < 1e-9].real[0] for each in roots])
    curvature = 2 + 1.2 * x**2
    return x, 2 / curvature, -2.4 * x * (2 / curvature) ** 2 / curvature


def test_roots_by_elements():
    """A search that starts or ends at a root, whatever the arguments, has that root's slope all the same."""

    def roots(c):
        return elementwise.find_root(lambda x, c: x**3 - c, (0.0, np.array([2.0, 3.0, 4.0])), args=(c,)).x

    fg = yota.value_and_grad(lambda c: roots(c) @ WEIGHTS)
    for c in (np.array([1.0, 0.7, 0.1]), C):
        value, slopes = fg(c)
        assert value == roots(c) @ WEIGHTS
        np.testing.assert_allclose(slopes, WEIGHTS * c ** (-2 / 3) / 3, rtol=1e-9)
    assert len(fg.info().compilations) == 1
    np.testing.assert_allclose(
        yota.hessian(lambda c: roots(c) @ WEIGHTS)(C), np.diag(-WEIGHTS * C ** (-5 / 3) * 2 / 9), rtol=1e-9
    )
    half = yota.gradient(lambda c: elementwise.find_root(lambda x: x - c, (0.0, 1.0)).x)
    assert half(0.5) == 1.0


def test_minima_by_elements():
    def found(c):
        return elementwise.find_minimum(quartic, (-4.0, 0.1, np.array([2.0, 3.0, 4.0])), args=(c,))

    x, first, second = least(C)
    np.testing.assert_allclose(yota.jacobian(lambda c: found(c).x)(C), np.diag(first), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        yota.hessian(lambda c: found(c).x @ WEIGHTS)(C), np.diag(WEIGHTS * second), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(yota.gradient(lambda c: found(c).f_x @ WEIGHTS)(C), -2 * WEIGHTS * (x - C), rtol=1e-6)


def test_arguments_that_broadcast_and_closures():
    def roots(c):
        return elementwise.find_root(lambda x, a, b: x**3 - a * b * c[0], (0.0, 4.0), args=(c, c[:, None])).x

    found = yota.jacobian(roots)(C)
    products = C * C[:, None] * C[0]
    slopes = np.eye(3)[:, None] / C + np.eye(3) / C + np.array([1 / C[0], 0, 0])
    np.testing.assert_allclose(found, np.cbrt(products)[:, :, None] / 3 * slopes, rtol=1e-9, atol=1e-15)


def test_brackets():
    """A bracket is constant, and the function at its ends is not; an end moves with a traced start."""

    def root(c):
        bracket = elementwise.bracket_root(lambda x, c: x**3 - c, np.array([0.1, 0.2, 0.3]), args=(c,))
        found = elementwise.find_root(lambda x, c: x**3 - c, bracket.bracket, args=(c,))
        return (found.x + bracket.bracket[1] + bracket.f_bracket[0]) @ WEIGHTS

    def least_value(c):
        bracket = elementwise.bracket_minimum(quartic, np.array([0.1, 0.2, 0.3]), args=(c,))
        return elementwise.find_minimum(quartic, bracket.bracket, args=(c,)).f_x @ WEIGHTS

    np.testing.assert_allclose(yota.gradient(root)(C), WEIGHTS * (C ** (-2 / 3) / 3 - 1), rtol=1e-9)
    np.testing.assert_allclose(yota.gradient(least_value)(C), -2 * WEIGHTS * (least(C)[0] - C), rtol=1e-6)
    start = yota.gradient(lambda c: elementwise.bracket_root(lambda x: x**3 - 9, c).bracket[1])
    assert start(0.7) == 1.0


def test_failures():
    def root(c):
        return elementwise.find_root(lambda x, c: x**2 - c, (0.0, np.array([2.0, 0.1, 4.0])), args=(c,))

    with pytest.raises(DifferentiationError, match=r"find_root at .* infinite or no number"):
        yota.gradient(lambda c: root(c).x @ WEIGHTS)(C)
    with pytest.raises(DifferentiationError, match="result xl has no derivative; use the solution"):
        yota.gradient(lambda c: root(c).bracket[0] @ WEIGHTS)(C)
    with pytest.raises(ValueError, match="must be the same as the broadcasted shape"):
        yota.gradient(lambda c: np.sum(elementwise.find_root(lambda x: x**3 - c, (0.0, 4.0)).x))(C)
