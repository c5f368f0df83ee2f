"""Integrals and roots of SciPy's that are found by calling a traced function."""

import math
import warnings

import numpy as np
import pytest
import scipy.special
from scipy import integrate, optimize

import yota
from yota.errors import DifferentiationError, StaleTapeError, TracingError

INTEGRALS = [
    # integrand, ends, the integral by its parameter in closed form, and the derivative of that
    (lambda x, a: np.exp(-a * x * x), (-np.inf, np.inf), lambda a: math.sqrt(math.pi / a), lambda f, a: -f / (2 * a)),
    (lambda x, a: x**a, (0.0, 1.0), lambda a: 1 / (a + 1), lambda f, a: -f * f),
    (lambda x, a: np.exp(-a * x) * np.sin(x), (0.0, np.inf), lambda a: 1 / (1 + a * a), lambda f, a: -2 * a * f * f),
    (lambda x, a: abs(x - 0.3) * a, (2.0, -1.0), lambda a: -a * (1.7**2 + 1.3**2) / 2, lambda f, a: f / a),
    (lambda x, a: math.exp(-a * x) if x > 0.5 else 0.0 * a, (0.5, 2.0), None, None),
]


@pytest.mark.parametrize("number", range(len(INTEGRALS)))
def test_integrals(number):
    integrand, ends, exact, derivative = INTEGRALS[number]
    value, gradient = yota.grad(lambda a: integrate.quad(integrand, *ends, (a,), number % 2, 1e-8)[0], 0.7)
    if exact is None:
        exact, derivative = (
            lambda a: (math.exp(-a / 2) - math.exp(-2 * a)) / a,
            lambda f, a: (-math.exp(-a / 2) / 2 + 2 * math.exp(-2 * a)) / a - f / a,
        )
    assert value == pytest.approx(exact(0.7), rel=1e-8)
    assert gradient[0] == pytest.approx(derivative(exact(0.7), 0.7), rel=1e-7)


def test_an_integral_is_a_number_of_pythons():
    def f(x):
        return x * integrate.quad(lambda t: t * x[0], 0.0, 1.0)[0]

    x = np.array([0.5, 2.0], np.float32)
    assert f(x).dtype == yota.trace(f, x)[0].dtype == np.float32


def test_limits_and_closures():
    def area(a, b):
        return integrate.quad(lambda x: np.cos(a * x), 0.1, b)[0]

    value, gradient = yota.grad(area, 1.3, 0.8)
    assert value == pytest.approx((math.sin(1.04) - math.sin(0.13)) / 1.3, rel=1e-12)
    assert gradient[1] == pytest.approx(math.cos(1.04), rel=1e-10)
    assert yota.hessian(lambda b: area(1.3, b))(0.8) == pytest.approx(-1.3 * math.sin(1.04), rel=1e-8)


def test_an_integrand_that_takes_arrays_is_recorded_once():
    sizes = []

    def integrand(x, a):
        sizes.append(np.size(x))
        return np.exp(-a * x)

    tape = yota.trace(lambda a: integrate.quad(integrand, 0.0, 2.0, args=(a,))[0], 0.7)[1]
    assert sum(op.primitive.name == "exp" and tape.types[op.operands[0]].size > 1 for op in tape.ops) == 1
    assert sizes.count(1) == 3
    # Means over the nodes are told from values at the nodes.
    value, gradient = yota.grad(lambda a: integrate.quad(lambda x: x * a + 0 * np.mean(x) * a, 0, 1)[0], 0.7)
    assert (value, gradient[0]) == pytest.approx((0.35, 0.5))
    value, gradient = yota.grad(lambda a: integrate.quad(lambda x: a * np.mean(x), 0, 1)[0], 0.7)
    assert (value, gradient[0]) == pytest.approx((0.35, 0.5))


def test_integrals_of_integrals():
    def area(a, b):
        return integrate.dblquad(lambda y, x: a * x * y**2, 0.0, b, lambda x: x, lambda x: b + 0 * x)[0]

    value, gradient = yota.grad(area, 1.3, 0.8)
    assert value == pytest.approx(1.3 * 0.8**5 / 10, rel=1e-12)
    assert gradient == pytest.approx([0.8**5 / 10, 1.3 * 0.8**4 / 2], rel=1e-9)
    # The range is too narrow for the change of variable.
    gradient = yota.grad(lambda a: integrate.quad(lambda x: np.exp(a * x), 1, 1 + 2.0**-25)[0] * 2.0**25, 1.0)[1]
    assert gradient[0] == pytest.approx(math.e, rel=1e-7)


