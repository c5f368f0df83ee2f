"""Bad input: a clear error, and nothing changed."""

from __future__ import annotations

import contextlib
import copy
import math
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.special

import yota
from yota import errors

X = np.array([0.5, 1.5, 2.5])


@pytest.fixture(autouse=True)
def namespace_is_as_before():
    before = {name: getattr(np, name) for name in ("array", "zeros", "r_", "vectorize", "asarray", "full_like")}
    sine = math.sin
    yield
    assert all(getattr(np, name) is value for name, value in before.items())
    assert math.sin is sine


def refused(f, *args, match, error=errors.YotaError):
    with pytest.raises(error, match=match):
        yota.grad(f, *args)


def test_unknown_function_prints_the_rule_to_paste():
    refused(
        lambda x: np.sum(np.nextafter(x, 2 * x)),
        X,
        match=r"@elementwise\(\"numpy.nextafter\"\)",
        error=errors.MissingRuleError,
    )
    refused(
        lambda x: np.packbits(x > 0.5).sum(),
        X,
        match=r"no rule is known for numpy.packbits",
        error=errors.MissingRuleError,
    )


def test_non_scalar_output_names_jacobian():
    refused(lambda x: x * 2, X, match="yota.jacobian", error=errors.DifferentiationError)
    refused(lambda x: (x[0], x[1]), X, match="2 values", error=errors.DifferentiationError)
    refused(lambda x: x[0] * 1j, X, match="complex", error=errors.DifferentiationError)


def test_integer_input():
    refused(np.sum, np.arange(3), match=r"astype\(float\)")
    refused(lambda n: n * 2.0, 3, match="static; pass 3.0")
    with pytest.raises(errors.ArgumentError, match="int64"):
        yota.value_and_grad(lambda x, n: np.sum(x * n), wrt=1)(X, np.arange(3))
    with pytest.raises(errors.ArgumentError, match="wrt=5"):
        yota.value_and_grad(np.sum, wrt=5)(X)
    with pytest.raises(errors.ArgumentError, match="wrt='z'"):
        yota.value_and_grad(lambda x: x, wrt="z")(1.0)


def test_arrays_that_cannot_be_traced():
    refused(np.sum, np.array([1.0, None]), match="object array")
    refused(np.sum, np.zeros(2, dtype=[("a", float)]), match="structured")
    refused(np.sum, np.array(["a"]), match="dtype <U1")
    refused(np.sum, np.ma.masked_array([1.0], [True]), match="MaskedArray")
    refused(np.sum, np.array(["2020-01-01"], dtype="datetime64[D]"), match="datetime64")


def test_float_of_several_elements():
    refused(lambda x: float(x), X, match=".", error=TypeError)


def test_rule_text_with_a_fault():
    with pytest.raises(errors.RuleError, match=r":\d+:\d+"):
        yota.diffrule("@elementwise\ndef f(x: Real) -> y:\n    d[y, x] = sine(x)\n")


def test_the_functions_own_exception_comes_through():
    def fails(x):
        np.zeros(3)
        raise KeyError("mine")

    refused(fails, X, match="mine", error=KeyError)
    refused(lambda x: np.reshape(x, (2, 2)), X, match="reshape", error=ValueError)
    refused(lambda x: x @ np.ones(7), X, match=".", error=ValueError)
    refused(lambda x: x[7], X, match="out of bounds", error=IndexError)
    assert yota.grad(np.sum, X)[0] == 4.5


def test_recursion():
    def forever(x):
        return forever(x)

    refused(forever, X, match=".", error=RecursionError)

    def factorial(x, n):
        return x if n == 0 else factorial(x, n - 1) * n

    assert yota.grad(factorial, 1.0, 4)[1][0] == 24.0


def test_generators():
    assert yota.grad(lambda x: sum(v * v for v in x), X)[1][0].tolist() == [1.0, 3.0, 5.0]
    refused(lambda x: (v for v in x), X, match="returned a generator")


