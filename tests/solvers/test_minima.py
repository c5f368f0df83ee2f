"""Minima and fits of scipy.optimize inside of traced functions, against closed forms and normal equations."""

import warnings

import numpy as np
import pytest
from scipy import optimize, sparse

import yota
from yota.errors import DifferentiationError, StaleTapeError, TracingError


def bowl(x, a):
    """The minimum is at (a**2, a**3), and is 1 + a."""
    return np.cosh(x[0] - a * a) + (x[1] - a * x[0]) ** 2 + a


def slope(x, a):
    return np.array([np.sinh(x[0] - a * a) - 2 * a * (x[1] - a * x[0]), 2 * (x[1] - a * x[0])])


SOLVERS = {
    **{
        method: lambda a, method=method: optimize.minimize(bowl, [0.5, 0.5], (a,), method=method, tol=1e-9).x
        for method in ("BFGS", "L-BFGS-B", "Nelder-Mead", "Powell")
    },
    "with jac": lambda a: (
        optimize.minimize(lambda x: (bowl(x, a), slope(x, a)), [0.5, 0.5], jac=True, method="Newton-CG", tol=1e-9).x
    ),
    "fmin_bfgs": lambda a: optimize.fmin_bfgs(bowl, [0.5, 0.5], args=(a,), gtol=1e-7, disp=False),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_minima(name):
    fg = yota.value_and_grad(lambda a: np.sum(SOLVERS[name](a)))
    for a in (0.9, 1.1):
        assert fg(a) == (np.sum(SOLVERS[name](a)), pytest.approx(2 * a + 3 * a * a, rel=1e-6))


def test_of_one_variable_and_values():
    for search in (
        lambda f: optimize.minimize_scalar(f).x,
        lambda f: optimize.minimize_scalar(f, bounds=(0, 2), method="bounded").x,
        optimize.golden,
        lambda f: optimize.fminbound(f, 0, 2),
    ):
        slope = yota.gradient(lambda a, search=search: search(lambda x: np.cosh(x - a * a)))(0.9)
        assert slope == pytest.approx(1.8, rel=1e-12)
    assert yota.gradient(lambda a: optimize.minimize(bowl, [0.5, 0.5], (a,)).fun)(0.9) == pytest.approx(1.0, rel=1e-9)
    second = yota.hessian(lambda a: optimize.minimize(bowl, [0.5, 0.5], (a,), tol=1e-10).x[1])
    assert second(0.9) == pytest.approx(5.4, rel=1e-7)


def test_at_bounds():
    def place(a):
        return np.sum(optimize.minimize(bowl, [0.2, 0.5], (a,), bounds=[(0, 0.3), (None, None)]).x)

    value, slope = yota.value_and_grad(place)(0.9)
    assert (value, slope) == (place(0.9), pytest.approx(0.3, rel=1e-6))


T = np.linspace(0.0, 2.0, 20)
Y = 2 * np.exp(-1.3 * T) + 0.05 * np.cos(9 * T)


def model(t, a, b):
    return a * np.exp(-b * t)


def normal_equations(p, loss, scale):
    """The derivative of the fit by the data, from first and second derivatives by hand."""
    rest, e = model(T, *p) - Y, np.exp(-p[1] * T)
    jacobian = np.stack([e, -p[0] * T * e])
    z = (rest / scale) ** 2
    # The derivative of the loss by a residual, and its derivative.
    first, second = {
        "linear": (rest, 1.0),
        "soft_l1": (rest / np.sqrt(1 + z), (1 + z) ** -1.5),
        "cauchy": (rest / (1 + z), (1 - z) / (1 + z) ** 2),
        "huber": (np.clip(rest, -scale, scale), (z <= 1) * 1.0),
        "arctan": (rest / (1 + z**2), (1 - 3 * z**2) / (1 + z**2) ** 2),
    }[loss]
    bend = np.array([[0 * T, -T * e], [-T * e, p[0] * T * T * e]])
    hessian = (jacobian * second) @ jacobian.T + bend @ first
    return np.linalg.solve(hessian, jacobian * second)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "cauchy", "arctan", "huber"])
