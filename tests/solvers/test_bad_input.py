"""Solvers that fail: results, errors and warnings are SciPy's, and a derivative that does not exist is refused."""

import warnings

import numpy as np
import pytest
from scipy import integrate, interpolate, optimize, sparse
from scipy.sparse import linalg

import yota
from yota.errors import DifferentiationError

P = np.array([1.1, 0.9])
SINGULAR = sparse.csc_array([[1.0, 2.0], [2.0, 4.0]])
STIFF = sparse.csc_array(np.diag([4.0, 5.0, 6.0]) + np.diag([1.0, 1.0], 1) + np.diag([1.0, 1.0], -1))
GRID = np.linspace(0, 3, 7)
none = lambda x, p: np.array([x[0] ** 2 + p[0], x[1] - p[1]])
flat = lambda x, p: np.array([x[0] + x[1] - p[0], 2 * x[0] + 2 * x[1] - 2 * p[0]])
quartic = lambda x, p: (x[0] - p[0]) ** 4 + (x[1] - p[1]) ** 2
cube = lambda x, p: x**3 - p[0] * x - p[1]
grows = lambda t, y, p: p[0] * y**2


def whole(found):
    return found.x, found.nfev, found.success


def ended(found):
    return found.y[:, -1], found.status, len(found.t)


def grazed(p):
    event = lambda t, y: (y[0] - p[0] / 2) ** 3
    return integrate.solve_ivp(lambda t, y: [p[0]], (0, 2), [0.0], events=event).t_events[0]


def scaled(p):
    return linalg.LinearOperator((3, 3), matvec=lambda v: p[0] * (STIFF @ v), dtype=float)


# What a derivative says; None where the function itself raises.
CASES = {
    "no convergence": (lambda p: optimize.brentq(cube, 0, 4, (p,), maxiter=2, disp=False), "did not converge"),
    "too few steps": (lambda p: optimize.toms748(cube, 0, 4, (p,), maxiter=2), None),
    "no change of sign": (lambda p: optimize.bisect(lambda x: x * x + p[0], 0, 4), None),
    "zero slope": (lambda p: optimize.newton(lambda x: x * x - p[0], 0.0, lambda x: 2 * x, disp=False), "is zero"),
    "some roots": (lambda p: optimize.newton(lambda x: x**2 - p * [1, -1], P, lambda x: 2 * x), "did not converge"),
    "no root": (lambda p: whole(optimize.root(none, [1.0, 0.3], (p,))), "did not converge"),
    "singular": (lambda p: whole(optimize.root(flat, [1.0, 0.3], (p,), "lm")), "is singular"),
    "no root, fsolve": (lambda p: optimize.fsolve(none, [1.0, 0.3], (p,)), "did not converge"),
    "no fixed point": (lambda p: optimize.fixed_point(lambda x: 3 * x + p[0], 1.0, method="iteration"), None),
    "one step": (lambda p: whole(optimize.minimize(quartic, [9, -9], (p,), options={"maxiter": 1})), "not converge"),
    "two minima": (lambda p: whole(optimize.least_squares(flat, [5.0, 9.0], args=(p,))), "is singular"),
    "few calls": (lambda p: optimize.curve_fit(lambda x, a: np.exp(-a * x * p[0]), GRID, GRID, [9], maxfev=2), None),
    "infinite": (lambda p: ended(integrate.solve_ivp(grows, (0, 5), [1.0], args=(p,))), "Required step size"),
    "stiff": (lambda p: ended(integrate.solve_ivp(grows, (0, 5), [1.0], "BDF", [0.5, 2.0], args=(p,))), "step size"),
    "few steps": (lambda p: integrate.odeint(lambda y, t: -p[0] * y, 1.0, [0.0, 50.0], mxstep=2), "Excess work"),
    "unsorted": (lambda p: ended(integrate.solve_ivp(grows, (0, 1), [1.0], t_eval=[0.5, 0.2], args=(p,))), None),
    "grazed": (grazed, None),
    "divergent": (lambda p: integrate.quad(lambda x: p[0] / x, 0, 1, limit=7), "does not converge"),
    "pole": (lambda p: integrate.quad(lambda x, a: 1 / (x - a), 0, 3 * p[1], (p[0],))[0], "does not converge"),
    "within": (lambda p: integrate.dblquad(lambda y, x: p[0] * x / y**1.5, 0, 1, 0, 1), "does not converge"),
    "weight": (lambda p: integrate.quad(lambda x: p[0], 0, np.inf, weight="alg", wvar=(0, 0)), None),
    "steep": (lambda p: integrate.quad(lambda x: p[0] / x**1.5, 0, 1, weight="cos", wvar=1)[0], "does not converge"),
    "several": (
        lambda p: integrate.tanhsinh(lambda x, a: p[0] / (x - a), 0, 1, args=(p * [0.3, -2.0],)).integral,
        "does not converge",
    ),
    "nodes": (lambda p: integrate.tanhsinh(lambda x: p[0] / (x - 0.3), 0, 1).integral, "does not converge"),
    "singular matrix": (lambda p: linalg.splu(SINGULAR * p[0]).solve(p), None),
    "iterations": (lambda p: linalg.cg(STIFF * p[0], [1.0, 2.0, 3.0], maxiter=1), "did not converge"),
    "operator": (lambda p: linalg.cg(scaled(p), [1.0, 2.0, 3.0], maxiter=1), "did not converge"),
    "indefinite": (lambda p: linalg.minres(SINGULAR * p[0], p, maxiter=5), "did not converge"),
    "few data": (lambda p: interpolate.make_lsq_spline(GRID[:4], GRID[:4] * p[0], [0] * 4 + [1] * 5)(p), None),
    "too few points": (lambda p: interpolate.splev(p, interpolate.splrep(GRID[:3], GRID[:3] * p[0])), None),
    "knots": (lambda p: interpolate.LSQUnivariateSpline(GRID, GRID * p[0], [0.1, 0.2, 0.3])(p), None),
    "outside": (lambda p: interpolate.interp1d(GRID, GRID * p[0])(5 * p), None),
}