ESCAPED: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda w: w + 1,
    "reflected": lambda w: np.ones(3) @ w,
    "ufunc": lambda w: np.sin(w),
    "function": lambda w: np.sum(w),
    "method": lambda w: w.sum(),
    "item": lambda w: w[0],
    "assignment": lambda w: w.__setitem__(0, 1.0),
    "in place": lambda w: w.__iadd__(1.0),
    "iteration": lambda w: list(w),
    "copy": lambda w: copy.deepcopy(w),
    "numbers": lambda w: [float(each) for each in w],
    "truth": lambda w: bool(w[0] > 1),
    "number itself": lambda w: float(w),
    "truth itself": lambda w: bool(w),
    "complex number itself": lambda w: complex(w),
    "index itself": lambda w: range(w),
    "hash": lambda w: hash(w),
    "plain": lambda w: np.asarray(w),
    "text": lambda w: f"{w}",
    "comparison": lambda w: np.testing.assert_allclose(w, X),
    "another function": lambda w: yota.grad(lambda y: np.sum(y * w), X),
    "argument": lambda w: yota.grad(lambda y: np.sum(y * y), w),
    "compiled argument": lambda w: yota.value_and_grad(lambda y: np.sum(y * y))(w),
    "simplegrad": lambda w: yota.simplegrad(lambda y: np.sum(y * y), w),
    "update": lambda w: yota.update({"a": X}, {("a",): w}, lambda x, g: x - g),
}


@pytest.mark.parametrize("name", ESCAPED)
def test_a_value_that_escapes(name):
    state: dict[str, Any] = {}

    def keeps(x):
        state["w"] = x * 2
        return np.sum(x)

    yota.grad(keeps, X)
    with pytest.raises(
        errors.TracingError, match=r"test_bad_input.py:\d+: `state.*`, was used after keeps had returned"
    ):
        ESCAPED[name](state["w"])
    assert "keeps has returned" in repr(state) and isinstance(state["w"], np.ndarray)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads():
    found: list[type] = []

    def uses_thread(x):
        def work():
            with contextlib.suppress(Exception):
                x + 1

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x)

    with pytest.raises(errors.TracingError, match="another thread"):
        yota.grad(uses_thread, X)

    def sees_nothing(x):
        def work():
            found.append(type(np.zeros(3)))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return np.sum(x)

    yota.grad(sees_nothing, X)
    assert found[-1] is np.ndarray


LEAKS = {
    "plain += traced": lambda x: _add(OUTSIDE, x),
    "out= plain": lambda x: np.add(x, x, out=OUTSIDE),
    "add.at plain": lambda x: np.add.at(OUTSIDE, [0], x[0]),
    "copyto plain": lambda x: np.copyto(OUTSIDE, x),
    "object array": lambda x: np.sum(np.array([x[0], x[1]], dtype=object)),
    "buffer": lambda x: memoryview(x),
    "tobytes": lambda x: x.tobytes(),
    "view": lambda x: np.sum(x.view(np.int64)),
    "scipy.linalg.qz": lambda x: np.sum(scipy.linalg.qz(np.outer(x, x), np.eye(3))[0]),
    "scipy.ndimage": lambda x: np.sum(scipy.ndimage.generic_filter1d(x, lambda line, out: None, 2)),
    "scipy.linalg.cossin": lambda x: np.sum(scipy.linalg.cossin(np.eye(4) * np.sum(x), 2, 2)[1]),
    "singular vectors of 0": lambda x: np.linalg.svd(np.outer(x, x)[:, :2])[0][0, 0],
    "random": lambda x: np.random.default_rng(0).normal(x[0]),
    "histogram": lambda x: np.sum(np.histogram(x)[0]),
    "pickle": lambda x: __import__("pickle").dumps(x),
    "where without out": lambda x: np.sum(np.log(x, where=x > 1)),
}
OUTSIDE = np.ones(3)


def _write(out, x):
    out[0] = x[0]
    return np.sum(out)


def _add(a, x):
    a += x
    return np.sum(a)


@pytest.mark.parametrize("name", LEAKS)
def test_leaks_are_refused(name):
    x = X.copy()
    with pytest.raises((errors.YotaError, TypeError)) as caught:
        yota.grad(LEAKS[name], x)
    assert "NotImplemented" not in str(caught.value)
    np.testing.assert_array_equal(OUTSIDE, np.ones(3))
    np.testing.assert_array_equal(x, X)