def test_least_squares(loss):
    def fit(y):
        tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-13}
        return optimize.least_squares(
            lambda p: model(T, *p) - y, [1.8, 1.1], loss=loss, f_scale=0.04, **tight, x_scale=[1.0, 1.0]
        ).x

    value, slopes = yota.value_and_grad(lambda y: fit(y)[1])(Y)
    assert value == fit(Y)[1]
    np.testing.assert_allclose(slopes, normal_equations(fit(Y), loss, 0.04)[1], rtol=1e-9, atol=1e-12)


TRACED = {
    "minimize_scalar": lambda f, a: optimize.minimize_scalar(f, bounds=(a - 1, 2), method="bounded").x,
    "fminbound": lambda f, a: optimize.fminbound(f, -a, 2 * a),
    "minimize": lambda f, a: optimize.minimize(lambda x: f(x[0]), [0.4], bounds=[(0.0, 3 * a)], tol=1e-10).x[0],
    "fmin_l_bfgs_b": lambda f, a: optimize.fmin_l_bfgs_b(
        lambda x: f(x[0]), [0.4], bounds=[(0.0, 3 * a)], approx_grad=True, factr=10
    )[0][0],
    "least_squares": lambda f, a: optimize.least_squares(
        lambda x: x - a * a, [0.4], bounds=(0.0, 3 * a), xtol=1e-14, ftol=1e-14, gtol=1e-14
    ).x[0],
}


@pytest.mark.parametrize("name", TRACED)
def test_the_minimum_does_not_depend_on_a_traced_bound_that_it_is_not_at(name):
    slope = yota.gradient(lambda a: TRACED[name](lambda x: np.cosh(x - a * a), a))
    assert slope(0.9) == pytest.approx(1.8, rel=1e-6)


@pytest.mark.parametrize("name", TRACED)
def test_the_minimum_at_a_traced_bound_moves_with_it(name):
    """For a between 3 and 3.6 the minimum of the function without bounds, a * a, is beyond the bound."""
    slope = yota.jacobian(lambda a: TRACED[name](lambda x: np.cosh(x - a * a), a))
    at = {"minimize_scalar": 2.0, "fminbound": 2.5}.get(name, 3.5)
    assert slope(at) == {"minimize_scalar": 0, "fminbound": 2}.get(name, 3)
    below = yota.jacobian(lambda a: TRACED[name](lambda x: np.cosh(x + 3), a))(0.9)
    assert below == {"minimize_scalar": 1, "fminbound": -1}.get(name, 0 if name != "least_squares" else 1.8)


METHODS = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell", "COBYLA", "COBYQA")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
def test_traced_bounds_with_every_method(method):
    """By hand: x[0] is at its upper bound, x[1] the same, and x[2] is at its lower bound."""

    def place(p):
        bounds = [(0, p[0]), (None, None), (p[1], None)]
        loss = lambda x: np.cosh(x[0] - 3) + (x[1] - x[0]) ** 2 + np.exp(x[2]) * p[2]
        return optimize.minimize(loss, [0.5, 0.5, 0.5], method=method, tol=1e-10, bounds=bounds).x

    p = np.array([1.2, 0.1, 0.7])
    np.testing.assert_array_equal(yota.gradient(lambda p: np.sum(place(p) ** 2))(p)[2], 0)
    np.testing.assert_allclose(yota.jacobian(place)(p), [[1, 0, 0], [1, 0, 0], [0, 1, 0]], atol=1e-9)


@pytest.mark.parametrize("loss", ["linear", "soft_l1"])
@pytest.mark.parametrize("method", ["trf", "dogbox"])
def test_fits_at_traced_bounds_are_fits_of_the_other_variables(method, loss):
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "loss": loss, "f_scale": 0.04}

    def at_bound(p):
        ends = ([0, 0], [p[0], np.inf])
        fit = optimize.least_squares(lambda x: model(T, *x) - p[1] * Y, [1.0, 1.0], bounds=ends, method=method, **tight)
        return fit.x

    def other(p):
        return optimize.least_squares(lambda x: model(T, p[0], x[0]) - p[1] * Y, [1.0], **tight).x[0]

    p = np.array([1.7, 1.1])
    found = yota.jacobian(at_bound)(p)
    np.testing.assert_allclose(found[0], [1, 0], atol=1e-12)
    np.testing.assert_allclose(found[1], yota.gradient(other)(p), rtol=1e-3)
    steps = [(other(p + 1e-5 * e) - other(p - 1e-5 * e)) / 2e-5 for e in np.eye(2)]
    np.testing.assert_allclose(found[1], steps, rtol=1e-3)


