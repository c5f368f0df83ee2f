"""`solve_ivp` with implicit methods and `odeint` inside of traced functions."""

import numpy as np
import pytest
from scipy.integrate import ODEintWarning, OdeSolver, odeint, solve_ivp

import yota
from yota.errors import DifferentiationError, TracingError

METHODS = ["Radau", "BDF", "LSODA"]


def kinetics(t, y, k):
    slow, fast, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
    return np.array([back - slow, slow - back - fast, fast])


def by_state(y, k):
    return np.array(
        [
            [-k[0], k[2] * y[2], k[2] * y[1]],
            [k[0], -k[2] * y[2] - 2 * k[1] * y[1], -k[2] * y[1]],
            [0, 2 * k[1] * y[1], 0],
        ]
    )


K = np.array([0.04, 3e7, 1e4])
TIMES = np.array([0.4, 4.0, 40.0, 400.0])
SMALL = np.array([1.0, 1e-4, 1.0])
WEIGHTS = np.arange(1.0, 13.0).reshape(3, 4)


@pytest.fixture(scope="module")
def sensitivities():
    """Robertson's kinetics and its forward sensitivities by the rate constants and the first state."""

    def rates(t, z):
        y, s = z[:3], z[3:].reshape(3, 6)
        own = np.array([[-y[0], 0, y[1] * y[2]], [y[0], -(y[1] ** 2), -y[1] * y[2]], [0, y[1] ** 2, 0]])
        return np.concatenate([kinetics(t, y, K), (by_state(y, K) @ s + np.hstack([own, np.zeros((3, 3))])).ravel()])

    start = np.concatenate([[1.0, 0.0, 0.0], np.hstack([np.zeros((3, 3)), np.eye(3)]).ravel()])
    found = solve_ivp(rates, (0, 400), start, "LSODA", TIMES, rtol=1e-10, atol=1e-17).y
    return found[:3], found[3:].reshape(3, 6, -1)


@pytest.mark.parametrize("method", METHODS)
def test_robertson(method, sensitivities):
    def loss(k, start):
        found = solve_ivp(kinetics, (0, 400), start, method, TIMES, args=(k,), rtol=1e-9, atol=1e-13 * SMALL)
        return np.sum(WEIGHTS * np.log(found.y))

    states, slopes = sensitivities
    value, found = yota.value_and_grad(loss, wrt=(0, 1))(K, np.array([1.0, 0.0, 0.0]))
    assert value == pytest.approx(np.sum(WEIGHTS * np.log(states)), rel=1e-7)
    exact = np.einsum("it,ijt->j", WEIGHTS / states, slopes)
    np.testing.assert_allclose(np.concatenate(found), exact, rtol=1e-6)


def decay(rate, start, span, times, method, **options):
    return solve_ivp(lambda t, y: -rate * y, span, start, method, times, rtol=1e-9, atol=1e-10, **options)


@pytest.mark.parametrize("method", METHODS)
def test_times_and_starts(method):
    def last(rate, start, begin, end):
        return decay(rate, [start], (begin, end), None, method).y[0, -1]

    value, slopes = yota.value_and_grad(last, wrt=(0, 1, 2, 3))(0.7, 2.0, 0.5, 3.0)
    exact = 2 * np.exp(-0.7 * 2.5)
    assert value == pytest.approx(exact, rel=1e-7)
    assert slopes == pytest.approx([-2.5 * exact, exact / 2, 0.7 * exact, -0.7 * exact], rel=1e-6)
    # Also where the state is wanted at both ends.
    times = np.array([3.0, 2.5, 1.0, 0.0])
    fg = yota.value_and_grad(lambda times: np.sum(decay(0.7, [2.0], (3.0, 0.0), times, method).y * [1, 2, 3, 4]))
    for moved in (times, np.array([2.9, 1.0, 0.9, 0.0])):
        np.testing.assert_allclose(fg(moved)[1], -1.4 * np.exp(0.7 * (3 - moved)) * [1, 2, 3, 4], rtol=1e-5)
    assert len(fg.info().compilations) == 1
    assert yota.gradient(lambda end: decay(0.7, [2.0], (0, end), None, method).t[-1] ** 2)(3.0) == pytest.approx(6.0)


