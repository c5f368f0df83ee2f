"""Roots of scipy.optimize inside of traced functions, against closed forms."""

import mpmath
import numpy as np
import pytest
from scipy import optimize

import yota
from yota.errors import CodegenError, DifferentiationError, TracingError


def cube(x, a):
    return x**3 - a


def pair(x, a):
    return [x[0] ** 3 - a * x[1], x[1] - x[0] * 0.5 - 1]


def of_pair(a, order):
    def root(a):
        return mpmath.findroot(lambda x: x**3 - a * (1 + x / 2), 1.5)

    return float(mpmath.diff(root, a, order))


BRACKETING = ["brentq", "brenth", "bisect", "ridder", "toms748"]
SCALAR = {
    **{name: lambda a, name=name: getattr(optimize, name)(cube, 0, 10, args=(a,)) for name in BRACKETING},
    "closure": lambda a: optimize.brentq(lambda x: x**3 - a, 0, 10),
    "full": lambda a: optimize.ridder(cube, 0, 10, args=(a,), full_output=True)[1].root,
    "secant": lambda a: optimize.newton(cube, 1.0, args=(a,)),
    "newton": lambda a: optimize.newton(cube, 1.0, fprime=lambda x, a: 3 * x * x, args=(a,)),
    "halley": lambda a: optimize.newton(cube, 1.0, lambda x, a: 3 * x * x, (a,), fprime2=lambda x, a: 6 * x),
    "root_scalar": lambda a: optimize.root_scalar(cube, args=(a,), bracket=(0, 3)).root,
    "with slope": lambda a: optimize.root_scalar(lambda x: (x**3 - a, 3 * x * x), x0=1.0, fprime=True).root,
    "fsolve": lambda a: optimize.fsolve(cube, [a + 0.1], args=(a,), xtol=1e-13)[0],
    "fixed_point": lambda a: optimize.fixed_point(lambda x: np.sqrt(a / x), 1.2, xtol=1e-13),
    "branches": lambda a: optimize.brentq(lambda x: x**3 - a if x > 0.5 else x - a, 0, 10),
}
PAIRS = {
    "fsolve": lambda a: optimize.fsolve(pair, [1.0, 1.0], args=(a,), xtol=1e-13, full_output=True)[0][0],
    "hybr": lambda a: optimize.root(pair, [1.5, 1.7], args=(a,), tol=1e-12).x[0],
    "lm": lambda a: optimize.root(pair, [1.5, 1.7], args=(a,), tol=1e-12, method="lm").x[0],
    "krylov": lambda a: optimize.root(pair, [1.5, 1.7], args=(a,), tol=1e-12, method="krylov").x[0],
    "broyden1": lambda a: optimize.broyden1(lambda x: np.array(pair(x, a)), [1.5, 1.7], f_tol=1e-12)[0],
}


@pytest.mark.parametrize("name", SCALAR)
def test_roots_of_one_equation(name):
    fg = yota.value_and_grad(SCALAR[name])
    for a in (1.7, 1.9):
        assert fg(a) == (SCALAR[name](a), pytest.approx(a ** (-2 / 3) / 3, rel=1e-11))
    assert len(fg.info().compilations) == 1


@pytest.mark.parametrize("name", PAIRS)
def test_roots_of_several_equations(name):
    value, slope = yota.value_and_grad(PAIRS[name])(1.7)
    assert (value, slope) == (PAIRS[name](1.7), pytest.approx(of_pair(1.7, 1), rel=1e-11))


def test_derivatives_of_higher_order():
    assert yota.hessian(PAIRS["hybr"])(1.7) == pytest.approx(of_pair(1.7, 2), rel=1e-10)
    third = yota.gradient(lambda a: yota.hessian(SCALAR["closure"])(a))(1.7)
    assert third == pytest.approx(10 / 27 * 1.7 ** (-8 / 3), rel=1e-10)