CLOSED = {
    "asarray with dtype": (lambda x: np.sum(np.asarray(x, dtype=float) ** 2), 2 * X),
    "full": (lambda x: np.sum(np.full(3, x[0])), [3, 0, 0]),
    "full_like": (lambda x: np.sum(np.full_like(OUTSIDE, x[1])), [0, 3, 0]),
    "integer array": (lambda x: _write(np.zeros(3, dtype=int), x) + x[1], [0, 1, 0]),
    "plain @": (lambda x: OUTSIDE @ x, [1, 1, 1]),
    "arange": (lambda x: np.sum(x[0] * np.arange(3)), [3, 0, 0]),
    "polynomial": (lambda x: np.polynomial.polynomial.polyval(x[0], [1.0, 2.0, 3.0]), [5, 0, 0]),
    "np.float64": (lambda x: np.float64(x[0]) * x[1], [1.5, 0.5, 0]),
    "np.float32": (lambda x: np.float32(x[0]) * x[1], [1.5, 0.5, 0]),
    "dtype.type": (lambda x: x.dtype.type(np.mean(x)) * x[0], [1.5 + 0.5 / 3, 0.5 / 3, 0.5 / 3]),
    "np.float64 returned at once": (lambda x: np.float64(x[0]), [1, 0, 0]),
    "float in arithmetic": (lambda x: float(x[0]) * 2 + x[1], [2, 1, 0]),
    "sum of floats": (lambda x: sum(map(float, x)), [1, 1, 1]),
    "float at return": (lambda x: float(x[2]), [0, 0, 1]),
    "item": (lambda x: x[2].item() * 2, [0, 0, 2]),
    "immutable scalar": (lambda x: _scalar(x), [4, 0, 0]),
    "logsumexp written out": (lambda x: np.log(np.sum(np.exp(x - np.max(x)))) + np.max(x), np.exp(X) / np.exp(X).sum()),
    "int is a guard": (lambda x: x[int(x[0])], [1, 0, 0]),
    "scipy.special.logsumexp": (lambda x: scipy.special.logsumexp(x), scipy.special.softmax(X)),
    "scipy.linalg.norm": (lambda x: scipy.linalg.norm(x), X / scipy.linalg.norm(X)),
    "scipy.integrate.simpson": (lambda x: scipy.integrate.simpson(x), [1 / 3, 4 / 3, 1 / 3]),
    "Polynomial": (lambda x: np.polynomial.Polynomial(x)(2.0), [1, 2, 4]),
    "Polynomial of traced": (lambda x: np.polynomial.Polynomial([1.0, 2.0, 3.0])(x[1]), [0, 2 + 6 * 1.5, 0]),
    "median": (lambda x: np.median(x), [0, 1, 0]),
    "cov of plain": (lambda x: np.sum(np.cov(np.eye(3)) @ x), np.cov(np.eye(3)).sum(0)),
    "arange of a size": (lambda x: np.sum(np.arange(x.size) * x), [0, 1, 2]),
    "arange of a traced stop": (lambda x: np.sum(np.arange(0.0, x[0], 0.2)), [0, 0, 0]),
    "arange of a traced start": (lambda x: np.sum(np.arange(x[0], 2.0, 0.4)), [4, 0, 0]),
    "aliasing": (lambda x: _alias(x), [8, 0, 0]),
    "string formatting": (lambda x: (f"{x[0]:.3f} {x!r}", x[0])[1], [1, 0, 0]),
}


def _scalar(x):
    a = b = x[0]
    a += b
    return a + 2 * b


def _alias(x):
    a = x * 2
    b = a
    b += 2 * x
    return a[0] + b[0]


@pytest.mark.parametrize("name", CLOSED)
def test_leaks_are_closed(name):
    f, expected = CLOSED[name]
    value, g = yota.grad(f, X)
    np.testing.assert_allclose(g[0], expected)
    np.testing.assert_allclose(value, f(X))


def test_nothing_of_the_users_is_written():
    x = X.copy()
    x.flags.writeable = False

    def writes(x):
        x[0] = 3.0
        x *= 2
        return np.sum(x * x)

    value, g = yota.grad(writes, x)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_allclose(g[0], [0.0, 8 * 1.5, 8 * 2.5])


def test_results_never_alias():
    x = X.copy()
    fg = yota.value_and_grad(lambda x: np.sum(x) * 1.0)
    first = fg(x)[1]
    kept = first.copy()
    second = fg(x + 1)[1]
    assert not np.shares_memory(first, second)
    second[:] = -1
    np.testing.assert_array_equal(first, kept)
    _, g = yota.grad(lambda x, y: np.sum(x * 1.0 + y), X, X)
    assert not np.shares_memory(g[0], g[1]) and not np.shares_memory(g[0], X)


def test_rebinding_captured_data_is_noticed():
    scale = 2.0

    def f(x):
        return np.sum(x * scale)

    fg = yota.value_and_grad(f)
    assert fg(X)[1][0] == 2.0
    scale = 5.0
    assert fg(X)[1][0] == 5.0
    assert yota.grad(f, X)[1][0][0] == 5.0