NESTED = [
    (
        lambda a, b: integrate.dblquad(lambda y, x: np.exp(-a * x * x - b * y * y), -np.inf, np.inf, -np.inf, np.inf)[
            0
        ],
        lambda a, b: np.pi / np.sqrt(a * b),
    ),
    (
        lambda a, b: integrate.dblquad(lambda y, x: np.exp(-a * x - b * y), 0, np.inf, lambda x: x, np.inf)[0],
        lambda a, b: 1 / (b * (a + b)),
    ),
    (
        lambda a, b: integrate.quad(lambda x: integrate.quad(lambda y: a * np.sqrt(y), 0, x * x)[0] ** 2, 0, b)[0],
        lambda a, b: 4 / 9 * a**2 * b**7 / 7,
    ),
    (
        lambda a, b: integrate.nquad(lambda x, y, k: k * x * y, [lambda y, k: (k, y + b), [0, b]], args=(a,))[0],
        lambda a, b: a / 2 * (b**4 / 4 + 2 * b**4 / 3 + b**4 / 2 - a**2 * b**2 / 2),
    ),
    (
        lambda a, b: integrate.nquad(lambda x, y, z, w: a * x * y * z * w**2, [[0, b], [0, 1], [0, b], [0, a]])[0],
        lambda a, b: a**4 * b**4 / 24,
    ),
]


@pytest.mark.parametrize("number", range(len(NESTED)))
def test_integrals_of_integrals_are_evaluated_at_once(number):
    integral, exact = NESTED[number]

    def loss(p):
        return integral(p[0], p[1])

    x, steps = np.array([1.1, 0.9]), 1e-30j * np.eye(2)
    value, gradient = yota.value_and_grad(loss)(x)
    assert value == pytest.approx(exact(*x), rel=1e-10)
    np.testing.assert_allclose(gradient, [exact(*(x + step)).imag / 1e-30 for step in steps], rtol=1e-8)
    assert len(yota.trace(loss, x)[1].ops) < 400
    slopes = [
        [exact(*(x + step + side)).imag / 1e-30 for step in steps] for side in (*1e-5 * np.eye(2), *-1e-5 * np.eye(2))
    ]
    np.testing.assert_allclose(yota.hessian(loss)(x), np.subtract(slopes[:2], slopes[2:]) / 2e-5, rtol=1e-6)


def test_integrals_of_integrals_from_the_source():
    area = yota.interpreted(lambda a: integrate.dblquad(lambda y, x: a * x * y, 0, 1, 0, 1)[0])
    assert yota.value_and_grad(area)(0.3) == pytest.approx((0.075, 0.25), rel=1e-12)


def test_triple_integrals():
    def volume(a, b, scale):
        found, error = integrate.tplquad(
            lambda z, y, x, k: k * x * y * z**2 * np.exp(-x),
            a,
            b,
            0,
            lambda x: x,
            lambda x, y: 0,
            lambda x, y: 1 + x * y,
            (scale,),
        )
        assert error < 1e-8
        return found

    given = (0.5, 1.2, 1.7)
    value, gradient = yota.grad(volume, *given)
    assert value == pytest.approx(volume(*given), rel=1e-12)

    def section(x):  # over y and z, by sympy: the integral of x * y * (1 + x*y)**3 / 3 over y up to x
        powers = (1, 3 * x, 3 * x**2, x**3)
        return x * math.exp(-x) / 3 * sum(c * x ** (k + 2) / (k + 2) for k, c in enumerate(powers))

    expected = [-1.7 * section(0.5), 1.7 * section(1.2), value / 1.7]
    assert gradient == pytest.approx(expected, rel=1e-10)
    assert yota.grad(lambda a: integrate.tplquad(lambda z, y, x: math.exp(a * z), 0, 1, 0, 1, 0, 1)[0], 0.3)[1] == (
        pytest.approx([(1 + 0.3 * math.exp(0.3) - math.exp(0.3)) / 0.09], rel=1e-9)
    )
    # All limits are infinite.
    bell = lambda a: integrate.tplquad(
        lambda z, y, x: np.exp(-a * (x * x + y * y) - z), *[-np.inf, np.inf] * 2, 0, np.inf
    )
    assert yota.value_and_grad(lambda a: bell(a)[0])(0.7) == pytest.approx([np.pi / 0.7, -np.pi / 0.49], rel=1e-10)
    with pytest.raises(TracingError, match="within two others"):
        yota.grad(lambda a: integrate.tplquad(lambda z, y, x: np.abs(x - a), 0, 1, 0, 1, 0, 1)[0], 0.3)