def test_many_equations():
    matrix = np.diag(np.arange(1.0, 13.0)) + 0.1

    def norm(b, tolerance=1e-10):
        return np.sum(optimize.fsolve(lambda x: matrix @ x + 0.1 * x**3 - b, np.zeros(12), xtol=tolerance) ** 2)

    b = np.linspace(0.0, 1.0, 12)
    x = optimize.fsolve(lambda x: matrix @ x + 0.1 * x**3 - b, np.zeros(12), xtol=1e-12)
    value, slopes = yota.value_and_grad(norm)(b)
    assert value == norm(b)
    np.testing.assert_allclose(slopes, np.linalg.solve((matrix + np.diag(0.3 * x * x)).T, 2 * x), rtol=1e-9)


def test_newton_by_elements_and_complex():
    a = np.linspace(1.0, 2.0, 1000)
    value, slopes = yota.value_and_grad(lambda a: np.sum(optimize.newton(cube, np.ones(1000), args=(a,))))(a)
    np.testing.assert_allclose(slopes, a ** (-2 / 3) / 3, rtol=1e-12)
    a = 1.7 + 1j
    slope = yota.gradient(lambda a: optimize.newton(lambda x: x**3 - a, 1 + 0.2j).real)(a)
    assert slope == pytest.approx(np.conj(a ** (-2 / 3) / 3), rel=1e-10)


def test_further_arguments_in_a_list():
    def f(a):
        roots = optimize.newton(lambda x, b, c: x**3 + b * x - c, np.ones(2), args=[a, 2 * a], tol=1e-14)
        return np.sum(roots * np.array([1.0, 3.0]))

    def slope(a):
        x = float(mpmath.findroot(lambda x: x**3 + a * x - 2 * a, 1.0))
        return (2 - x) / (3 * x**2 + a)

    _, gradient = yota.grad(f, np.array([0.7, 1.9]))
    np.testing.assert_allclose(gradient[0], [slope(0.7), 3 * slope(1.9)], rtol=1e-10)


def test_solvers_within_solvers():
    def outer(a, b):
        return optimize.brentq(lambda x: x**3 - a - optimize.brentq(lambda y: y**2 - b * x - 0.1, 0, 20), 0, 10)

    x, (by_a, by_b) = yota.value_and_grad(outer, wrt=(0, 1))(1.7, 2.0)
    y = np.sqrt(2.0 * x + 0.1)
    slope = 3 * x * x - 1 / y
    assert (x, by_a, by_b) == (outer(1.7, 2.0), pytest.approx(1 / slope), pytest.approx(x / (2 * y) / slope))


@pytest.mark.parametrize("options", [{"target": "c"}, {"strict": True}, {"effort": "high"}])
def test_targets(options):
    fg = yota.value_and_grad(lambda a: a * PAIRS["hybr"](a), **options)
    value = PAIRS["hybr"](1.8)
    assert fg(1.8) == (1.8 * value, pytest.approx(value + 1.8 * of_pair(1.8, 1), rel=1e-11))


def test_what_functions_read_may_change():
    power, table = [2.0], np.array([1.0, 2.0])
    fg = yota.value_and_grad(lambda a: np.sum(optimize.fsolve(lambda x: table * x ** power[0] - a, [1.0, 1.0])))
    fg(1.7)
    power[0], table[0] = 3.0, 4.0
    assert fg(1.7)[1] == pytest.approx(((1.7 / 4) ** (-2 / 3) / 4 + (1.7 / 2) ** (-2 / 3) / 2) / 3)


def test_a_branch_at_another_solution_is_traced_anew():
    def root(a):
        return optimize.brentq(lambda x: x**3 - a if x < 2 else 4 * x - a, 0, 10)

    fg = yota.value_and_grad(root)
    assert fg(1.0)[1] == pytest.approx(1 / 3)
    assert fg(12.0)[1] == pytest.approx(1 / 4)
    assert fg(1.0)[1] == pytest.approx(1 / 3)


def test_results_are_those_of_scipy():
    def steps(a):
        root, found = optimize.brentq(cube, 0, 10, args=(a,), full_output=True)
        assert isinstance(found, optimize.RootResults) and found.converged is True
        return root * found.iterations

    fg = yota.value_and_grad(steps)
    for a in (1.7, 5.0):
        assert fg(a)[0] == steps(a)
    found = []
    yota.grad(lambda a: found.append(optimize.root(pair, [1.5, 1.7], args=(a,))) or found[-1].x[0], 1.7)
    assert isinstance(found[0], optimize.OptimizeResult) and found[0].message == "The solution converged."