SIGMA = 2.0
DATA = np.linspace(1.0, 2.0, 50)
SHORT = np.array([1.0, 2.0, 3.0])
WHERE = np.array([0, 1, 1])
CONFIG: dict[str, Any] = {"rate": 1.0, "weights": SHORT}


def _helper(x):
    return x * SIGMA


@pytest.mark.parametrize(
    "name", ["list", "array", "folded array", "short array", "index array", "helper's global", "dict", "attribute"]
)
def test_nothing_captured_goes_stale(name, monkeypatch):
    long, short, where, numbers = DATA.copy(), SHORT.copy(), WHERE.copy(), [1.0, 2.0]
    config = {"rate": 1.0, "weights": SHORT.copy()}
    holder = Loop(None, 2.0)
    x = np.arange(50.0)
    f, change = {
        "list": (lambda x: np.sum(x) * numbers[0], lambda: numbers.__setitem__(0, 7.0)),
        "array": (lambda x: np.sum(x * long), lambda: long.__imul__(3.0)),
        "folded array": (lambda x: np.sum(x) * np.mean(long), lambda: long.__imul__(3.0)),
        "short array": (lambda x: np.sum(x[:3] * short), lambda: short.__setitem__(0, 9.0)),
        "index array": (lambda x: np.sum(x[where] ** 2), lambda: where.__setitem__(0, 5)),
        "helper's global": (lambda x: np.sum(_helper(x)), lambda: monkeypatch.setitem(globals(), "SIGMA", 11.0)),
        "dict": (lambda x: np.sum(x[:3] * config["weights"]), lambda: config.update(weights=SHORT + 5)),
        "attribute": (lambda x: np.sum(x * holder.x), lambda: setattr(holder, "x", 13.0)),
    }[name]
    fg = yota.value_and_grad(f)
    for _ in range(2):
        assert np.isclose(fg(x)[0], f(x)) and np.isclose(yota.grad(f, x)[0], f(x))
    before = fg(x)[1]
    change()
    for _ in range(2):
        value, gradient = fg(x)
        assert np.isclose(value, f(x)) and np.isclose(yota.grad(f, x)[0], f(x))
        assert not np.allclose(gradient, before)
        np.testing.assert_allclose(yota.grad(f, x)[1][0], gradient)
    assert yota.gradcheck(f, x)


def test_static_values_are_told_apart_by_type():
    def f(x, n):
        return np.sum(x) * (2 if n is True else 3)

    assert yota.grad(f, X, True)[1][0][0] == 2.0
    assert yota.grad(f, X, 1)[1][0][0] == 3.0


@dataclass
class Typed:
    a: Any
    dtype: Any


def test_a_class_in_a_structure_is_static():
    def f(typed):
        return np.sum(np.asarray(typed.a, dtype=typed.dtype) ** 2)

    fg = yota.value_and_grad(f)
    for dtype in (np.float64, np.float32, np.float64):
        value, gradient = fg(Typed(X, dtype))
        assert value.dtype == dtype
        np.testing.assert_allclose(gradient[("a",)], 2 * X, rtol=1e-6)


@dataclass
class Loop:
    me: Any = None
    x: float = 1.0


def test_a_structure_that_contains_itself():
    loop = Loop()
    loop.me = loop
    refused(lambda m: m.x, loop, match="contains itself")


def test_update_refuses_what_does_not_fit():
    with pytest.raises(errors.ArgumentError, match="field path"):
        yota.update(Loop(), {("y",): 1.0}, lambda x, g: x)
    fixed = np.ones(2)
    fixed.flags.writeable = False
    with pytest.raises(errors.ArgumentError, match="read-only"):
        yota.update(fixed, np.ones(2), lambda x, g: x - g)


def test_unknown_target():
    with pytest.raises(errors.ArgumentError, match="numpy"):
        yota.grad(np.sum, X, target="fortran")


STALE_OR_ZERO = {
    "function of C returned at once": lambda x: struct.unpack("d", struct.pack("d", x[0]))[0],
}


@pytest.mark.parametrize("name", STALE_OR_ZERO)
def test_numbers_that_leave_and_come_back_otherwise_are_refused(name):
    with pytest.raises(errors.TracingError):
        yota.grad(STALE_OR_ZERO[name], X)


