"""`solve_bvp` inside of traced functions, against solutions in closed form."""

import functools

import numpy as np
import pytest
from scipy.integrate import solve_bvp

import yota
from yota.errors import DifferentiationError


def swing(a, end):
    """The solution of y'' = -a**2 y that is 0 at 0 and ``end`` at 1."""
    found = solve_bvp(
        lambda x, y: np.vstack([y[1], -(a**2) * y[0]]),
        lambda left, right: np.stack([left[0], right[0] - end]),
        np.linspace(0, 1, 9),
        np.ones((2, 9)),
        tol=1e-6,
    )
    assert found.success
    return found


def test_by_coefficients_and_ends():
    value, (by_a, by_end) = yota.value_and_grad(lambda a, end: swing(a, end).sol(0.4)[0], wrt=(0, 1))(1.3, 2.0)
    sine, cosine = np.sin(1.3), np.cos(1.3)
    assert value == pytest.approx(swing(1.3, 2.0).sol(0.4)[0], rel=1e-14)
    assert value == pytest.approx(2 * np.sin(0.52) / sine, rel=1e-6)
    assert by_end == pytest.approx(np.sin(0.52) / sine, rel=1e-5)
    assert by_a == pytest.approx(2 * (0.4 * np.cos(0.52) / sine - np.sin(0.52) * cosine / sine**2), rel=1e-5)


def eigenvalue(weight, **options):
    """The frequency p at which y'' = -p**2 weight y is 0 at both ends: 2 pi over the root of the weight."""
    start = np.zeros((2, 5))
    start[0, 1], start[0, 3] = 1, -1
    return solve_bvp(
        lambda x, y, p: np.vstack([y[1], -(p[0] ** 2) * weight * y[0]]),
        lambda left, right, p: np.array([left[0], right[0], left[1] - p[0]]),
        np.linspace(0, 1, 5), start, p=[6], **options,
    ).p[0]  # fmt: skip


@pytest.mark.parametrize("options", [{"tol": 1e-5}, {"tol": 1e-6, "max_nodes": 200}])
def test_a_parameter_that_is_solved_for(options):
    value, slope = yota.value_and_grad(lambda weight: eigenvalue(weight, **options))(1.2)
    assert value == pytest.approx(2 * np.pi / np.sqrt(1.2), rel=1e-6)
    assert slope == pytest.approx(-np.pi / 1.2**1.5, rel=1e-6)


def test_nodes_are_put_into_a_mesh_from_outside():
    """A layer at the left end: y'' = a**2 y is 1 there and 0 at the right end."""

    def layer(p):
        slope = lambda x, y: np.vstack([y[1], p[0] ** 2 * y[0]])
        ends = lambda left, right: np.array([left[0] - p[1], right[0]])
        return solve_bvp(slope, ends, mesh, np.ones((2, 5)), tol=1e-6)

    mesh = np.linspace(0, 1, 5)
    value_and_slopes = yota.value_and_grad(lambda p: layer(p).y[1, 0])
    for a in (4.0, 12.0, 3.0):
        assert layer([a, 2.0]).success
        value, slopes = value_and_slopes(np.array([a, 2.0]))
        steep = 1 / np.tanh(a)
        assert value == pytest.approx(-2 * a * steep, rel=1e-5)
        np.testing.assert_allclose(slopes, [-2 * (steep - a / np.sinh(a) ** 2), -a * steep], rtol=1e-5)
    assert len(layer([4.0, 2.0]).x) != len(layer([12.0, 2.0]).x)


def test_twice_by_an_end_of_the_mesh():
    """y'' = -y from 0 to 1 has the slope 1 / sin(T) at 0."""

    def start(end, **jacobians):
        return solve_bvp(
            lambda x, y: (y[1], -y[0]),
            lambda left, right: (left[0], right[0] - 1),
            np.linspace(0, end, 9), np.ones((2, 9)), tol=1e-8, **jacobians,
        ).y[1, 0]  # fmt: skip

    given = {
        "fun_jac": lambda x, y: np.stack([np.stack([0 * x, 1 + 0 * x]), np.stack([-1 + 0 * x, 0 * x])]),
        "bc_jac": lambda left, right: (np.array([[1.0, 0], [0, 0]]), np.array([[0.0, 0], [1, 0]])),
    }
    sine, cosine = np.sin(1.0), np.cos(1.0)
    for options in ({}, given):
        f = functools.partial(start, **options)
        value, slope = yota.value_and_grad(f)(1.0)
        assert value == f(1.0)
        assert slope == pytest.approx(-cosine / sine**2, rel=1e-7)
    assert yota.hessian(start)(1.0) == pytest.approx(1 / sine + 2 * cosine**2 / sine**3, rel=1e-7)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_singular_term(target):
    """Emden's equation y'' + 2 y' / x + a y**5 = 0, solved by c / sqrt(1 + a c**4 x**2 / 3)."""

    def middle(a):
        return solve_bvp(
            lambda x, y: np.vstack([y[1], -a * y[0] ** 5]),
            lambda left, right: np.array([left[1], right[0] - np.sqrt(3 / 4)]),
            np.linspace(0, 1, 5), np.ones((2, 5)), S=np.array([[0, 0], [0, -2.0]]), tol=1e-6,
        ).sol(0.0)[0]  # fmt: skip

    value, slope = yota.value_and_grad(middle, target=target)(1.0)
    assert value == pytest.approx(1.0, rel=1e-8)
    assert slope == pytest.approx(0.25, rel=1e-6)


def test_an_infinite_derivative():
    ends = lambda left, right: np.stack([left[0], right[0] - 1])
    for rate in (lambda x, a: 1 + np.sqrt(a), lambda x, a: 1 + np.sqrt(a * x)):
        found = lambda a, rate=rate: solve_bvp(
            lambda x, y: np.stack([y[1], -rate(x, a) * y[0]]), ends, np.linspace(0, 1, 5), np.ones((2, 5))
        )
        with pytest.raises(DifferentiationError, match=r"solve_bvp at .* has no derivative here: it is infinite"):
            yota.grad(lambda a, found=found: found(a).y[1, 0], 0.0)
    with pytest.raises(DifferentiationError, match="result rms_residuals has no derivative"):
        yota.grad(lambda a: np.sum(found(a).rms_residuals), 1.0)


def test_what_failed_has_no_derivative():
    def bratu(a):
        return solve_bvp(
            lambda x, y: np.vstack([y[1], -a * np.exp(y[0])]),
            lambda left, right: np.stack([left[0], right[0]]),
            np.linspace(0, 1, 5), np.zeros((2, 5)), max_nodes=50,
        )  # fmt: skip

    # There is no solution beyond 3.51.
    for function in (lambda a: bratu(a).y[0, 2], lambda a: bratu(a).sol(0.5)[0]):
        # SciPy's search goes astray, and rounding errors grow.
        assert yota.trace(function, 4.0)[0] == pytest.approx(function(4.0), rel=1e-2)
        with pytest.raises(
            DifferentiationError, match=r"solve_bvp at .* failed, and its result has no derivative: The maxim"
        ):
            yota.grad(function, 4.0)