def test_what_has_no_derivative():
    with pytest.raises(DifferentiationError, match=r"scipy\.optimize\.brentq.*solution is zero"):
        yota.grad(lambda a: optimize.brentq(lambda x: (x - a) ** 3, 0, 1), 0.5)
    with pytest.raises(DifferentiationError, match=r"brentq at .*:\d+ has no derivative here: it is infinite or no"):
        yota.grad(lambda a: optimize.brentq(lambda x: x - np.sqrt(np.maximum(a, 0.0)), -1, 1), 0.0)
    with pytest.raises(DifferentiationError, match="Jacobian of the equations at the solution is singular"):
        yota.grad(lambda a: optimize.root(lambda x: [x[0] + x[1] - a, 2 * x[0] + 2 * x[1] - 2 * a], [1, 1]).x[0], 0.5)
    with pytest.raises(DifferentiationError, match="did not converge"):
        yota.grad(lambda a: optimize.root(lambda x: [x[0] ** 2 + a], [3.0]).x[0], 0.5)
    with pytest.raises(DifferentiationError, match="there are 3 equations of 2 unknowns"):
        more = lambda x, a: [x[0] - a, x[1] - 1, x[0] * x[1] - a]
        yota.grad(lambda a: optimize.root(more, [1.0, 1.0], args=(a,), method="lm").x[0], 0.5)
    with pytest.raises(RuntimeError, match="Failed to converge after 3 iterations"):
        yota.grad(lambda a: optimize.brentq(cube, 0, 10, args=(a,), maxiter=3), 0.5)
    with pytest.raises(ValueError, match="must have different signs"):
        yota.grad(lambda a: optimize.brentq(lambda x: x * x + a, 0, 10), 0.5)
    with pytest.raises(DifferentiationError, match="fjac has no derivative"):
        yota.grad(lambda a: np.sum(optimize.root(pair, [1.5, 1.7], args=(a,)).fjac), 1.7)
    with pytest.raises(CodegenError, match=r"equations of scipy\.optimize\.brentq are solved by functions of this"):
        yota.generate(SCALAR["closure"], (1.7,))
    with pytest.raises(TracingError, match="decides by a traced value in a loop"):
        yota.grad(lambda a: yota.fori(3, lambda i, y: optimize.brentq(cube, 0, 10, args=(y,)), a), 1.7)


def test_newton_of_equations_that_share_elements():
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
    slopes = yota.gradient(lambda b: np.sum(optimize.newton(lambda x: matrix @ x - b, np.full(2, 0.1), tol=1e-13)))
    np.testing.assert_allclose(slopes(np.array([1.2, 0.4])), np.linalg.solve(matrix, np.ones(2)), rtol=1e-12)


def test_batches_of_two_solvers_that_take_the_same_types():
    def both(a):
        return 10 * optimize.brentq(lambda x: x**3 + a * x - 2, 0, 3) + optimize.brentq(lambda x: x**3 - a, 0, 3)

    points = np.array([0.5, 1.0, 2.0])
    np.testing.assert_array_equal(yota.batch(both)(points), [both(a) for a in points])
    slopes = yota.batch(yota.gradient(both))(points)
    np.testing.assert_allclose(slopes, [yota.gradient(both)(a) for a in points], rtol=1e-13)


def test_batches_of_roots():
    points = np.array([1.0, 2.0])
    found = yota.batch(yota.value_and_grad(SCALAR["closure"]))(points)
    wanted = [yota.value_and_grad(SCALAR["closure"])(point) for point in points]
    np.testing.assert_allclose(found, np.transpose(wanted), rtol=1e-12)


def test_equations_that_jump_have_no_derivative():
    with pytest.raises(DifferentiationError, match=r"brentq at .* has no derivative: an equation of .* only jumps"):
        yota.grad(lambda a: optimize.brentq(lambda x: np.sign(x - a), 0.0, 2.0), 0.7)
    with pytest.raises(
        DifferentiationError, match=r"root at .*test_roots\.py:\d+ has no derivative: an equation of .* only jumps"
    ):
        yota.grad(lambda a: np.sum(optimize.root(lambda x: np.sign(x - a), np.array([0.7, 0.7])).x), 0.7)