def test_other_parameters_use_the_nodes_only_where_these_suffice():
    fg = yota.value_and_grad(lambda a: integrate.quad(lambda x: 1 / (a * a + x * x), -1, 1)[0], dynamic=False)
    fg(1.0)
    assert fg(0.9)[0] == pytest.approx(2 / 0.9 * math.atan(1 / 0.9), rel=1e-10)
    with pytest.raises(StaleTapeError):
        fg(1e-4)


def test_evaluations_of_an_integrand_are_not_recorded():
    with pytest.raises(TracingError, match="infodict of"):
        yota.grad(lambda a: integrate.quad(np.exp, 0, a, full_output=1)[2]["neval"], 0.7)


def test_what_does_not_converge_is_refused():
    for integrand in (lambda x, a: a / x, lambda x, a: np.where(x > a, 1.0, a), lambda x, a: abs(x - a) ** 0.1):
        for a in (0.1, 0.3, 0.55):
            with warnings.catch_warnings(), pytest.raises(DifferentiationError, match=r"quad at .* does not converge"):
                warnings.simplefilter("ignore")
                yota.grad(lambda a: integrate.quad(integrand, 0, 1, args=(a,))[0], a)  # noqa: B023


def kinked(a):
    return integrate.quad(lambda x: abs(x - a), 0, 1)[0]


def branching(a):
    return integrate.quad(lambda x: a * x if x > a else x * x, 0, 1)[0]


def nested(a):
    return integrate.quad(lambda x: integrate.quad(lambda y: abs(x - a) * y, 0, x)[0], 0, 1)[0]


def touched(a):
    return integrate.quad(lambda x: np.maximum(x - a, 0.0), 0, 1, points=[0.3])[0]


@pytest.mark.parametrize(
    ("function", "slope"),
    [(kinked, 2 * 0.3 - 1), (branching, (1 - 0.3**2) / 2), (nested, (2 * 0.3**3 - 1) / 6), (touched, 0.3 - 1)],
)
def test_a_kink_that_moves_leaves_no_second_derivative(function, slope):
    assert yota.gradient(function)(0.3) == pytest.approx(slope, abs=1e-6)
    with pytest.raises(DifferentiationError, match="split the integral there"):
        yota.hessian(function)(0.3)


def test_an_integral_that_is_split_at_its_kink_has_all_derivatives():
    def split(a):
        return sum(integrate.quad(lambda x: abs(x - a), *ends)[0] for ends in ((0, a), (a, 1)))

    assert yota.hessian(split)(0.3) == pytest.approx(2.0, rel=1e-12)


def test_a_jump_that_moves_is_refused():
    with pytest.raises(TracingError, match="chooses them by a traced value"):
        yota.gradient(lambda a: integrate.quad(lambda x: 1.0 if x > a else 2.0, 0, 1)[0])(0.3)
    split = yota.gradient(
        lambda a: sum(integrate.quad(lambda x: 1.0 if x > a else 2.0, *ends)[0] for ends in ((0, a), (a, 1)))
    )
    assert split(0.3) == pytest.approx(1.0, rel=1e-12)
    for jump in (lambda x, a: np.where(x > a, 1.0, 2.0), lambda x, a: a if x > a else 2.0 * a):
        with pytest.raises(TracingError, match=r"jumps at 0\.3, one of points="):
            yota.gradient(lambda a: integrate.quad(jump, 0, 1, args=(a,), points=[0.3])[0])(0.3)  # noqa: B023
    at = yota.gradient(lambda a: integrate.quad(lambda x: np.where(x > a, 1.0, 2.0), 0, 1, points=[a])[0])
    assert at(0.3) == pytest.approx(1.0, rel=1e-12)
    # These stay where they are.
    fixed = yota.hessian(lambda a: integrate.quad(lambda x: np.where(x > 0.3, 1, 2) * a**2, 0, 1, points=[0.3])[0])
    assert fixed(0.3) == pytest.approx(2 * 1.3, rel=1e-12)