@pytest.mark.parametrize("method", METHODS)
def test_second_order(method):
    def final(x):
        return decay(x[0], [x[1]], (0, x[2]), [1.0, x[2]], method).y[0, -1]

    found = yota.hessian(final)(np.array([0.7, 2.0, 1.3]))
    a, b, t = 0.7, 2.0, 1.3
    exact = np.array([[b * t * t, -t, -b + a * b * t], [-t, 0, -a], [-b + a * b * t, -a, a * a * b]]) * np.exp(-a * t)
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


def test_complex_states_whose_rates_are_not_analytic():
    """A phase that turns by the square of its size: the state is z exp(i w |z|**2 t)."""

    def final(w, z):
        found = solve_ivp(lambda t, y: 1j * w * np.abs(y) ** 2 * y, (0, 1), [z + 0j], "BDF", rtol=1e-9, atol=1e-10)
        return found.y[0, -1].imag

    value, (by_w, by_z) = yota.value_and_grad(final, wrt=(0, 1))(0.9, 1.2)
    assert value == pytest.approx(1.2 * np.sin(0.9 * 1.44), rel=1e-7)
    assert by_w == pytest.approx(1.2**3 * np.cos(0.9 * 1.44), rel=1e-6)
    assert by_z == pytest.approx(np.sin(0.9 * 1.44) + 2 * 0.9 * 1.44 * np.cos(0.9 * 1.44), rel=1e-6)