def test_a_variable_between_equal_bounds_follows_them():
    def place(p):
        loss = lambda x: (x[1] - np.sin(x[0])) ** 2
        return optimize.minimize(loss, [0.1, 0.2], method="SLSQP", tol=1e-14, bounds=[(p, p), (None, None)]).x

    np.testing.assert_allclose(yota.jacobian(place)(0.3), [1, np.cos(0.3)], rtol=1e-6)


def test_units_are_not_taken_for_bounds():
    """A minimum of size 1e-9 is not at the bound zero."""
    matrix, right, units = (
        np.array([[1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]]),
        np.array([1.0, 0.0, 1.9]),
        np.array([1e-9, 1]),
    )

    def fit(r):
        rest = lambda x: matrix @ (x / units) - r * right
        return optimize.least_squares(rest, [2e-9, 0.4], bounds=(0, np.inf), x_scale=units).x

    np.testing.assert_allclose(yota.jacobian(fit)(1.0), np.linalg.pinv(matrix) @ right * units, rtol=1e-9)


def test_bounds_that_a_method_leaves_out():
    with pytest.warns(RuntimeWarning, match="cannot handle bounds"):
        slope = yota.gradient(
            lambda a: optimize.minimize(lambda x: (x[0] - a) ** 2, [0.1], method="BFGS", bounds=[(0, 1)]).x[0]
        )(2.0)
    assert slope == pytest.approx(1.0)


def test_a_function_selects_from_an_array_of_the_trace_around_it():
    def place(data):
        large = lambda x: np.sum((x - data[(data > x) | (data > 1)]) ** 2)
        return optimize.minimize_scalar(large, bounds=(0, 5), method="bounded", options={"xatol": 1e-10}).x

    slopes = yota.gradient(place)(np.array([-1.0, 2.0, 3.0, 5.0]))
    np.testing.assert_allclose(slopes, [0, 1 / 3, 1 / 3, 1 / 3], rtol=1e-12)


def test_fits():
    value, slopes = yota.value_and_grad(lambda y: optimize.curve_fit(model, T, y)[0][0])(Y)
    p = optimize.curve_fit(model, T, Y)[0]
    assert value == p[0]
    np.testing.assert_allclose(slopes, normal_equations(p, "linear", 1.0)[0], rtol=1e-8, atol=1e-12)
    cost = yota.gradient(lambda y: optimize.least_squares(lambda p: model(T, *p) - y, [1.0, 1.0]).cost)(Y)
    np.testing.assert_allclose(cost, Y - model(T, *p), rtol=1e-5, atol=1e-7)


def test_a_minimum_at_a_kink_has_no_derivative():
    for search in (
        lambda p: optimize.minimize(lambda x: np.abs(x[0] - p[0]), [0.0], method="Nelder-Mead").x[0],
        lambda p: optimize.minimize(lambda x: np.sum(np.abs(x - p)), [0.0, 0.0], method="Nelder-Mead").x[0],
        lambda p: optimize.minimize_scalar(lambda x: np.abs(x - p[0]) + np.abs(x - p[1]) + np.abs(x - 1)).x,
    ):
        with pytest.raises(DifferentiationError, match=r"at the solution is (zero|singular)|only jumps"):
            yota.gradient(search)(np.array([0.7, 1.3]))
    steps = yota.gradient(lambda p: optimize.minimize_scalar(lambda x: (x - np.floor(3 * p[0])) ** 2).x)
    np.testing.assert_array_equal(steps(np.array([0.7, 1.3])), 0)


