"""Functions of scipy.optimize that are other spellings of ``minimize``, and sparse matrices of constraints."""

import numpy as np
import pytest
from scipy import optimize
from scipy.sparse import csc_array, csr_array, csr_matrix

import yota
from yota.errors import DifferentiationError

K = 1.2
START = [0.4, 0.4, 0.5]


def distance(x, k):
    return np.sum((x - k) ** 2) + x[0] * k


def expected(k):
    """The minimum of the distance where the first two elements add up to 1, and the last is at most k / 2."""
    return np.stack([0.5 - k / 4, 0.5 + k / 4, k / 2])


SLOPES = [-0.25, 0.25, 0.5]


def equations(k):
    return optimize.fmin_slsqp(
        distance, START, [lambda x, k: x[0] + x[1] - 1], args=(k,), bounds=[(0, 1), (0, 1), (0, k / 2)], iprint=0
    )


def arrays(k):
    return optimize.fmin_slsqp(
        lambda x: distance(x, k),
        START,
        f_eqcons=lambda x: np.stack([x[0] + x[1] - 1]),
        f_ieqcons=lambda x: np.stack([k / 2 - x[2], x[0] + 5]),
        fprime_eqcons=lambda x: np.array([[1.0, 1.0, 0.0]]),
        fprime=lambda x: 2 * (x - k) + np.stack([k, 0.0 * k, 0.0 * k]),
        acc=1e-12,
        disp=0,
        full_output=True,
    )[0]


def cobyla(k):
    functions = [lambda x, k: 1 - x[0] - x[1], lambda x, k: k / 2 - x[2]]
    return optimize.fmin_cobyla(lambda x: distance(x, k), START, functions, consargs=(k,), rhoend=1e-9, maxfun=5000)


def nonlinear(kind, method):
    def solved(k):
        squares = optimize.NonlinearConstraint(
            lambda x: np.stack([(x[0] + x[1]) ** 2, x[2] / k]),
            [1.0, -np.inf],
            [1.0, 0.5],
            jac=lambda x: kind(
                np.stack([np.stack([2 * (x[0] + x[1])] * 2 + [0 * k]), np.stack([0 * k, 0 * k, 1 / k])])
            ),
        )
        options = {"gtol": 1e-11, "xtol": 1e-12} if method == "trust-constr" else {"ftol": 1e-13}
        fun = lambda x: distance(x, k)
        return optimize.minimize(fun, START, method=method, constraints=squares, options=options).x

    return solved


def linear(kind, method):
    matrix = kind(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))

    def solved(k):
        sums = optimize.LinearConstraint(matrix / k, np.stack([1 / k, -np.inf]), np.stack([1 / k, 0.5]))
        return optimize.minimize(lambda x: distance(x, k), START, method=method, constraints=sums, tol=1e-12).x

    return solved


CALLS = {"equations": equations, "arrays": arrays, "cobyla": cobyla}
CALLS |= {f"nonlinear {kind.__name__}": nonlinear(kind, "trust-constr") for kind in (csr_array, csr_matrix)}
CALLS |= {"nonlinear csc_array": nonlinear(csc_array, "SLSQP"), "linear csr_array": linear(csr_array, "SLSQP")}
CALLS |= {"linear csc_array": linear(csc_array, "trust-constr")}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0", "ignore:Equality and inequality constraints")
def test_the_solution_follows_active_constraints(name):
    solved = CALLS[name]
    np.testing.assert_allclose(solved(K), expected(K), atol=2e-4)
    derivative = yota.jacobian(solved)
    np.testing.assert_allclose(derivative(K), SLOPES, atol=1e-6)
    # The same code serves another value.
    np.testing.assert_allclose(derivative(1.1 * K), SLOPES, atol=1e-6)


def test_results_are_those_of_scipy():
    call = lambda k: optimize.fmin_slsqp(distance, START, args=(k,), iprint=0, full_output=True)
    found = []
    value = yota.grad(lambda k: found.append(call(k)) or found[-1][1], K)[0]
    own = call(K)
    assert value == own[1] and found[0][3:] == own[3:]


def test_places_are_named():
    def repeated(k):
        sums = optimize.LinearConstraint(csr_array(np.ones((2, 3))) * k, [1.0, 1.0], [1.0, 1.0])
        return optimize.minimize(lambda x: distance(x, k), START, method="SLSQP", constraints=sums).x[0]

    with pytest.raises(DifferentiationError, match=r"constraints\[0\] and of other active constraints are dependent"):
        yota.grad(repeated, K)