def test_a_branch_that_all_nodes_take_alike_is_a_guard():
    def steps(a):
        return a * integrate.quad(lambda x: x * sum([1.0 if a > k else 2.0 for k in (0.1, 0.2, 0.5)]), 0, 1)[0]

    assert yota.value_and_grad(steps)(0.3) == pytest.approx((0.6, 2.0), rel=1e-12)


def test_limits_that_meet():
    def area(b):
        return integrate.quad(lambda x: np.cos(x) * np.exp(b * x), 0.0, b)[0]

    assert yota.value_and_grad(area)(0.0) == (0.0, pytest.approx(1.0, rel=1e-15))
    # The series of the integral begins with b + b ** 3 / 3.
    assert yota.hessian(area)(0.0) == 0.0
    assert yota.grad(lambda b: integrate.quad(np.cos, b, 1.0)[0], 1.0)[1] == pytest.approx(-np.cos(1.0), rel=1e-14)


tanhsinh = getattr(integrate, "tanhsinh", None)
POLES = np.array([0.7, 0.5, 0.2])
BY_ELEMENTS = {
    "finite": (lambda c: tanhsinh(lambda x, c: np.exp(c * x), 0.0, 1.0, args=(c,)), lambda c: np.expm1(c) / c),
    "backwards": (lambda c: tanhsinh(lambda x, c: np.exp(-c * x), np.inf, 0.0, args=(c,)), lambda c: -1 / c),
    "to the left": (lambda c: tanhsinh(lambda x: np.exp(x), -np.inf, c), np.exp),
    "everywhere": (
        lambda c: tanhsinh(lambda x, c: np.exp(-c * x * x), [-np.inf, 0, 0], np.inf, args=(c,)),
        lambda c: np.sqrt(np.pi / c) * [1, 0.5, 0.5],
    ),
    "pole": (lambda c: tanhsinh(lambda x, c: x ** (c - 1), 0.0, c, args=(c,)), lambda c: c ** (c - 1)),
    "sum": (
        lambda c: integrate.nsum(lambda k, c: 1 / (k * k + c * c), 1, np.inf, args=(c,)),
        lambda c: (np.pi * c / np.tanh(np.pi * c) - 1) / (2 * c * c),
    ),
}


@pytest.mark.skipif(tanhsinh is None, reason="SciPy has no tanhsinh")
@pytest.mark.parametrize("name", BY_ELEMENTS)
def test_integrals_by_elements(name):
    """The closed form is differentiated in its place, element by element."""
    integral, exact = BY_ELEMENTS[name]
    result = "sum" if name == "sum" else "integral"
    weights = np.array([1.0, -2.0, 3.0])
    value, slopes = yota.value_and_grad(lambda c: integral(c)[result] @ weights)(POLES)
    wanted, by_hand = yota.value_and_grad(lambda c: exact(c) @ weights)(POLES)
    assert value == pytest.approx(wanted, rel=1e-9)
    np.testing.assert_allclose(slopes, by_hand, rtol=1e-8)


@pytest.mark.skipif(tanhsinh is None, reason="SciPy has no tanhsinh")
def test_integrals_by_elements_for_other_arguments():
    """A narrow peak is recorded anew after a wide one, and an integral without a value is refused."""
    fg = yota.value_and_grad(lambda c: tanhsinh(lambda x: c / (x * x + c * c), -1.0, 1.0).integral, dynamic=True)
    for c in (1.0, 0.9, 0.01):
        value, slope = fg(c)
        assert value == pytest.approx(2 * np.arctan(1 / c), rel=1e-9)
        assert slope == pytest.approx(-2 / (1 + c * c), rel=1e-7)
    assert len(fg.info().compilations) == 2
    with pytest.raises(DifferentiationError, match=r"tanhsinh at .* does not converge"):
        yota.gradient(lambda c: tanhsinh(lambda x: 1 / (x - c), 0.0, 1.0).integral)(0.3)