def covariance(y, weights, absolute):
    """By Newton's method on the gradient of the sum of squares of the exact model; analytic in ``y``."""
    p = optimize.curve_fit(model, T, np.real(y), sigma=None if weights is None else 1 / np.real(weights))[0] + 0j
    w = np.ones(len(T)) if weights is None else weights
    for _ in range(30):
        a, b = p
        e = np.exp(-b * T)
        rest, slopes = w * (model(T, a, b) - y), w * np.stack([e, -a * T * e])
        bent = np.sum(rest * w * np.array([[0 * e, -T * e], [-T * e, a * T**2 * e]]), axis=-1)
        p = p - np.linalg.solve(slopes @ slopes.T + bent, slopes @ rest)
    found = np.linalg.inv(slopes @ slopes.T)
    return found if absolute else found * np.sum(rest**2) / (len(T) - 2)


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("form", ["none", "vector", "matrix"])
@pytest.mark.parametrize("method", ["lm", "trf"])
def test_the_covariance_of_a_fit(absolute, form, method):
    sigma = 0.1 + T if form != "none" else None
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])

    def loss(y, sigma):
        given = sigma if form != "matrix" else np.diag(sigma**2)
        options = {"sigma": given, "absolute_sigma": absolute, "method": method, "ftol": 1e-14, "xtol": 1e-14}
        return np.sum(weights * optimize.curve_fit(model, T, y, **options)[1])

    value = lambda y, sigma: np.sum(weights * covariance(y, None if sigma is None else 1 / sigma, absolute))
    found, slopes = yota.value_and_grad(loss)(Y, sigma)
    assert found == pytest.approx(np.real(value(Y, sigma)), rel=1e-4)
    wanted = [np.imag(value(Y + 1e-30j * e, sigma)) / 1e-30 for e in np.eye(len(T))]
    np.testing.assert_allclose(slopes, wanted, rtol=1e-4, atol=1e-5 * np.max(np.abs(wanted)))
    if sigma is not None:
        slopes = yota.gradient(loss, wrt=1)(Y, sigma)
        wanted = [np.imag(value(Y, sigma + 1e-30j * e)) / 1e-30 for e in np.eye(len(T))]
        np.testing.assert_allclose(slopes, wanted, rtol=1e-4, atol=1e-5 * np.max(np.abs(wanted)))


def test_covariances_of_other_calls():
    search = lambda y: optimize.leastsq(
        lambda p: model(T, *p) - y, [1.0, 1.0], full_output=True, ftol=1e-14, xtol=1e-14
    )
    wanted = [np.imag(np.sum(covariance(Y + 1e-30j * e, None, True))) / 1e-30 for e in np.eye(len(T))]
    found = yota.gradient(lambda y: np.sum(search(y)[1]))(Y)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.max(np.abs(wanted)))
    rest = yota.gradient(lambda y: np.sum(search(y)[2]["fvec"] ** 2))(Y)
    np.testing.assert_allclose(rest, -2 * search(Y)[2]["fvec"], rtol=1e-5, atol=1e-7)
    with pytest.raises(DifferentiationError, match="no more data than parameters"), warnings.catch_warnings():
        warnings.simplefilter("ignore", optimize.OptimizeWarning)
        yota.gradient(lambda y: np.sum(optimize.curve_fit(model, T[:2], y)[1]))(Y[:2])


def test_linear_fits_with_bounds():
    matrix = np.random.default_rng(1).random((20, 4)) - 0.3

    def pulled(free, x):
        return 2 * np.linalg.pinv(matrix[:, free]).T @ x[free]

    x = optimize.nnls(matrix, Y)[0]
    slopes = yota.gradient(lambda y: np.sum(optimize.nnls(matrix, y)[0] ** 2))(Y)
    assert 0 < np.count_nonzero(x) < 4
    np.testing.assert_allclose(slopes, pulled(x > 0, x), rtol=1e-10)
    rest = yota.gradient(lambda y: optimize.nnls(matrix, y)[1])(Y)
    np.testing.assert_allclose(rest, (Y - matrix @ x) / np.linalg.norm(Y - matrix @ x), rtol=1e-10, atol=1e-12)
    fit = optimize.lsq_linear(matrix, Y, bounds=(-0.1, 0.5))
    slopes = yota.gradient(lambda y: np.sum(optimize.lsq_linear(matrix, y, bounds=(-0.1, 0.5)).x ** 2))(Y)
    np.testing.assert_allclose(slopes, pulled(fit.active_mask == 0, fit.x), rtol=1e-9)


def test_linear_fits_of_a_sparse_matrix():
    matrix = sparse.random_array((20, 4), density=0.6, rng=np.random.default_rng(2))
    fit = lambda p: optimize.lsq_linear(matrix, p[0] * right, bounds=(-0.1 * p[1], 0.5), tol=1e-12).x
    p, dense, right = np.ones(2), matrix.toarray(), Y - np.mean(Y)
    x = fit(p)
    free = x > -0.1 + 1e-9
    inverse = np.linalg.pinv(dense[:, free])
    found = yota.jacobian(fit)(p)
    assert 0 < np.count_nonzero(free) < 4 and np.all(x < 0.4)
    np.testing.assert_allclose(found[free], np.stack([inverse @ right, inverse @ dense[:, ~free].sum(axis=1) / 10], 1))
    np.testing.assert_allclose(found[~free], [[0, -0.1]] * np.count_nonzero(~free), atol=1e-12)