def test_helpers_that_are_replaced_are_noticed():
    def square(x):
        return x * x

    def cube(x):
        return x * x * x

    for helper, expected in (
        (square, 2 * X),
        (cube, 3 * X * X),
        (np.sin, np.cos(X)),
        (np.exp, np.exp(X)),
        (square, 2 * X),
    ):
        np.testing.assert_allclose(yota.grad(lambda x, helper=helper: np.sum(helper(x)), X)[1][0], expected)
        np.testing.assert_allclose(yota.grad(lambda x: np.sum(helper(x)), X)[1][0], expected)  # noqa: B023


def test_a_seed_that_changes_is_noticed():
    seed = np.ones(3)
    np.testing.assert_allclose(yota.grad(lambda x: x * x, X, seed=seed)[1][0], 2 * X)
    seed[:] = 3.0
    np.testing.assert_allclose(yota.grad(lambda x: x * x, X, seed=seed)[1][0], 6 * X)


def test_random_numbers_do_not_meet_recorded_arrays():
    noise = []

    def f(x):
        np.random.seed(0)  # noqa: NPY002
        noise.append(np.random.default_rng(0).normal(size=3) + np.random.rand(3))  # noqa: NPY002
        return np.sum(x * noise[-1])

    np.testing.assert_allclose(yota.grad(f, X)[1][0], noise[-1])


def test_powers_with_a_traced_exponent():
    fg = yota.value_and_grad(lambda p: 2.0 ** p[1] * p[0] ** p[1])
    for p in (np.array([1.5, 2.0]), np.array([1.5, 0.5])):
        value, gradient = fg(p)
        assert np.isclose(value, 3.0 ** p[1])
        np.testing.assert_allclose(gradient, [p[1] * 2.0 ** p[1] * p[0] ** (p[1] - 1), 3.0 ** p[1] * np.log(3.0)])


def test_a_number_that_becomes_no_number_is_another_branch():
    def f(x):
        level = float(x[0])
        return x[1] * (1.0 if level != level else 2.0)

    for target in ("numpy", "c"):
        fg = yota.value_and_grad(f, dynamic=True, target=target)
        for first, factor in ((0.5, 2.0), (np.nan, 1.0), (0.7, 2.0), (np.nan, 1.0), (-np.nan, 1.0), (0.5, 2.0)):
            value, slope = fg(np.array([first, 3.0]))
            assert value == 3.0 * factor and slope[1] == factor
    _, tape = yota.trace(f, np.array([np.nan, 3.0]))
    assert yota.play(tape, np.array([np.nan, 2.0])) == 2.0


def test_decisions_on_numbers_of_any_kind():
    fg = yota.value_and_grad(lambda x: np.sum(x) * 2 if np.sum(x) else np.sum(x * x), dynamic=True)
    for scale in (0.0, 1.0, 3.0, 0.0):
        assert fg(X * scale)[1][0] == (2.0 if scale else 0.0)
    fg = yota.value_and_grad(lambda x: x[int(x[0])] ** 2, dynamic=True)
    for first in (0.5, 1.5, 2.5, 1.7):
        assert fg(np.array([first, 1.0, 2.0]))[0] == [first**2, 1.0, 4.0][int(first)]


def test_masks_that_select_another_number_of_elements():
    def f(x):
        return np.sum(x[x > 0.5]) * np.sum((x * 2)[x > 0.2])

    fg = yota.value_and_grad(f, dynamic=True)
    for seed in range(4):
        x = np.random.default_rng(seed).random(40_000)
        assert np.isclose(fg(x)[0], f(x))
    with pytest.raises(errors.StaleTapeError):
        for seed in range(4):
            yota.grad(f, np.random.default_rng(seed).random(40_000))


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_indices_that_come_to_count_from_the_end_are_no_branch(target):
    fg = yota.value_and_grad(lambda x, i: np.sum(x[i] * X), target=target)
    for places in ([0, 1, 1], [-1, 0, -1], [2, 2, 2], [-3, -2, -1]):
        value, gradient = fg(X, np.array(places))
        assert value == np.sum(X[places] * X)
        expected = np.zeros(3)
        np.add.at(expected, places, X)
        np.testing.assert_array_equal(gradient, expected)
    once = yota.trace(lambda x, i: np.sum(x[i]), X, np.array([0, 1]))[1].compile(target)
    with pytest.raises(errors.StaleTapeError, match="an array of indices counts from the end now"):
        once(X, np.array([-1, 0]))
    assert once(X, np.array([1, 0])) == 2.0