def test_plain_calls_inside():
    def scaled(a):
        return a * integrate.quad(scipy.special.j0, 0, 1)[0] + a * optimize.brentq(lambda x: x * x - 2, 0, 2)

    assert yota.grad(scaled, 3.0)[1][0] == pytest.approx(scaled(1.0), rel=1e-14)


def test_what_a_choice_leaves_out_has_no_part_in_the_derivative():
    def safe(x, a):
        return np.sum(np.where(x > 0, 1 + np.sqrt(a * x) ** 2 * np.log(x), -x))

    x = np.array([-1.0, 0.0, 2.0])
    gradient = yota.grad(safe, x, 1.5)[1]
    assert gradient[0] == pytest.approx([-1.0, -1.0, 1.5 * (math.log(2) + 1)])
    assert gradient[1] == pytest.approx(2 * math.log(2))
    assert yota.jacobian(lambda x: np.where(x > 0, np.log(x), -x))(-1.0) == -1.0


X = np.array([0.0, 0.1, 0.3, 0.45, 0.6, 0.7, 0.8, 0.95, 1.0])
SAMPLED = {
    "fixed_quad": lambda a: integrate.fixed_quad(lambda t: np.exp(-a * t), 0, a, n=4)[0],
    "romb": lambda a: integrate.romb(np.exp(a * X), dx=0.125 * a),
    "simpson": lambda a: integrate.simpson(np.exp(a * X), x=X),
    "simpson of an even number": lambda a: integrate.simpson(np.exp(a * X[:8]), dx=a),
    "trapezoid": lambda a: integrate.trapezoid(np.exp(a * X), x=a * X),
    "cumulative_trapezoid": lambda a: np.sum(integrate.cumulative_trapezoid(np.exp(a * X), a * X, initial=0) * X),
    "cumulative_simpson": lambda a: np.sum(integrate.cumulative_simpson(np.sin(a * X), x=X) * X[1:]),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_integrals_of_samples_against_differences(name):
    function = SAMPLED[name]
    value, gradient = yota.value_and_grad(function)(0.7)
    assert value == pytest.approx(function(0.7), rel=1e-14)
    coarse, fine = ((function(0.7 + h) - function(0.7 - h)) / (2 * h) for h in (2e-3, 1e-3))
    assert gradient == pytest.approx((4 * fine - coarse) / 3, rel=1e-10)


def test_integrals_of_waves_and_complex_functions() -> None:
    """The integral of exp(-a x) exp(i w x) from 0 to b is (1 - exp((i w - a) b)) / (a - i w)."""

    def loss(p):
        a, b, w = p
        parts = [integrate.quad(lambda x: np.exp(-a * x), 0, b, weight=name, wvar=w)[0] for name in ("cos", "sin")]
        whole = integrate.quad(lambda x, a: np.exp((1j * w - a) * x), 0, b, args=(a,), complex_func=True)[0]
        return parts[0] + 2 * parts[1] + 3 * whole.real - 5 * whole.imag

    def exact(p):
        a, b, w = p
        whole = (1 - np.exp((1j * w - a) * b)) / (a - 1j * w)
        return 4 * whole.real - 3 * whole.imag

    p = np.array([0.7, 2.0, 3.0])
    value, slope = yota.value_and_grad(loss)(p)
    assert value == pytest.approx(exact(p), rel=1e-12)
    steps = [(exact(p + 1e-5 * unit) - exact(p - 1e-5 * unit)) / 2e-5 for unit in np.eye(3)]
    np.testing.assert_allclose(slope, steps, rtol=1e-8)


def weighted(integrand, low, high, weight, given):
    return integrate.quad(integrand, low, high, weight=weight, wvar=given)[0]


def beta_integral(a, b, c):
    return b ** (a + c + 1) * scipy.special.beta(a + 1, c + 1)


def logarithm(a, b, c):
    return scipy.special.psi(a + 1) - scipy.special.psi(a + c + 2) + np.log(b)


WEIGHTED = {
    "cos to infinity": (
        lambda a, b, c: weighted(lambda x: math.exp(-a * x), 0, np.inf, "cos", -b),
        lambda a, b, c: a / (a * a + b * b),
    ),
    "sin to infinity": (
        lambda a, b, c: weighted(lambda x: x / (x * x + a * a), 0, np.inf, "sin", b),
        lambda a, b, c: np.pi / 2 * np.exp(-a * b),
    ),
    "sin from infinity": (
        lambda a, b, c: weighted(lambda x: np.exp(a * x), -np.inf, c, "sin", b),
        lambda a, b, c: np.exp(a * c) * (a * np.sin(b * c) - b * np.cos(b * c)) / (a * a + b * b),
    ),
    "waves within": (
        lambda a, b, c: integrate.quad(lambda y: weighted(lambda x: np.exp(-a * x), 0, np.inf, "cos", y * b), c, 1)[0],
        lambda a, b, c: (np.arctan(b / a) - np.arctan(b * c / a)) / b,
    ),
    "alg": (
        lambda a, b, c: weighted(lambda x: np.ones_like(x) * b, b, 0, "alg", (a - 1, c - 1)),
        lambda a, b, c: -b * beta_integral(a - 1, b, c - 1),
    ),
    "alg-loga": (
        lambda a, b, c: weighted(lambda x: 1.0, 0, b, "alg-loga", (a - 1, c - 1)),
        lambda a, b, c: beta_integral(a - 1, b, c - 1) * logarithm(a - 1, b, c - 1),
    ),
    "alg-logb": (
        lambda a, b, c: weighted(lambda x: 1.0, 0, b, "alg-logb", (a - 1, c - 1)),
        lambda a, b, c: beta_integral(a - 1, b, c - 1) * logarithm(c - 1, b, a - 1),
    ),
    "alg-log": (
        lambda a, b, c: weighted(lambda x: b, 0, 1, "alg-log", (a - 1, c - 1)),
        lambda a, b, c: (
            b
            * beta_integral(a - 1, 1.0, c - 1)
            * (logarithm(a - 1, 1.0, c - 1) * logarithm(c - 1, 1.0, a - 1) - scipy.special.zeta(2, a + c))
        ),
    ),
    "cauchy": (
        lambda a, b, c: weighted(lambda x: b * x, -a, 2 * b, "cauchy", c),
        lambda a, b, c: b * (2 * b + a) + b * c * np.log((2 * b - c) / (a + c)),
    ),
    "cauchy in the middle": (
        lambda a, b, c: weighted(lambda x: x * a, c - b, c + b, "cauchy", c),
        lambda a, b, c: 2 * b * a,
    ),
    "cauchy outside": (
        lambda a, b, c: weighted(lambda x: a, 0, b, "cauchy", -c),
        lambda a, b, c: a * np.log((b + c) / c),
    ),
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_integrals_with_weights(name):
    """The closed form is differentiated in its place, twice."""
    integral, exact = (lambda p, of=each: of(*p) for each in WEIGHTED[name])
    p = np.array([0.7, 1.1, 0.4])
    value, slope = yota.value_and_grad(integral)(p)
    wanted, by_hand = yota.value_and_grad(exact)(p)
    assert value == pytest.approx(wanted, rel=1e-10)
    assert value == pytest.approx(integral(p), rel=1e-7)
    np.testing.assert_allclose(slope, by_hand, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(yota.hessian(integral)(p), yota.hessian(exact)(p), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("integrand", [lambda t, p: 1 / np.sqrt(t), lambda t, p: 1 / np.sqrt(t - p)])
def test_an_integral_up_to_a_singularity_has_no_derivative_by_that_limit(integrand):
    with pytest.raises(TracingError, match="traced limit at which the integrand is infinite"):
        yota.grad(lambda p: integrate.quad(lambda t: integrand(t, p), p, 1)[0], 0.0)


def test_an_integral_over_the_distance_from_a_singularity_has_a_derivative():
    slope = yota.gradient(lambda p: integrate.quad(lambda s: 1 / np.sqrt(s), 0, 1 - p)[0])
    assert [slope(p) for p in (0.0, 0.25)] == pytest.approx([-1.0, -1 / np.sqrt(0.75)], rel=1e-12)
