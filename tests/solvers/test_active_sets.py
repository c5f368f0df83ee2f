"""Minima with constraints inside of traced functions, against closed forms and differences of the whole solve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import DifferentiationError

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


# A is beyond the unit ball.
A = np.array([2.0, 1.0, -1.0])
TIGHT = {"SLSQP": 1e-13, "trust-constr": 1e-9, "COBYLA": 1e-9, "COBYQA": 1e-9}
DICT = {"type": "ineq", "fun": lambda x, r: r**2 - x @ x, "jac": lambda x, r: -2 * x}
BALLS: dict[str, Any] = {
    "dict": lambda r: {"type": "ineq", "fun": lambda x: r**2 - x @ x},
    "dict with args": lambda r: [{**DICT, "args": (r,)}],
    "equation": lambda r: {"type": "eq", "fun": lambda x: r * (r**2 - x @ x)},
    "nonlinear": lambda r: optimize.NonlinearConstraint(lambda x: x @ x, -np.inf, r**2),
    "traced inside": lambda r: [optimize.NonlinearConstraint(lambda x: [x @ x / r], -1, r, jac=lambda x: 2 * x / r)],
}


# Every form with SLSQP, and every method with one form.
@pytest.mark.parametrize(
    ("form", "method"), [*((form, "SLSQP") for form in BALLS), *(("traced inside", m) for m in TIGHT)]
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_the_nearest_place_in_a_ball(form: str, method: str) -> None:
    """The nearest place to A in a ball of radius r is r * A / |A|; nothing but the constraint is traced."""

    def place(r: float) -> Any:
        given = {"method": method, "tol": TIGHT[method], "constraints": BALLS[form](r)}
        return optimize.minimize(lambda x: np.sum((x - A) ** 2), [0.3, 0.2, 0.1], **given)

    np.testing.assert_allclose(yota.jacobian(lambda r: place(r).x)(1.5), A / np.linalg.norm(A), rtol=1e-4)
    value, slope = yota.value_and_grad(lambda r: place(r).fun)(1.5)
    assert value == place(1.5).fun
    assert slope == pytest.approx(-2 * (np.linalg.norm(A) - 1.5), rel=1e-5)


def nearest(a: Any) -> Any:
    constraint = {"type": "ineq", "fun": lambda x: 1 - x @ x}
    start = np.array([0.3, 0.2, 0.1])
    return optimize.minimize(lambda x: np.sum((x - a) ** 2), start, method="SLSQP", tol=1e-14, constraints=constraint).x


def test_second_derivatives_on_a_curved_constraint() -> None:
    size = np.linalg.norm(A)
    np.testing.assert_allclose(yota.jacobian(nearest)(A), (np.eye(3) - np.outer(A, A) / size**2) / size, rtol=1e-5)
    e = np.eye(3)
    # d^2 (a_0 / |a|), from the quotient rule.
    wanted = 3 * A[0] * np.outer(A, A) / size**5 - (np.outer(e[0], A) + np.outer(A, e[0]) + A[0] * e) / size**3
    np.testing.assert_allclose(yota.hessian(lambda a: nearest(a)[0])(A), wanted, rtol=1e-5, atol=1e-6)
    # Inside of the ball, the place is A itself, by the same code.
    np.testing.assert_allclose(yota.jacobian(nearest)(A / 5), np.eye(3), atol=1e-5)


RISK = np.array([[0.1, 0.02, 0.01], [0.02, 0.08, 0.03], [0.01, 0.03, 0.2]])


def kkt(p: Any, rows: Any) -> Any:
    """The weights of assets on a budget, where weight 2 is zero; the conditions of the optimum solved by hand."""
    mu, budget = p[:3], p[3]
    matrix = np.block([[RISK[:2, :2], rows[:, None]], [rows[None, :], np.zeros((1, 1))]])
    return np.append(np.linalg.solve(matrix, np.append(mu[:2], budget))[:2], 0.0)


def test_a_portfolio_with_budget_and_bounds() -> None:
    p = np.array([0.1, 0.12, 0.02, 1.0])

    def weights(p: Any) -> Any:
        budget = {"type": "eq", "fun": lambda x: np.sum(x) - p[3]}
        loss = lambda x: 0.5 * x @ RISK @ x - p[:3] @ x
        start, bounds = np.full(3, 1 / 3), [(0, None)] * 3
        return optimize.minimize(loss, start, method="SLSQP", tol=1e-15, bounds=bounds, constraints=budget).x

    np.testing.assert_allclose(weights(p), kkt(p, np.ones(2)), atol=1e-6)
    wanted = [(kkt(p + 1e-4 * e, np.ones(2)) - kkt(p - 1e-4 * e, np.ones(2))) / 2e-4 for e in np.eye(4)]
    np.testing.assert_allclose(yota.jacobian(weights)(p), np.transpose(wanted), rtol=1e-7, atol=1e-8)


def test_traced_matrices_and_ends_of_linear_constraints() -> None:
    """The minimum of a quadratic function on A x = b, where another row is not active, is linear algebra."""
    mu = np.array([0.1, 0.12, 0.02])

    def place(p: Any) -> Any:
        rows = [LinearConstraint(p[:3], p[3], p[3]), LinearConstraint(np.stack([p[2::-1] ** 2]), -9 * p[3])]
        loss, slope = lambda x: 0.5 * x @ RISK @ x - mu @ x, lambda x: RISK @ x - mu
        start, bounds = np.full(3, 1 / 3), optimize.Bounds(-p[3] * np.ones(3), 3 * p[3])
        given = {"method": "SLSQP", "tol": 1e-15, "jac": slope, "bounds": bounds}
        return optimize.minimize(loss, start, constraints=rows, **given).x

    def by_hand(p: Any) -> Any:
        matrix = np.block([[RISK, p[:3, None]], [p[None, :3], np.zeros((1, 1))]])
        return np.linalg.solve(matrix, np.append(mu, p[3]))[:3]

    p = np.array([1.0, 1.2, 0.7, 0.9])
    wanted = [(by_hand(p + 1e-5 * e) - by_hand(p - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    np.testing.assert_allclose(yota.jacobian(place)(p), np.transpose(wanted), rtol=1e-6, atol=1e-8)


def test_vertices_of_curved_constraints() -> None:
    def vertex(r: float) -> Any:
        rows = [{"type": "ineq", "fun": lambda x: x[0] * x[1] - r}, {"type": "ineq", "fun": lambda x: x[1] - x[0]}]
        return optimize.minimize(lambda x: x[0] + 2 * x[1], [0.1, 0.1], method="SLSQP", tol=1e-13, constraints=rows).x

    np.testing.assert_allclose(yota.jacobian(vertex)(1.5), 0.5 / np.sqrt([1.5, 1.5]), rtol=1e-7)


def held(a: Any, *constraints: Any, **options: Any) -> Any:
    given = {"method": "SLSQP", "tol": 1e-12, "constraints": constraints, **options}
    return optimize.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2), **given).x


LINE = {"type": "ineq", "fun": lambda x: 1 - x[0] - x[1]}


def test_a_constraint_without_a_multiplier_has_two_derivatives() -> None:
    place = yota.jacobian(lambda a: held(a, LINE))
    with pytest.raises(
        DifferentiationError, match=r"at the end of element 0 of constraints\[0\], whose multiplier is z"
    ):
        place(np.array([0.3, 0.7]))
    np.testing.assert_allclose(place(np.array([0.3, 0.71])), [[0.5, -0.5], [-0.5, 0.5]], atol=1e-9)
    np.testing.assert_allclose(place(np.array([0.3, 0.69])), np.eye(2), atol=1e-9)


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_a_bound_without_a_multiplier_has_two_derivatives(method: str) -> None:
    bounds = [(None, None), (0.0, None)]
    place = yota.jacobian(lambda a: held(a, method=method, bounds=bounds))
    with pytest.raises(DifferentiationError, match=r"at the end of the bounds of x\[1\], whose multiplier is zero"):
        place(np.array([0.3, 0.0]))
    np.testing.assert_allclose(place(np.array([0.3, 0.01])), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(place(np.array([0.3, -0.01])), np.diag([1.0, 0.0]), atol=1e-9)


def test_dependent_constraints_are_refused_unless_they_are_fixed() -> None:
    a = np.array([0.9, 0.8])
    repeated = {"type": "ineq", "fun": lambda x: 2 - 2 * x[0] - 2 * x[1]}
    with pytest.raises(DifferentiationError, match="has no derivative here"):
        yota.jacobian(lambda a: held(a, LINE, repeated))(a)
    with pytest.raises(DifferentiationError, match=r"gradients of element 1 of constraints\[0\] and of other active"):
        pair = lambda r: {"type": "eq", "fun": lambda x: np.array([x[0] + x[1] - r, 2 * (x[0] + x[1] - r)])}
        yota.jacobian(lambda r: held(a, pair(r), method="COBYQA"))(1.0)
    rows = LinearConstraint([[1.0, 1.0], [2.0, 2.0]], -np.inf, [1.0, 2.0])
    np.testing.assert_allclose(yota.jacobian(lambda a: held(a, rows))(a), [[0.5, -0.5], [-0.5, 0.5]], atol=1e-9)


def test_what_is_no_solution_has_no_derivative() -> None:
    outside = {"type": "ineq", "fun": lambda x: x[0] - 3}
    with pytest.raises(DifferentiationError, match=r"did not converge: element 0 of constraints\[\d\] is violated"):
        yota.gradient(lambda a: held(a, LINE, outside, bounds=[(None, 2), (0, 1)])[0])(A[:2])
    few = {"method": "SLSQP", "options": {"maxiter": 1}, "constraints": LINE}
    with pytest.raises(DifferentiationError, match="did not converge"):
        yota.gradient(lambda a: optimize.minimize(lambda x: np.sum((x - a) ** 4), [9.0, 9.0], **few).x[0])(A[:2])
    with pytest.raises(DifferentiationError, match="is infinite or no number"):
        loss = lambda x, a: a * x[0] + np.sqrt(x[1]) + x[0] ** 2
        yota.gradient(lambda a: optimize.minimize(loss, [0.3, 0.4], (a,), bounds=[(-1, 1), (0, 1)]).x[0])(1.0)


def test_arrays_of_constraints_may_change() -> None:
    limit = np.array([0.5, 0.5])
    place = yota.gradient(lambda a: held(a, bounds=optimize.Bounds(-1, limit))[0] * a[0])
    assert place(np.array([0.9, 0.1]))[0] == pytest.approx(0.5)
    limit[0] = 0.7
    assert place(np.array([0.9, 0.1]))[0] == pytest.approx(0.7)
