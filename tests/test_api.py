"""The public functions: calling conventions, kinds of arguments, modes."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from yota import errors, hessian, hvp, jacobian, vjp
from yota.run import options as branches
from yota.run.derivatives import prepared

X = np.array([0.3, 0.7, 1.1])


def loss(x, w=2.0, *, power=2):
    return np.sum(w * x**power)


# -- calling ---------------------------------------------------------------------------------------------


def test_arguments_by_name():
    _, g = yota.grad(loss, X, power=3)
    np.testing.assert_allclose(g[0], 6 * X**2)
    fg = yota.value_and_grad(loss)
    np.testing.assert_allclose(fg(X, power=3)[1], 6 * X**2)
    np.testing.assert_allclose(fg(x=X)[1], 4 * X)
    np.testing.assert_allclose(fg(X, w=3.0)[1], 6 * X)
    assert np.isclose(yota.value_and_grad(loss, wrt="w")(X, 3.0)[1], np.sum(X**2))
    with pytest.raises(TypeError, match="unexpected keyword"):
        fg(X, nonsense=1)


def test_wrt():
    value, (gx, gw) = yota.value_and_grad(loss, wrt=("x", 1))(X, 2.0)
    np.testing.assert_allclose(gx, 4 * X)
    assert isinstance(gw, float) and np.isclose(gw, np.sum(X**2))
    assert np.isclose(yota.gradient(loss, wrt=-1)(X, 2.0), np.sum(X**2))


def test_methods_partials_and_callables():
    class Model:
        def __init__(self):
            self.scale = 2.0

        def __call__(self, x):
            return np.sum(self.scale * x)

        @staticmethod
        def square(x):
            return np.sum(x * x)

    model = Model()
    np.testing.assert_array_equal(yota.grad(model, X)[1][0], [2.0] * 3)
    model.scale = 3.0
    np.testing.assert_array_equal(yota.grad(model, X)[1][0], [3.0] * 3)
    np.testing.assert_array_equal(yota.grad(model.square, X)[1][0], 2 * X)
    np.testing.assert_allclose(yota.gradient(functools.partial(loss, X))(2.0), np.sum(X**2))
    np.testing.assert_allclose(yota.gradient(functools.partial(loss, power=3))(X), 6 * X**2)
    np.testing.assert_array_equal(yota.grad(np.sum, X)[1][0], [1.0] * 3)


def test_lambdas_written_in_a_loop_are_compiled_once():
    runs = []

    def counted(x, y):
        runs.append(1)
        return np.sum(x * y)

    for _ in range(5):
        _, g = yota.grad(lambda x: counted(x, X), X)
    assert len(runs) == 1
    other = X + 1
    _, g = yota.grad(lambda x: counted(x, other), X)
    np.testing.assert_array_equal(g[0], other)


def test_partial_functions_written_in_a_loop_are_compiled_once():
    runs = []

    def counted(a, x, y=1.0, *, z=1.0):
        runs.append(1)
        return np.sum(a * x * y) * z

    class Model:
        def cost(self, x, y=1.0):
            runs.append(1)
            return np.sum(x * y)

    model, partial = Model(), functools.partial
    cases = [
        (lambda step: partial(counted, X * step), lambda step: X * step, 1),
        (lambda step: partial(counted, 2.0 * step), lambda step: 2.0 * step, 1),
        (lambda step: partial(counted, 2, y=float("3.0"), z=X[0]), lambda step: 6.0 * X[0], 5),
        (lambda step: partial(partial(counted, 2.0), y=X), lambda step: 2 * X, 1),
        (lambda step: partial(counted, 2.0, z=3.0 + step % 2), lambda step: 2 * (3.0 + step % 2), 5),
        (lambda step: partial(model.cost, y=X), lambda step: X, 1),
    ]
    for make, expected, count in cases:
        runs.clear()
        for step in range(5):
            np.testing.assert_allclose(yota.grad(make(step), X)[1][0], expected(step) * np.ones(3))
        assert len(runs) == count


def test_caches_tell_kinds_apart():
    fg = yota.value_and_grad(lambda x: np.sum(x * x))
    for x in (X, X[:2], X.astype(np.float32), X[:, None], 2.0, np.float32(2.0), np.array(2.0), 1 + 2j):
        gradient = fg(x)[1] if not isinstance(x, complex) else 0
        if not isinstance(x, complex):
            assert type(gradient) is type(x), (type(gradient), type(x))
            np.testing.assert_allclose(gradient, 2 * np.asarray(x), rtol=1e-6)
            assert np.asarray(gradient).dtype == np.asarray(x).dtype and np.shape(gradient) == np.shape(x)


# -- kinds of arrays ---------------------------------------------------------------------------------------


def chain(x):
    return np.sum(np.log(1 + np.exp(-x * x)) * np.sin(x) + np.tanh(x) ** 3)


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 50_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts(n, dtype):
    base = np.linspace(0.1, 2.0, 2 * n + 1).astype(dtype)
    x = base[: 2 * n : 2].copy()
    expected = yota.gradient(chain)(x)
    assert expected.dtype == dtype and expected.shape == (n,)
    fixed = x.copy()
    fixed.flags.writeable = False
    odd = np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(dtype) if n else x
    for other in (base[: 2 * n : 2], fixed, x[::-1][::-1], x.astype(x.dtype.newbyteorder()), odd):
        np.testing.assert_allclose(yota.gradient(chain)(other), expected, rtol=1e-5 if dtype is np.float32 else 1e-12)


def test_float32_stays_float32():
    x = X.astype(np.float32)
    value, g = yota.grad(lambda x, s: np.sum(np.exp(x) * s) / 3, x, 2.0)
    assert value.dtype == np.float32 and g[0].dtype == np.float32 and isinstance(g[1], float)
    value, g = yota.grad(lambda x, y: np.sum(x * y), x, X)
    assert value.dtype == np.float64 and g[0].dtype == np.float32 and g[1].dtype == np.float64


def test_complex_descends():
    z = np.array([1 + 2j, -0.5 + 0.25j])

    def f(z):
        return np.sum(np.abs(z**2 - 1) ** 2 + np.real(np.exp(z)))

    _, g = yota.grad(f, z)
    h = 1e-6
    for position in range(2):
        e = np.zeros(2)
        e[position] = h
        re = (f(z + e) - f(z - e)) / (2 * h)
        im = (f(z + 1j * e) - f(z - 1j * e)) / (2 * h)
        np.testing.assert_allclose(g[0][position], re + 1j * im, rtol=1e-7)
    assert f(z - 1e-3 * g[0]) < f(z)
    assert yota.gradcheck(lambda a, z: np.real(np.vdot(z, a * z)), X[:2], z)


def test_mixed_real_and_complex():
    _, g = yota.grad(lambda x: np.real(np.sum(np.exp(1j * x) * (2 + 1j))), X)
    assert g[0].dtype == np.float64
    np.testing.assert_allclose(g[0], np.real(1j * np.exp(1j * X) * (2 + 1j)))


def test_nan_and_infinity_flow():
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    value, g = yota.grad(lambda x: np.sum(x * x), x)
    np.testing.assert_array_equal(g[0], 2 * x)
    assert np.isnan(value)
    for f, at in [
        (lambda x: 1 / x, 0.0),
        (lambda x: np.log(x), 0.0),
        (lambda x: np.exp(x), 1e4),
        (lambda x: np.sqrt(x), -1.0),
    ]:
        value, g = yota.grad(lambda x, f=f: f(x[0]), np.array([at]))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(value, f(np.float64(at)))


# -- modes -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(0, 4), st.sampled_from([3, 9, 130, 20_000]), st.integers(0, 2**32 - 1))
def test_strict_values_have_numpys_bits(which, n, seed):
    x = np.random.default_rng(seed).uniform(0.1, 2.0, n)
    f = [
        chain,
        lambda x: np.sum(x**3 * 2.5 - 3 * x * 2.5),
        lambda x: np.sum(np.log(x) / x) * np.mean(x),
        lambda x: x[0] ** 3 * x[1] - 3 * x[0] * x[1] ** 2 + np.sin(x[2]),
        lambda x: np.sum(np.exp(x - np.max(x))) + np.prod(x[:3]),
    ][which]
    value, g = yota.grad(f, x, strict=True)
    assert value == f(x)
    np.testing.assert_allclose(g[0], yota.grad(f, x)[1][0], rtol=1e-10, atol=1e-12)


def test_dynamic_trees_choose_without_tracing():
    runs = []

    def f(x):
        runs.append(1)
        if x[0] > 0:
            if x[1] > 0:
                return x[0] * x[1]
            return x[0] - x[1]
        return np.sum(x**2)

    fg = yota.value_and_grad(f, dynamic=True)
    points = [np.array(p) for p in ([1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [3.0, 4.0], [3.0, -4.0], [-3.0, 1.0])]
    for _ in range(2):
        for p in points:
            value, gradient = fg(p)
            expected = [p[1], p[0]] if (p > 0).all() else [1.0, -1.0] if p[0] > 0 else 2 * p
            np.testing.assert_array_equal(gradient, expected)
    assert len(runs) == 3
    with pytest.raises(errors.StaleTapeError, match=r"if x\[0\] > 0"):
        stale = yota.value_and_grad(f, dynamic=False)
        stale(points[0])
        stale(points[2])


def kinked(x):
    total = 0.0
    for each in x:
        total = total + (each**2 if each > 0 else 3.0 * each**2)
    return total


def test_branches_are_followed_unasked():
    rng = np.random.default_rng(0)
    step = 1e-6 * np.eye(4)
    both, alone, table = yota.value_and_grad(kinked), yota.gradient(kinked), yota.jacobian(lambda x: [kinked(x), x[0]])
    for x in rng.normal(size=(40, 4)):
        expected = [(kinked(x + each) - kinked(x - each)) / 2e-6 for each in step]
        assert np.isclose(both(x)[0], kinked(x))
        np.testing.assert_allclose(both(x)[1], expected, atol=1e-4)
        np.testing.assert_allclose(alone(x), expected, atol=1e-4)
        np.testing.assert_allclose(table(x)[0], expected, atol=1e-4)
    found = scipy.optimize.minimize(yota.value_and_grad(lambda x: kinked(x - 1.0)), np.zeros(3), jac=True)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-2)


def other_ways(x):
    total = 0.0
    for each in x:
        total = total + (np.exp(each) if each > 0 else 3.0 * each**2)
    return total


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_branches_are_followed_up_to_a_number(target, monkeypatch):
    monkeypatch.setattr(branches, "MOST_FOLLOWED", 3)
    both = yota.value_and_grad(other_ways, target=target)
    points = [np.array([a, b]) for a in (1.0, -1.0) for b in (1.0, -1.0)]
    for x in points[:3]:
        assert both(x)[0] == other_ways(x)
    with pytest.raises(errors.StaleTapeError, match=r"each > 0.* another way in all of the 3 tapes") as caught:
        both(points[3])
    assert "dynamic=True" in str(caught.value)
    # What was followed goes on.
    for x in points[:3]:
        assert both(x)[0] == other_ways(x)
    assert yota.value_and_grad(other_ways, target=target, dynamic=True)(points[3])[0] == 6.0
    for wrong in (1, None, "always"):
        with pytest.raises(errors.ArgumentError, match="dynamic="):
            yota.gradient(kinked, dynamic=wrong)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_ties_that_rounding_decides_are_decided_as_numpy_does(target):
    # SciPy branches on the largest sum of a column; here those of the first three columns are equal.
    matrix = scipy.sparse.csc_array([[4.0, 1, 0, 0], [0.5, 5, 1, 0], [0, 0.5, 6, 1], [0, 0, 0.5, 7]])

    def f(p):
        return np.sum(scipy.sparse.linalg.expm_multiply(matrix * p[0] * 0.3, p[1] * np.arange(1.0, 5.0)))

    p = np.array([1.1, 0.9])
    with pytest.raises(errors.StaleTapeError):
        yota.gradient(f, target=target, dynamic=False)(p)
    exact = scipy.linalg.expm(matrix.toarray() * 0.33)
    for scale in (0.9, 0.8):
        p[1] = scale
        slope = yota.gradient(f, target=target)(p)
        expected = [np.sum(0.3 * matrix @ exact @ np.arange(1.0, 5.0)) * scale, np.sum(exact @ np.arange(1.0, 5.0))]
        np.testing.assert_allclose(slope, expected, rtol=1e-9)


def test_what_evaluates_at_once_follows_no_branch():
    yota.grad(kinked, np.array([1.0, 1.0]))
    with pytest.raises(errors.StaleTapeError, match="dynamic=True"):
        yota.grad(kinked, np.array([1.0, -1.0]))


def test_dynamic_trees_are_bounded(monkeypatch):
    monkeypatch.setattr(prepared, "MOST_TAPES", 3)
    monkeypatch.setattr(prepared, "_REPEATED", 99)  # no loop for every number of trips
    runs = []

    def f(x):
        runs.append(1)
        total = x[0]
        while total < x[1]:
            total = total * x[2]
        return total

    fg = yota.value_and_grad(f, dynamic=True)
    for stop in (1.5, 3.0, 5.0, 9.0, 17.0):
        for _ in range(2):
            value, gradient = fg(np.array([1.0, stop, 2.0]))
            times = int(np.ceil(np.log2(stop)))
            assert value == 2.0**times and gradient[0] == 2.0**times
    assert len(runs) == 5
    fg(np.array([1.0, 9.0, 2.0]))
    assert len(runs) == 5
    fg(np.array([1.0, 1.5, 2.0]))
    assert len(runs) == 6


def test_a_loop_of_many_lengths():
    def f(x):
        total = x[0]
        while total < x[1]:
            total = total + x[2]
        return total

    fg = yota.value_and_grad(f, dynamic=True)
    for count in range(20):
        assert fg(np.array([0.0, count, 1.0]))[1][2] == count


def test_seed():
    value, g = yota.grad(lambda x: x**2, X, seed=np.array([1.0, 0.0, 2.0]))
    np.testing.assert_allclose(value, X**2)
    np.testing.assert_allclose(g[0], [2 * X[0], 0.0, 4 * X[2]])


# -- second order -------------------------------------------------------------------------------------------


def test_second_derivatives():
    A = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1.0]])
    np.testing.assert_allclose(hessian(lambda x: 0.5 * x @ A @ x)(X), A)
    np.testing.assert_allclose(
        hvp(lambda x: np.sum(np.sin(x) * x[::-1]))(X, X), hessian(lambda x: np.sum(np.sin(x) * x[::-1]))(X) @ X
    )
    np.testing.assert_allclose(
        jacobian(lambda x: np.outer(x, x))(X)[:, :, 0], np.outer(X, [1, 0, 0]) + np.outer([1, 0, 0], X)
    )
    value, pullback = vjp(lambda x, y: x * y, X, X + 1)
    gx, gy = pullback(np.ones(3))
    np.testing.assert_allclose(gx, X + 1)
    np.testing.assert_allclose(gy, X)


def test_gradient_of_a_gradient():
    inner = yota.gradient(lambda x: np.sum(x**4))
    np.testing.assert_allclose(yota.gradient(lambda x: np.sum(inner(x) ** 2))(X), 2 * 4 * X**3 * 12 * X**2)

    def outer(x):
        return np.sum(yota.gradient(lambda y: np.sum(y * y * x))(X) * x)

    np.testing.assert_allclose(yota.gradient(outer)(X), 4 * X * X)


# -- threads ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [4, 5_000, 60_000])
def test_threads_and_reentrancy(n):
    fg = yota.value_and_grad(chain)
    inputs = [np.linspace(0.1, 1.0 + k, n) for k in range(8)]
    expected = [fg(x) for x in inputs]
    barrier = threading.Barrier(4)

    def work(k):
        barrier.wait()
        return [fg(inputs[(k + step) % 8]) for step in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for k, results in enumerate(pool.map(work, range(4))):
            for step, (value, gradient) in enumerate(results):
                assert value == expected[(k + step) % 8][0]
                np.testing.assert_array_equal(gradient, expected[(k + step) % 8][1])


def test_tracing_in_many_threads_at_once():
    def work(k):
        def f(x):
            out = np.zeros(3)
            out[0] = x[0] * k
            return np.sum(out * x)

        return yota.grad(f, X)[1][0][0]

    with ThreadPoolExecutor(8) as pool:
        np.testing.assert_allclose(list(pool.map(work, range(32))), [2 * X[0] * k for k in range(32)])


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("strict", [False, True])
def test_a_function_that_returns_a_python_number(target, strict):
    for dtype in (np.float32, np.float64):
        x = np.array([1.25, 2.5], dtype)
        of = yota.value_and_grad(lambda x: float(np.sum(x * x)), target=target, strict=strict)
        for _ in range(2):
            value, gradient = of(x)
            assert type(value) is float
            assert value == 7.8125
            assert gradient.dtype == dtype
            np.testing.assert_array_equal(gradient, 2 * x)


def test_the_package_shows_what_is_public_and_nothing_else():
    shown = {name for name in dir(yota) if not name.startswith("__")}
    assert shown == {*yota.__all__, "distributed", "errors", "export", "interop", "testing"}
    # The documentation names what is in modules as `yota.testing.check_rule`; no import of the module is needed.
    script = "import yota; yota.testing.check_rule, yota.export.Module, yota.errors.RuleError"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(
    "name", ["grad", "value_and_grad", "gradient", "jacobian", "hessian", "hvp", "vjp", "jvp", "batch"]
)
def test_all_derivatives_take_the_same_options(name):
    parameters = inspect.signature(getattr(yota, name)).parameters
    assert {option: parameters[option].default for option in ("target", "strict", "dynamic")} == {
        "target": None,  # that of `yota.configure`
        "strict": False,
        "dynamic": "auto" if name in ("value_and_grad", "gradient", "jacobian") else False,
    }


def test_pullbacks_and_pushforwards_take_branches_as_they_come():
    def bent(x):
        return x**2 if x[0] > 0 else x**3

    for x in (X, -X):
        expected = 2 * x if x[0] > 0 else 3 * x**2
        value, pullback = vjp(bent, x, dynamic=True)
        np.testing.assert_allclose(pullback(np.ones(3))[0], expected, rtol=1e-14)
        np.testing.assert_allclose(yota.jvp(bent, (x,), (np.ones(3),), dynamic=True), (value, expected), rtol=1e-14)
