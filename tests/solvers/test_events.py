"""Events and dense output of `solve_ivp` inside of traced functions."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import yota
from yota.errors import DifferentiationError, TracingError

METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]


def fall(t, y, g):
    return [y[1], -g]


def ground(t, y, g):
    return y[0]


ground.terminal, ground.direction = True, -1


@pytest.mark.parametrize("method", METHODS)
def test_a_fall_ends_on_the_ground(method):
    def fallen(g, h):
        return solve_ivp(fall, (0, 10), [h, 0.0], method, events=ground, args=(g,), rtol=1e-9, atol=1e-9)

    def hit(g, h):
        found = fallen(g, h)
        return np.array([found.t_events[0][0], found.t[-1], found.y[1, -1], found.y_events[0][0, 1], found.y[0, -1]])

    g, h = 9.81, 5.0
    value, slopes = yota.jacobian(hit, wrt=(0, 1), with_value=True)(g, h)
    t, v = np.sqrt(2 * h / g), -np.sqrt(2 * g * h)
    np.testing.assert_allclose(slopes[0], [-t / 2 / g, -t / 2 / g, v / 2 / g, v / 2 / g, 0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(slopes[1], [t / 2 / h, t / 2 / h, v / 2 / h, v / 2 / h, 0], rtol=1e-6, atol=1e-8)
    if method in ("RK45", "BDF"):  # one of the explicit and one of the implicit methods
        second = yota.hessian(lambda x: hit(x[0], x[1])[0])(np.array([g, h]))
        exact = [[0.75 * t / g**2, -0.25 * t / g / h], [-0.25 * t / g / h, -0.25 * t / h**2]]
        np.testing.assert_allclose(second, exact, rtol=1e-5, atol=1e-8)
    if method not in ("Radau", "BDF", "LSODA"):
        np.testing.assert_array_equal(value, hit(g, h))


@pytest.mark.parametrize("turned", [False, True])
def test_an_event_beside_the_one_that_ends(turned):
    """A throw: the time and height of its highest point, and the time when it is over."""
    events = [ground, lambda t, y, g: y[1]]

    def thrown(v, g):
        several = events[::-1] if turned else events
        found = solve_ivp(fall, (0, 10), [0.5, v], "DOP853", events=several, args=(g,), rtol=1e-10, atol=1e-10)
        times, states = found.t_events[:: -1 if turned else 1], found.y_events[:: -1 if turned else 1]
        return np.array([times[1][0], states[1][0, 0], times[0][0], found.t[-1]])

    v, g = 7.0, 9.81
    slopes = yota.jacobian(thrown, wrt=(0, 1))(v, g)
    root = np.sqrt(v * v + g)
    over = (v + root) / g
    np.testing.assert_allclose(slopes[0], [1 / g, v / g, *[(1 + v / root) / g] * 2], rtol=1e-7)
    late = 1 / (2 * root * g) - over / g
    np.testing.assert_allclose(slopes[1], [-v / g**2, -v * v / 2 / g**2, late, late], rtol=1e-7)


@pytest.mark.parametrize("method", ["DOP853", "BDF"])
def test_several_events_and_their_times(method):
    """A swing begins at its end: it passes the middle at odd parts of its period, and turns at even ones."""

    def passes(w, end, offset):
        turns = [lambda t, y: y[0] - offset, lambda t, y: y[1]]
        return solve_ivp(
            lambda t, y: [y[1], -w * w * y[0]], (0.1, end), [np.cos(0.1 * w), -w * np.sin(0.1 * w)], method,
            events=turns, t_eval=[0.2, 0.3], rtol=1e-9, atol=1e-10,
        )  # fmt: skip

    def weighed(w, end, offset):
        found = passes(w, end, offset)
        assert found.y.shape == (2, 2)
        one, other = found.t_events
        return np.sum(one * np.arange(1.0, len(one) + 1)) + np.sum(other**2)

    fg = yota.value_and_grad(weighed, wrt=(0, 2))
    for w, end in ((2.0, 2.5), (2.1, 2.5), (2.0, 3.2)):
        middle, ends = (np.arange(1, 1 + len(times)) * np.pi / w for times in passes(w, end, 0.0).t_events)
        middle -= np.pi / 2 / w
        counts = np.arange(1.0, len(middle) + 1)
        value, (by_w, by_offset) = fg(w, end, 0.0)
        assert value == pytest.approx(np.sum(middle * counts) + np.sum(ends**2), rel=1e-6)
        assert by_w == pytest.approx(-np.sum(middle * counts) / w - 2 * np.sum(ends**2) / w, rel=1e-6)
        # The speed in the middle is w to either side.
        assert by_offset == pytest.approx(np.sum(counts * (-1.0) ** counts / w), rel=1e-6)


def test_wanted_times_up_to_the_end():
    times = np.linspace(0.0, 2.0, 11)

    def heights(g, times):
        found = solve_ivp(fall, (0, 2), [5.0, 0.0], t_eval=times, events=ground, args=(g,), rtol=1e-9)
        return np.sum(found.y[0])

    value, slopes = yota.value_and_grad(heights, wrt=(0, 1))(9.81, times)
    seen = times[times < np.sqrt(10 / 9.81)]
    assert value == heights(9.81, times)
    assert slopes[0] == pytest.approx(-np.sum(seen**2) / 2, rel=1e-7)
    np.testing.assert_allclose(slopes[1], np.where(times <= seen[-1], -9.81 * times, 0), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_states_at_any_time(method):
    def states(rate, times, at):
        found = solve_ivp(lambda t, y: -rate * y, (0, 3), [2.0, 1.0], method, dense_output=True, rtol=1e-9, atol=1e-10)
        return np.sum(found.sol(times)[0] * [1, 2, 3]) + found.sol(at)[1]

    times = np.array([1.0, 0.0, 2.5])
    value, slopes = yota.value_and_grad(states, wrt=(0, 1, 2))(0.7, times, 0.4)
    weights = 2 * np.array([1, 2, 3]) * np.exp(-0.7 * times)
    assert value == pytest.approx(np.sum(weights) + np.exp(-0.28), rel=1e-7)
    assert slopes[0] == pytest.approx(-np.sum(times * weights) - 0.4 * np.exp(-0.28), rel=1e-6)
    np.testing.assert_allclose(slopes[1], -0.7 * weights, rtol=1e-4)
    assert slopes[2] == pytest.approx(-0.7 * np.exp(-0.28), rel=1e-4)


def test_other_arguments_run_the_solver_again():
    def state(rate):
        return solve_ivp(lambda t, y: -rate * y, (0, 3), [2.0], t_eval=[3.0], dense_output=True, rtol=1e-8).sol(1.0)[0]

    fg = yota.value_and_grad(state)
    for rate in (0.7, 0.3, 0.7):
        assert fg(rate)[0] == state(rate)
        assert fg(rate)[1] == pytest.approx(-2 * np.exp(-rate), rel=1e-5)
    assert len(fg.info().compilations) == 1


def test_events_that_there_are_none_of():
    def last(rate, level):
        found = solve_ivp(lambda t, y: -rate * y, (0, 3), [2.0], events=lambda t, y: y[0] - level)
        return found.y[0, -1] + np.sum(found.t_events[0]) + np.sum(found.y_events[0])

    slopes = [yota.gradient(last)(0.7, level) for level in (5.0, 1.0)]
    assert slopes == pytest.approx([-6 * np.exp(-2.1), -6 * np.exp(-2.1) - np.log(2) / 0.49], rel=1e-2)


def test_what_is_refused():
    def solved(rate, method, **options):
        return solve_ivp(lambda t, y: -rate * y, (0, 3), [2.0], method, **options)

    with pytest.raises(TracingError, match=r"sol of scipy\.integrate\.solve_ivp is an object"):
        yota.grad(lambda rate: solved(rate, "RK45", dense_output=True).sol.t_min * rate, 0.7)
    with pytest.raises(DifferentiationError, match=r"sol of .*solve_ivp is wanted at a time outside of the steps"):
        yota.grad(lambda rate: solved(rate, "BDF", dense_output=True).sol(3.5)[0], 0.7)
    for jump in (lambda t, y: np.sign(y[0] - 1.5), lambda t, y: np.cbrt(y[0] - 1.5)):
        with pytest.raises(DifferentiationError, match=r"an event of .*solve_ivp at .* has no derivative"):
            yota.grad(lambda rate, jump=jump: solved(rate, "RK45", events=jump).t_events[0][0], 0.7)