def test_what_is_refused():
    for search in (
        lambda f: optimize.brute(lambda x: f(x[0]), [(0, 2)], Ns=3)[0],
        lambda f: optimize.differential_evolution(lambda x: f(x[0]), [(0, 2)]).x[0],
    ):
        with pytest.raises(TracingError, match="searches for the lowest of several minima"):
            yota.grad(lambda c, search=search: search(lambda x: (x - c) ** 2), 1.2)
    with pytest.raises(DifferentiationError, match="singular"):
        yota.grad(lambda a: optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2, [0.5, 0.4]).x[0], 0.9)
    with pytest.raises(DifferentiationError, match="result hess_inv has no derivative"):
        yota.grad(lambda a: optimize.minimize(bowl, [0.5, 0.5], (a,)).hess_inv[0, 0], 0.9)
    assert yota.gradient(lambda c: c * optimize.golden(lambda x: (x - 1.2) ** 2))(1.0) == pytest.approx(1.2, abs=1e-6)


def test_solvers_that_end_just_before_a_bound():
    for search in (
        lambda f: optimize.minimize_scalar(f, bounds=(0, 1), method="bounded").x,
        lambda f: optimize.fminbound(f, 0, 1),
        lambda f: optimize.minimize(lambda x: f(x[0]), [0.3], bounds=[(0, 1)], method="COBYLA", tol=1e-10).x[0],
    ):
        slope = yota.gradient(lambda a, search=search: search(lambda x: (x - a) ** 2))
        assert (slope(1.005), slope(1.3), slope(0.9)) == (0.0, 0.0, pytest.approx(1.0))


def test_a_minimum_near_a_bound_that_a_coarse_search_misses():
    """The gradient where the search ends points to the bound, or away from it."""
    function, coarse = (
        lambda x: np.cosh(x) + 0.3 * x**3,
        {"bounds": (0, 1), "method": "bounded", "options": {"xatol": 1e-3}},
    )
    search = lambda a: optimize.minimize_scalar(lambda x: function(x - a), **coarse)
    ends = np.linspace(4e-4, 9e-4, 6)
    assert {np.sign(search(a).x - a) for a in ends} == {-1, 1}
    np.testing.assert_allclose([yota.gradient(lambda a: search(a).x)(a) for a in ends], 1.0)


def test_calls_by_keyword_and_functions_that_give_slopes():
    def both(x, a):
        return (x[0] - a) ** 2, np.array([2 * (x[0] - a)])

    assert yota.gradient(lambda a: optimize.minimize(fun=both, x0=[0.0], args=(a,), jac=True).x[0])(1.5) == 1.0
    assert yota.gradient(lambda a: optimize.fmin_l_bfgs_b(both, [0.0], args=(a,))[0][0])(1.5) == 1.0
    with pytest.raises(TracingError, match="curve_fit with a loss"):
        yota.grad(lambda y: optimize.curve_fit(model, T, y, method="trf", loss="cauchy")[0][0], Y)


def test_what_the_start_alone_moves_has_derivative_zero_at_the_solution():
    def residual(x, a):
        return np.array([10 * (x[1] - a * x[0] ** 2), 1 - x[0]])

    start = np.array([2.0, 2.0])
    value, g = yota.grad(lambda x0: np.sum(optimize.least_squares(residual, x0, args=(1.0,)).jac), start)
    assert value == pytest.approx(-11.0, rel=1e-6)
    np.testing.assert_array_equal(g[0], 0.0)
    with pytest.raises(DifferentiationError, match="jac has no derivative"):
        yota.grad(lambda a: np.sum(optimize.least_squares(residual, start, args=(a,)).jac), 1.0)


def test_a_matrix_that_the_search_changes_is_not_cut_to_the_whole_numbers_of_its_start():
    def total(x0):
        return np.sum(optimize.minimize(lambda x: np.sum((x - 2) ** 2), x0).hess_inv)

    assert yota.grad(total, np.array([2.0, 2.0]))[0] == 2
    with pytest.raises(StaleTapeError, match="ended otherwise"):
        yota.grad(total, np.array([3.0, 3.0]))