def total(found):
    return sum(map(np.sum, found)) if isinstance(found, tuple) else np.sum(found)


def outcome(function):
    """The result or the error, and the kinds of warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = function()
        except Exception as fault:  # noqa: BLE001 -- the tests compare it
            found = fault
    return found, {each.category for each in seen}


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("name", CASES)
def test_results_errors_and_warnings_are_those_of_scipy(name, target):
    function, says = CASES[name]
    wanted, kinds = outcome(lambda: total(function(P)))
    held = yota.value_and_grad(lambda p: 2 * p[0] + yota.stop_gradient(total(function(p))), target=target)
    for _ in range(2):
        found, own = outcome(lambda: held(P))
        if isinstance(wanted, Exception):
            assert says is None and type(found) is type(wanted) and str(wanted) in str(found)
            continue
        assert own == kinds
        assert found[0] - 2 * P[0] == pytest.approx(wanted, rel=1e-6, abs=1e-9)
        np.testing.assert_array_equal(found[1], [2.0, 0.0])
    if says is not None:
        found, _ = outcome(lambda: yota.value_and_grad(lambda p: total(function(p)), target=target)(P))
        assert isinstance(found, DifferentiationError) and says in str(found)
        assert "test_bad_input.py:" in str(found)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_another_solver_may_follow_an_iteration_that_does_not_converge(target):
    def f(p):
        x, info = linalg.cg(STIFF * p, [1.0, 2.0, 3.0], maxiter=1)
        return np.sum(x if info == 0 else linalg.gmres(STIFF * p, [1.0, 2.0, 3.0], rtol=1e-13)[0])

    fg, exact = yota.value_and_grad(f, target=target), np.sum(np.linalg.solve(STIFF.toarray(), [1.0, 2.0, 3.0]))
    for p in (1.1, 1.7):
        assert fg(p) == (pytest.approx(exact / p, rel=1e-12), pytest.approx(-exact / p**2, rel=1e-12))
