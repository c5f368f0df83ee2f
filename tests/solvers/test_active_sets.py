"""Minima with linear constraints inside of traced functions, against the closed form of quadratic ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import TracingError
from yota.solvers import active_sets

optimize = pytest.importorskip("scipy.optimize")

LinearConstraint = optimize.LinearConstraint
WEIGHTS = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 3.0]])
AIM = np.array([0.9, -0.4, 0.3])
BUDGET = LinearConstraint(np.ones((1, 3)), 1.0, 1.0)

# Constraints, bounds, and the normals of what binds.
CASES: dict[str, tuple[Any, Any, list[list[float]]]] = {
    "equation": (BUDGET, None, [[1, 1, 1]]),
    "equation and bounds": (BUDGET, [(0, None)] * 3, [[1, 1, 1], [0, 1, 0]]),
    "several": ([BUDGET, LinearConstraint([[1.0, -1.0, 0.0]], -np.inf, 0.3)], None, [[1, 1, 1], [1, -1, 0]]),
    "inequalities": (LinearConstraint(2.0 * np.eye(3), 0.0, np.inf), optimize.Bounds(-1, 0.5), [[0, 1, 0], [1, 0, 0]]),
    "none binds": (LinearConstraint([[1.0, 1.0, 1.0]], -5.0, 5.0), None, []),
    "repeated": ([BUDGET, LinearConstraint([[3.0, 3.0, 3.0]], 3.0, np.inf)], None, [[1, 1, 1]]),
    "a row of zeros": ([BUDGET, LinearConstraint(np.zeros((1, 3)), -1, 1)], None, [[1, 1, 1]]),
}


def aimed(x: Any, a: Any) -> Any:
    return 0.5 * (x - a) @ (WEIGHTS @ (x - a))


def expected(normals: list[list[float]]) -> Any:
    """dx/da of the minimum on the space on which the constraints hold."""
    free = np.eye(3) if not normals else np.linalg.svd(np.array(normals))[2][np.linalg.matrix_rank(normals) :].T
    return free @ np.linalg.solve(free.T @ WEIGHTS @ free, free.T @ WEIGHTS)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_quadratic_minima(name: str, method: str) -> None:
    constraints, bounds, normals = CASES[name]

    def place(a: Any) -> Any:
        start = np.array([0.3, 0.3, 0.4])
        kinds = {"method": method, "constraints": constraints, "bounds": bounds, "tol": 1e-9}
        return optimize.minimize(aimed, start, (a,), **kinds).x

    np.testing.assert_array_equal(yota.value_and_grad(lambda a: place(a)[0])(AIM)[0], place(AIM)[0])
    np.testing.assert_allclose(yota.jacobian(place)(AIM), expected(normals), rtol=1e-9, atol=1e-9)


def test_slopes_of_slopes_and_of_what_is_read_from_outside() -> None:
    def best(p: float) -> Any:
        # On the line x + y = 1: exp(x) + p * exp(y) is least where x - y = log(p).
        found = optimize.minimize(
            lambda x: np.exp(x[0]) + p * np.exp(x[1]),
            [0.5, 0.5],
            constraints=LinearConstraint([[1.0, 1.0]], 1.0, 1.0),
            tol=1e-12,
        )
        return found.x[0]

    for p in (1.5, 2.5):
        assert best(p) == pytest.approx(0.5 + 0.5 * np.log(p), abs=1e-5)
        assert yota.gradient(best)(p) == pytest.approx(0.5 / p, rel=1e-5)
        assert yota.hessian(best)(p) == pytest.approx(-0.5 / p**2, rel=1e-4)


def test_the_constraints_that_bind_may_change() -> None:
    def place(a: Any) -> Any:
        limit = LinearConstraint([[1.0, 0.0, 0.0]], -np.inf, 1.0)
        return optimize.minimize(aimed, np.zeros(3), (a,), method="SLSQP", constraints=limit, tol=1e-12).x

    jacobian = yota.jacobian(place)
    for first, normals in ((0.5, []), (2.0, [[1.0, 0.0, 0.0]]), (0.5, [])):
        np.testing.assert_allclose(jacobian(np.array([first, 0.2, 0.1])), expected(normals), rtol=1e-9, atol=1e-9)


def test_a_constraint_that_does_not_push_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = active_sets.stacked([LinearConstraint(np.eye(2), 0.0, np.inf)], None, 2)
    x = np.array([0.0, 0.0])
    np.testing.assert_allclose(active_sets.taken_away(rows, x, lambda x: x @ x), np.zeros((2, 2)), atol=1e-12)
    found = active_sets.taken_away(rows, x, lambda x: x @ x + 2 * x[1])
    np.testing.assert_allclose(found, np.diag([0.0, 1.0]), atol=1e-12)
    # A function that ends at the constraint.
    found = active_sets.taken_away(rows, x, lambda x: x[0] + np.sqrt(x[1]) if x[1] >= 0 else np.nan)
    np.testing.assert_allclose(found, np.eye(2), atol=1e-12)
    near = active_sets.taken_away(rows, np.array([1e-7, 1.0]), lambda x: x[0] + (x[1] - 1) ** 2)
    np.testing.assert_allclose(near, np.diag([1.0, 0.0]), atol=1e-12)


def test_other_constraints_are_refused() -> None:
    for constraints in (
        {"type": "eq", "fun": lambda x: x[0] - 1},
        [BUDGET, optimize.NonlinearConstraint(lambda x: x[0] ** 2, 0, 1)],
    ):
        with pytest.raises(TracingError, match="constraints other than plain LinearConstraints"):
            yota.gradient(lambda a, c=constraints: optimize.minimize(aimed, AIM, (a,), constraints=c).x[0])(AIM)
