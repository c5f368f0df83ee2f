"""`solve_ivp` with explicit methods inside of traced functions: the derivative of the steps that SciPy took."""

import numpy as np
import pytest
from scipy.integrate import DOP853, RK23, RK45, solve_ivp

import yota
from yota.errors import DifferentiationError
from yota.solvers.explicit import ExplicitSteps
from yota.solvers.integration_steps import Steps

METHODS = {"RK45": RK45, "RK23": RK23, "DOP853": DOP853}
P = np.array([1.5, 1.0, 0.8, 3.0])
TIMES = np.linspace(0.3, 4.0, 9)
ROUNDING = 1e-11
"""The lengths of steps follow from differences of slopes; SciPy's move by as much from one processor to another."""


def rates(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1] + 0.1 * np.sin(t), p[2] * y[0] * y[1] - p[3] * y[1]]


def loss(p, method="RK45", t_eval=TIMES, **options):
    found = solve_ivp(rates, (0.0, 4.0), [1.0, p[0]], method=method, t_eval=t_eval, args=(p,), **options)
    return np.sum(found.y**2)


def at_fixed_steps(p, method, t_eval, ends):
    """The loss where each step has the length that it has at `P`."""
    kind = METHODS[method]

    class Fixed(kind):
        def _estimate_error_norm(self, K, h, scale):
            return 0.5

        def step(self):
            number = int(np.argmin(np.abs(ends - self.t)))
            self.h_abs = abs(ends[number + 1] - self.t)
            return super().step()

    return loss(p, Fixed, t_eval)


@pytest.mark.parametrize("t_eval", [TIMES, None])
@pytest.mark.parametrize("method", METHODS)
def test_the_derivative_of_the_steps_that_were_taken(method, t_eval):
    fg = yota.value_and_grad(lambda p: loss(p, method, t_eval))
    value, slopes = fg(P)
    assert value == pytest.approx(loss(P, method, t_eval), rel=ROUNDING)
    ends = solve_ivp(rates, (0.0, 4.0), [1.0, P[0]], method=method, args=(P,)).t
    for unit, slope in zip(np.eye(4), slopes, strict=True):
        sides = [at_fixed_steps(P + step * unit, method, t_eval, ends) for step in (1e-3, -1e-3, 2e-3, -2e-3)]
        # Rounding errors of the differences are 1e-12 of the loss.
        assert slope == pytest.approx((8 * (sides[0] - sides[1]) - sides[2] + sides[3]) / 12e-3, rel=1e-7)
    if t_eval is not None:
        assert fg(1.02 * P)[0] == pytest.approx(loss(1.02 * P, method, t_eval), rel=ROUNDING)
        assert len(fg.info().compilations) == 1


OPTIONS = [
    {},
    {"rtol": 1e-9, "atol": np.array([1e-10, 1e-7]), "max_step": 0.2},
    {"first_step": 0.3, "rtol": 1e-8, "t_eval": TIMES[:1]},
    {"backwards": True, "rtol": 1e-6},
]


@pytest.mark.parametrize(
    ("options", "target"), [*((each, "numpy") for each in OPTIONS), *((each, "c") for each in OPTIONS[:2])], ids=str
)
@pytest.mark.parametrize("method", METHODS)
def test_generated_steps_are_those_of_scipy(monkeypatch, method, options, target):
    """SciPy's own run gives the times, the states, how often the rate was called, and where the steps end."""
    options = {"t_eval": TIMES, **options}
    sign = -1 if options.pop("backwards", False) else 1
    options["t_eval"] = sign * options["t_eval"]
    pairs = []
    generated = ExplicitSteps._taken

    def both(host, *given):
        pairs.append((generated(host, *given), Steps.solve(host, *given)))
        return pairs[-1][0]

    monkeypatch.setattr(ExplicitSteps, "_taken", both)

    def total(p):
        return np.sum(solve_ivp(rates, (0.0, 4.0 * sign), [1.0, 0.4], method=method, args=(p,), **options).y)

    yota.value_and_grad(total, target=target)(0.4 * P)
    ((one, other),) = pairs
    assert one is not None
    for found, expected in zip(one.arrays, other.arrays, strict=True):
        np.testing.assert_allclose(found, expected, rtol=ROUNDING if np.ndim(found) == 2 else 1e-8)


def test_strict_values_are_those_of_scipy():
    fg = yota.value_and_grad(loss, strict=True)
    for p in (P, 1.02 * P):
        assert fg(p)[0] == loss(p)


def decay(rate, start, span, times, **options):
    return solve_ivp(lambda t, y: -rate * y, span, start, t_eval=times, rtol=1e-11, atol=1e-12, **options)


def test_times_and_starts():
    def last(rate, start, begin, end):
        return decay(rate, [start], (begin, end), None).y[0, -1]

    value, slopes = yota.value_and_grad(last, wrt=(0, 1, 2, 3))(0.7, 2.0, 0.5, 3.0)
    exact = 2 * np.exp(-0.7 * 2.5)
    assert value == pytest.approx(exact, rel=1e-9)
    assert slopes == pytest.approx([-2.5 * exact, exact / 2, 0.7 * exact, -0.7 * exact], rel=1e-8)
    times = np.array([2.5, 1.0, 0.2])
    slope = yota.gradient(lambda times: np.sum(decay(0.7, [2.0], (3.0, 0.0), times).y))(times)
    np.testing.assert_allclose(slope, -1.4 * np.exp(0.7 * (3 - times)), rtol=1e-7)
    assert yota.gradient(lambda end: decay(0.7, [2.0], (0, end), None).t[-1] ** 2)(3.0) == pytest.approx(6.0)


