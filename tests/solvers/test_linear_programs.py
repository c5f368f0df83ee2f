"""Linear programs of scipy.optimize inside of traced functions, against exact vertices and differences."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, linprog

import yota
from yota.errors import DifferentiationError, TracingError
from yota.solvers import linear_programs

A = np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0]])
B = np.array([14.0, 20.0, 18.0])
C = np.array([-5.0, -4.0, -3.5])
WEIGHTS = np.array([1.0, -2.0, 0.5])


def differences(f, x, step=1e-4):
    return np.array([(f(x + step * unit) - f(x - step * unit)) / (2 * step) for unit in np.eye(len(x))])


PROGRAMS = {
    "rows": lambda p: linprog(p[0] * C, A * p[1], B + p[2]),
    "equations": lambda p: linprog(
        [1, p[0], 5], A_eq=[[1, 1, p[1]]], b_eq=p[2], bounds=[(0, 2), (0.1 * p[0], 4), (0, 9)]
    ),
    "both": lambda p: linprog(C, A[:2] * p[1], B[:2] - p[2], [[1.0, -1.0, p[0]]], [0.5 * p[2]], method="highs-ds"),
    "one pair": lambda p: linprog(p * [1, -2, 1], bounds=(p[1], 3 * p[2]), method="highs-ipm"),
    "sparse": lambda p: linprog(C, sp.diags_array([1.0, 2.0, 3.0]) + sp.csr_array(np.ones((3, 3)) * p[0]), B * p[1]),
    "free": lambda p: linprog([5, p[0] + 4, 6], -A - 0.1 * p[1], -B * p[2], bounds=[None, None]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_results(name):
    def loss(p):
        found = PROGRAMS[name](p)
        total = found.x @ WEIGHTS + found.fun**2 + np.sum(found.lower.marginals**2) + np.sum(found.upper.marginals**3)
        for part, own in ((found.ineqlin, found.slack), (found.eqlin, found.con)):
            total = total + np.sum(part.marginals**2) + np.sum(own**2) + np.sum(np.sin(part.residual))
        return total

    p = np.array([1.1, 1.25, 0.9])
    value, slope = yota.value_and_grad(loss)(p)
    assert value == pytest.approx(loss(p), rel=1e-12)
    np.testing.assert_allclose(slope, differences(loss, p), rtol=1e-5, atol=1e-6)


def test_a_vertex_and_its_prices_are_exact():
    """The vertex solves the rows that are active; the derivative of the optimum by a right side is its multiplier."""

    def found(b):
        return linprog([-3.0, -5.0], [[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]], b)

    b = np.array([4.0, 6.0, 100.0])
    exact = [[Fraction(-1, 5), Fraction(2, 5), 0], [Fraction(3, 5), Fraction(-1, 5), 0]]
    np.testing.assert_allclose(yota.jacobian(lambda b: found(b).x)(b), np.array(exact, float), rtol=1e-14, atol=1e-15)
    slope = yota.gradient(lambda b: found(b).fun)
    np.testing.assert_allclose(slope(b), found(b).ineqlin.marginals, rtol=1e-13)
    # At other numbers other rows are active.
    b = np.array([400.0, 6.0, 4.0])
    np.testing.assert_allclose(slope(b), found(b).ineqlin.marginals, rtol=1e-13)
    second = yota.hessian(lambda a: linprog([-1.0], [[a]], [6.0]).fun)
    assert second(2.0) == pytest.approx(-6.0 * 2 / 8, rel=1e-12)


@pytest.mark.parametrize(
    "program",
    [
        lambda t: linprog([-1, -2 * t], [[1, 2], [3, 1]], [4, 6]).x[0],
        lambda t: linprog([-1, -1], [[1, 0], [0, 1], [1, 1]], [1, 1, 2 * t]).fun,
        lambda t: linprog([1.0 * t, 0.0], bounds=[(0, 1), (0, 1)]).x[1],
        lambda t: linprog([1.0, 3.0], A_eq=[[1, 1], [2, 2]], b_eq=[t, 2 * t]).x[0],
    ],
    ids=["many optima", "three rows meet", "no cost", "equations repeat"],
)
def test_degenerate_vertices_are_refused(program):
    with pytest.raises(DifferentiationError, match="singular"):
        yota.gradient(program)(1.0)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_a_function_may_read_that_there_is_no_solution(target):
    def cost(t):
        found = linprog([-1.0, -2.0], [[1.0, 1.0]], [t])
        return found.fun if found.success else 3 * t + found.status

    fg = yota.value_and_grad(cost, target=target)
    assert [fg(t) for t in (1.0, -1.0, -2.0, 2.0)] == [(-2.0, -2.0), (-1.0, 3.0), (-4.0, 3.0), (-4.0, -2.0)]


def test_what_is_no_regular_program_is_refused():
    with pytest.raises(TracingError, match="integrality"):
        yota.gradient(lambda t: linprog([-t], [[2.0]], [3.0], integrality=1).fun)(1.0)
    # Without integers there is no gap.
    value, g = yota.grad(lambda t: t * t + linprog([t], [[-2.0]], [-3.0]).mip_gap, 1.0)
    assert (value, g[0]) == (1.0, 2.0)


def test_a_wrong_active_set_shows(monkeypatch):
    def fails(gap, scale, multiplier, weight, level):
        return np.where(weight > 1e-8 * level, multiplier, gap)

    monkeypatch.setattr(linear_programs, "_either", fails)
    with pytest.raises(DifferentiationError, match=r"linprog at .*test_linear_programs\.py:\d+ has no derivative"):
        yota.gradient(lambda b: linprog([-3.0, -5.0], [[1.0, 2.0], [3.0, 1.0]], b).fun)(np.array([4.0, 6.0]))


def test_an_assignment_follows_its_costs():
    def loss(costs):
        rows, columns = linear_sum_assignment(costs, maximize=True)
        return np.sum(costs[rows, columns] ** 2)

    derivative = yota.value_and_grad(loss)
    for seed in range(4):
        costs = np.random.default_rng(seed).random((4, 5))
        rows, columns = linear_sum_assignment(costs, maximize=True)
        expected = np.zeros((4, 5))
        expected[rows, columns] = 2 * costs[rows, columns]
        value, slope = derivative(costs)
        assert value == loss(costs)
        np.testing.assert_array_equal(slope, expected)
