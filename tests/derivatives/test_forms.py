"""What is compiled for a function once serves every later call of a transform, and no other function."""

from __future__ import annotations

import functools
import gc
import logging
import weakref

import numpy as np
import pytest
import scipy.stats

import yota
from yota.run.derivatives import calling
from yota.tracing.captured.checks import State

X = np.array([0.5, 1.5, 2.5])
V = np.array([1.0, -1.0, 2.0])


@pytest.fixture
def compiled(monkeypatch):
    """What was compiled so far."""
    found = []
    monkeypatch.setattr(logging.getLogger("yota"), "info", lambda *message: found.append(message))
    return found


# For a function sum(k * x**3): each transform, and what it gives.
TRANSFORMS = {
    "grad": (lambda f, x: yota.grad(f, x)[1][0], lambda k, x: 3 * k * x**2),
    "gradient": (lambda f, x: yota.gradient(f)(x), lambda k, x: 3 * k * x**2),
    "value_and_grad": (lambda f, x: yota.value_and_grad(f)(x)[1], lambda k, x: 3 * k * x**2),
    "simplegrad": (lambda f, x: yota.simplegrad(f, x)(x)[1], lambda k, x: 3 * k * x**2),
    "hessian": (lambda f, x: yota.hessian(f)(x), lambda k, x: np.diag(6 * k * x)),
    "hvp": (lambda f, x: yota.hvp(f)(x, V), lambda k, x: 6 * k * x * V),
    "jacobian": (lambda f, x: yota.jacobian(yota.gradient(f))(x), lambda k, x: np.diag(6 * k * x)),
    "jvp": (lambda f, x: yota.jvp(f, (x,), (V,))[1], lambda k, x: np.sum(3 * k * x**2 * V)),
    "vjp": (lambda f, x: yota.vjp(f, x)[1](1.0)[0], lambda k, x: 3 * k * x**2),
    "seed": (lambda f, x: yota.grad(f, x, seed=2.0)[1][0], lambda k, x: 6 * k * x**2),
    "batch": (lambda f, x: yota.batch(f)(np.stack([x, 2 * x])), lambda k, x: np.array([1, 8]) * np.sum(k * x**3)),
    "inner": (lambda f, x: yota.gradient(lambda x: np.sum(yota.gradient(f)(x)))(x), lambda k, x: 6 * k * x),
}


def make(k):
    def f(x):
        return np.sum(k * x**3)

    def become(value):
        nonlocal k
        k = value

    return f, become


class Model:
    def __init__(self, k):
        self.k = k

    def loss(self, x):
        return np.sum(self.k * x**3)

    __call__ = loss


def scaled(k, x):
    return np.sum(k * x**3)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_function_is_compiled_once(name, compiled):
    transform, right = TRANSFORMS[name]
    for f in (make(2.0)[0], Model(2.0).loss, Model(2.0), functools.partial(scaled, 2.0)):
        np.testing.assert_allclose(transform(f, X), right(2.0, X))
        before = len(compiled)
        for _ in range(3):
            np.testing.assert_allclose(transform(f, X + 1), right(2.0, X + 1))
        assert len(compiled) == before


@pytest.mark.parametrize("name", TRANSFORMS)
def test_functions_of_one_code_are_told_apart(name):
    transform, right = TRANSFORMS[name]
    kinds = [lambda k: make(k)[0], lambda k: Model(k).loss, Model, lambda k: functools.partial(scaled, k)]
    for kind in kinds:
        numbers = (2.0, 3.0, -1.0, np.array([1.0, 2.0, 3.0]))
        functions = [kind(k) for k in numbers]
        for _ in range(3):
            for k, f in zip(numbers, functions, strict=True):
                np.testing.assert_allclose(transform(f, X), right(k, X))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_lambdas_that_are_made_anew_share_code(name, compiled):
    transform, right = TRANSFORMS[name]
    data = np.array([1.0, 2.0, 3.0])
    runs = []
    for _ in range(3):
        runs.append(len(compiled))
        np.testing.assert_allclose(transform(make(data)[0], X), right(data, X))
    assert len(compiled) == runs[-1] > runs[0]


def test_callables_whose_variables_change_one_by_one():
    """They shared compiled code while they captured the same."""
    made = [make(2.0) for _ in range(3)]
    derivatives = [yota.gradient(f) for f, _ in made]
    for each in derivatives * 3:
        np.testing.assert_allclose(each(X), 6 * X**2)
    made[0][1](5.0)
    made[2][1](7.0)
    for _ in range(3):
        for each, k in zip(derivatives, (5.0, 2.0, 7.0), strict=True):
            np.testing.assert_allclose(each(X), 3 * k * X**2)


def test_options_are_told_apart():
    def f(x, y):
        return np.sum(x * x * y)

    for _ in range(2):
        np.testing.assert_allclose(yota.gradient(f)(X, V), 2 * X * V)
        np.testing.assert_allclose(yota.gradient(f, "y")(X, V), X**2)
        assert isinstance(yota.gradient(f, (0, 1))(X, V), tuple)
        assert yota.hessian(f)(X, V).shape == (3, 3)
        assert len(yota.hessian(f, with_value=True)(X, V)) == 3
        np.testing.assert_allclose(yota.gradient(f, strict=True)(X, V), 2 * X * V)
        np.testing.assert_allclose(yota.batch(f, over=0)(np.stack([X, X]), V), np.sum(X * X * V) * np.ones(2))
        np.testing.assert_allclose(yota.batch(f, over="y")(X, np.stack([V, V])), np.sum(X * X * V) * np.ones(2))


def test_what_is_compiled_once_and_for_all_stays_so():
    f, become = make(2.0)
    both, dloss = yota.value_and_grad(f), yota.simplegrad(f, X)
    become(3.0)
    np.testing.assert_allclose(both(X)[1], 9 * X**2)
    with pytest.raises(yota.errors.StaleTapeError, match="Call simplegrad again"):
        dloss(X)


def test_large_arrays_are_not_kept_alive(monkeypatch):
    monkeypatch.setattr(calling, "MOST_BYTES", 1 << 20)
    kept = []
    for _ in range(8):
        data = np.ones(50_000)
        kept.append(weakref.ref(data))
        f = lambda x, data=data: np.sum(x) * np.sum(data)
        assert yota.gradient(f)(X)[0] == 50_000.0
        del data, f
    gc.collect()
    assert sum(each() is not None for each in kept) <= 4


def test_a_call_of_a_known_function_looks_at_the_memory_of_none(monkeypatch):
    data = np.ones(50)
    f, other = (lambda x: np.sum(x) * np.sum(data)), (lambda x: np.sum(x) + np.sum(data))
    yota.grad(other, X)
    yota.grad(f, X)
    monkeypatch.setattr(State, "owned", lambda self: pytest.fail("the arrays of a function are counted again"))
    assert yota.grad(f, X)[1][0].tolist() == [50.0] * 3


def test_functions_are_kept_up_to_a_number():
    kept = []
    for number in range(2 * calling._known.most):
        names = {}
        exec(f"def f(x): return x * {number}.0", names)
        kept.append(weakref.ref(names["f"]))
        yota.gradient(names["f"])
    del names
    gc.collect()
    assert sum(each() is not None for each in kept) <= calling._known.most


def test_functions_of_libraries_that_one_decorator_made_are_others():
    x = np.array([0.3, 1.1, 0.8, 2.0])
    for function in (scipy.stats.gmean, scipy.stats.hmean, scipy.stats.tmean):
        assert yota.grad(function, x)[0] == pytest.approx(function(x), rel=1e-14)