def test_complex_and_vectorized_and_second_order():
    def phase(rate):
        found = decay(1j * rate, np.array([1.0 + 0j, 2.0]), (0, 1), [0.5, 1.0], vectorized=True)
        return np.sum(found.y.real)

    value, slope = yota.value_and_grad(phase)(0.9)
    assert (value, slope) == (phase(0.9), pytest.approx(-3 * (np.sin(0.9) + 0.5 * np.sin(0.45)), rel=1e-8))
    second = yota.hessian(lambda rate: decay(rate, [2.0], (0, 1), [1.0]).y[0, 0])(0.7)
    assert second == pytest.approx(2 * np.exp(-0.7), rel=1e-8)


def test_more_steps_and_other_numbers_of_them():
    fg = yota.value_and_grad(
        lambda w: solve_ivp(lambda t, y: [w * y[1], -w * y[0]], (0, 2), [1.0, 0.0], rtol=1e-8).y[0, -1]
    )
    for w in (1.0, 30.0, 1.0):
        assert fg(w) == (pytest.approx(np.cos(2 * w), abs=1e-4), pytest.approx(-2 * np.sin(2 * w), abs=1e-2))


@pytest.mark.parametrize("method", ["RK45", "Radau"])
@pytest.mark.parametrize("times", [None, [0.5, 1.0]])
def test_one_rate_is_that_of_all_states(method, times):
    def last(k):
        rate = lambda t, y: [k * y[0]]
        return solve_ivp(rate, (0, 1), [1.0, 2.0], method, times, rtol=1e-8, atol=1e-10).y[1, -1]

    for target in ("numpy", "c"):
        found = yota.value_and_grad(last, target=target)(1.1)
        assert found == (pytest.approx(last(1.1), rel=1e-13), pytest.approx(np.exp(1.1), rel=1e-6))


def test_what_is_refused():
    with pytest.raises(DifferentiationError, match=r"solve_ivp at .*:\d+ failed.*Required step size is less"):
        yota.grad(lambda k: solve_ivp(lambda t, y: k * y**2, (0, 5), [1.0]).y[0, -1], 1.0)
    with pytest.raises(DifferentiationError, match="takes several branches on the way"):
        yota.grad(lambda p: solve_ivp(lambda t, y: -p * y if y[0] > 0.5 else -y, (0, 2), [1.0]).y[0, -1], 1.0)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_a_derivative_that_is_no_number_is_an_error(method, target):
    def emptied(k, start=0.0):
        rate = lambda t, y: -k * np.sqrt(np.maximum(y, 0.0))
        return solve_ivp(rate, (0, 1), [start], method=method, t_eval=[1.0], rtol=1e-8).y[0, 0]

    with pytest.raises(DifferentiationError, match=r"solve_ivp at .*:\d+ has no derivative here: it is infinite or no"):
        yota.value_and_grad(emptied, target=target)(1.0)
    # Before it is empty, the level is (1 - k / 2) ** 2.
    assert yota.value_and_grad(lambda k: emptied(k, 1.0), target=target)(1.0)[1] == pytest.approx(-0.5, rel=1e-4)


def test_arrays_of_the_user_stay_writable_and_may_change():
    start, times = np.array([2.0]), np.array([0.5, 1.0])
    slope = yota.gradient(lambda rate: np.sum(decay(rate, start, (0, 2), times).y))
    for _ in range(2):
        exact = -np.sum(start[0] * times * np.exp(-0.7 * times))
        assert slope(0.7) == pytest.approx(exact, rel=1e-8)
        start[0], times[0] = 3.0, 0.2


def test_the_first_time_moves_all_steps() -> None:
    """Against a Runge-Kutta method of our own with steps of the recorded lengths."""

    def rate(t, y):
        return -0.5 * y + np.sin(t)

    def total(times, places):
        return np.sum(np.sin(times)) + sum(k * np.sum(place) for k, place in enumerate(places))

    def solved(span):
        found = solve_ivp(rate, [span[0], span[1]], [2.0, 4.0])
        return total(found.t, found.y.T)

    span = np.array([0.3, 9.0])
    lengths = np.diff(solve_ivp(rate, span, [2.0, 4.0]).t)

    def by_steps(span):
        t, y = span[0], np.array([2.0, 4.0], complex)
        times, places = [t], [y]
        for length in [*lengths[:-1], None]:
            h = span[1] - t if length is None else length
            slopes = []
            for weights, c in zip(RK45.A, RK45.C, strict=True):
                moved = sum((w * slope for w, slope in zip(weights, slopes, strict=False)), 0 * y)
                slopes.append(rate(t + c * h, y + h * moved))
            t, y = t + h, y + h * sum(w * slope for w, slope in zip(RK45.B, slopes, strict=True))
            times.append(t)
            places.append(y)
        return total(np.array(times), places)

    _, (gradient,) = yota.grad(solved, span)
    expected = [by_steps(span + 1e-30j * direction).imag / 1e-30 for direction in np.eye(2)]
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)