def test_the_derivative_of_radaus_own_steps():
    """Against the same method with steps of the recorded lengths, by complex steps."""
    p, start = np.array([1.5, 1.0, 3.0]), np.array([1.0, 0.5])

    def rates(t, y, p):
        return np.array([p[0] * y[0] - p[1] * y[0] * y[1] + np.sin(t), y[0] * y[1] - p[2] * y[1]])

    def solved(p):
        return solve_ivp(rates, (0.0, 4.0), start, "Radau", args=(p,), rtol=1e-4)

    times = solved(p).t

    def by_steps(p):
        s = np.sqrt(6)
        a = np.array(
            [
                [(88 - 7 * s) / 360, (296 - 169 * s) / 1800, (-2 + 3 * s) / 225],
                [(296 + 169 * s) / 1800, (88 + 7 * s) / 360, (-2 - 3 * s) / 225],
                [(16 - s) / 36, (16 + s) / 36, 1 / 9],
            ]
        )
        y, places = start.astype(complex), [start.astype(complex)]
        for t, h in zip(times, np.diff(times), strict=False):
            nodes = t + h * np.array([(4 - s) / 10, (4 + s) / 10, 1])
            stages = np.tile(y, (3, 1))
            for _ in range(8):
                slopes = np.array([rates(c, each, p) for c, each in zip(nodes, stages, strict=True)])
                rest = stages - y - h * a @ slopes
                blocks = [
                    np.array([[p[0] - p[1] * each[1], -p[1] * each[0]], [each[1], each[0] - p[2]]]) for each in stages
                ]
                matrix = np.eye(6) - h * np.block([[a[i, j] * blocks[j] for j in range(3)] for i in range(3)])
                stages = stages - np.linalg.solve(matrix, rest.ravel()).reshape(3, 2)
            y = stages[-1]
            places.append(y)
        return np.sum(np.array(places) ** 2)

    found = yota.gradient(lambda p: np.sum(solved(p).y ** 2))(p)
    exact = [by_steps(p + 1e-30j * unit).imag / 1e-30 for unit in np.eye(3)]
    # SciPy leaves a part of Newton's steps to its tolerance.
    np.testing.assert_allclose(found, exact, rtol=2e-5)
    assert np.sum(solved(p).y ** 2) == pytest.approx(by_steps(p).real, rel=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_options(method):
    """The user's Jacobian, in both forms; states by columns; a pattern."""

    def final(rate, **options):
        return solve_ivp(lambda t, y: -rate * y, (0, 2), [1.0, 2.0], method, [2.0], rtol=1e-8, **options).y[1, 0]

    seen = []

    def slopes(t, y):
        seen.append(t)
        return -0.7 * np.eye(2)

    several = [{"vectorized": True}, {"jac": slopes}, {}]
    several += [] if method == "LSODA" else [{"jac": -0.7 * np.eye(2)}, {"jac_sparsity": np.eye(2)}]
    for options in several:
        slope = yota.gradient(lambda rate, options=options: final(rate, **options))(0.7)
        assert slope == pytest.approx(-4 * np.exp(-1.4), rel=1e-5)
    assert seen or method == "LSODA"


@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_solvers_get_the_generated_jacobian(method, monkeypatch):
    def final(rate):
        return solve_ivp(lambda t, y: -rate * np.array([1.0, 2.0]) * y, (0, 1), [1.0, 1.0], method, [1.0]).y[1, 0]

    plain = final(3.0)
    monkeypatch.delattr(f"scipy.integrate._ivp.{method.lower()}.num_jac")
    with pytest.raises(NameError):
        final(3.0)
    assert yota.value_and_grad(final)(3.0)[0] == pytest.approx(plain, rel=1e-6)


def test_what_has_no_derivative():
    with pytest.raises(TracingError, match=r"solve_ivp with method=.*Own.* is not recorded"):
        kind = type("Own", (OdeSolver,), {})
        yota.grad(lambda k: solve_ivp(lambda t, y: -k * y, (0, 5), [k], kind).y[0, -1], 1.0)
    with pytest.raises(DifferentiationError, match=r"solve_ivp at .*:\d+ failed.*Required step size is less"):
        yota.grad(lambda k: solve_ivp(lambda t, y: k * y**2, (0, 5), [1.0], "Radau").y[0, -1], 1.0)
    with pytest.raises(DifferentiationError, match="takes several branches on the way"):
        yota.grad(lambda p: solve_ivp(lambda t, y: -p * y if y[0] > 0.5 else -y, (0, 2), [1.0], "BDF").y[0, -1], 1.0)


def test_odeint_on_robertson(sensitivities):
    def loss(k, start):
        found = odeint(kinetics, start, np.append(0.0, TIMES), args=(k,), tfirst=True, rtol=1e-9, atol=1e-13 * SMALL)
        return np.sum(WEIGHTS * np.log(found[1:].T))

    states, slopes = sensitivities
    value, found = yota.value_and_grad(loss, wrt=(0, 1))(K, np.array([1.0, 0.0, 0.0]))
    assert value == pytest.approx(np.sum(WEIGHTS * np.log(states)), rel=1e-7)
    exact = np.einsum("it,ijt->j", WEIGHTS / states, slopes)
    np.testing.assert_allclose(np.concatenate(found), exact, rtol=1e-6)


RATES = np.array([1.0, 3.0])


def cooled(rate, start, times, **options):
    return odeint(lambda y, t, rate: -rate * RATES * y, start, times, args=(rate,), **options)


@pytest.mark.parametrize(
    ("times", "options"),
    [
        ([0.0, 0.5, 0.5, 2.0], {"full_output": True}),
        ([1.0, 0.8, -0.5], {"Dfun": lambda y, t, rate: -rate * np.diag(RATES)}),
        ([1.0, 0.8, -0.5], {"Dfun": lambda y, t, rate: -rate * np.diag(RATES), "col_deriv": 1}),
        ([0.3], {}),
        ([0.0, 2.0], {"Dfun": lambda y, t, rate: -rate * RATES[None], "ml": 0, "mu": 0, "col_deriv": 1}),
        ([0.0, 2.0], {"hmax": 0.05, "h0": 1e-3, "mxstep": 5000}),
    ],
)
def test_odeint_and_its_options(times, options):
    times, start = np.array(times), np.array([2.0, 1.0])
    weights = np.arange(1.0, 2 * len(times) + 1).reshape(-1, 2)

    def total(rate, start, times):
        found = cooled(rate, start, times, **options)
        return np.sum(weights * (found[0] if "full_output" in options else found))

    def exact(rate, start, times):
        return np.sum(weights * start * np.exp(-rate * RATES * (times - times[0])[:, None]))

    value, slopes = yota.value_and_grad(total, wrt=(0, 1, 2))(0.7, start, times)
    assert value == pytest.approx(exact(0.7, start, times), rel=1e-6)
    tiny = 1e-30j
    assert slopes[0] == pytest.approx(exact(0.7 + tiny, start, times).imag / 1e-30, rel=1e-6)
    for found, at in ((slopes[1], lambda x: exact(0.7, x, times)), (slopes[2], lambda x: exact(0.7, start, x))):
        where = start if found is slopes[1] else times
        wanted = [at(where + tiny * unit).imag / 1e-30 for unit in np.eye(len(where))]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_odeint_of_one_number_and_what_is_refused():
    value, slope = yota.value_and_grad(lambda a: odeint(lambda y, t: -a * y, 2.0, [0.0, 1.0])[-1, 0])(0.5)
    assert (value, slope) == (pytest.approx(2 * np.exp(-0.5), rel=1e-6), pytest.approx(-2 * np.exp(-0.5), rel=1e-6))
    with pytest.raises(TracingError, match="odeint with tcrit"):
        yota.grad(lambda a: np.sum(cooled(a, [1.0, 1.0], [0.0, 1.0], tcrit=[0.5])), 0.5)
    with (
        pytest.warns(ODEintWarning),
        pytest.raises(DifferentiationError, match=r"odeint at .*:\d+ failed.*Excess work done"),
    ):
        yota.grad(lambda a: np.sum(cooled(a, [1.0, 1.0], [0.0, 50.0], mxstep=2)), 0.5)
    # The solution is infinite at time 2: LSODA by itself does not stop there.
    with pytest.warns(ODEintWarning), pytest.raises(DifferentiationError, match=r"odeint at .*:\d+ failed"):
        yota.grad(lambda a: odeint(lambda y, t: a * y**2, 1.0, [0.0, 1.0, 5.0])[-1, 0], 0.5)


@pytest.mark.parametrize("method", METHODS)
def test_large_systems(method, monkeypatch):
    """Their equations are solved one step after the other; here for a chain of decays."""
    monkeypatch.setattr("yota.solvers.collocation._MOST", 0)

    def final(x):
        def rates(t, y):
            return np.concatenate([[-x[0] * y[0]], x[0] * y[:-1] - x[0] * y[1:]])

        start = np.concatenate([x[1:2], np.zeros(7)])
        return solve_ivp(rates, (0, 1), start, method, [0.5, 1.0], rtol=1e-9, atol=1e-11).y[2, -1]

    rate, start = 0.7, 2.0
    value, slope = yota.value_and_grad(final)(np.array([rate, start]))
    assert value == pytest.approx(start * rate**2 / 2 * np.exp(-rate), rel=1e-6)
    by_rate = start * (rate - rate**2 / 2) * np.exp(-rate)
    np.testing.assert_allclose(slope, [by_rate, value / start], rtol=1e-6)
    second = yota.hessian(final)(np.array([rate, start]))
    exact = [[start * (1 - 2 * rate + rate**2 / 2) * np.exp(-rate), by_rate / start], [by_rate / start, 0]]
    np.testing.assert_allclose(second, exact, rtol=1e-4, atol=1e-7)
