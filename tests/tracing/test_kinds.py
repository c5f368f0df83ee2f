"""Code that asks for the type of a traced value, and caches that would keep one."""

from __future__ import annotations

import builtins
import collections.abc
import functools
import types

import numpy as np
import pytest

import yota
from tests.tracing.checking import without_source
from yota import errors

X = np.array([0.3, 0.7, 1.1])
TABLE = {np.ndarray: 2.0, np.float64: 3.0, float: 4.0}


class Model:
    def __init__(self, w):
        self.w = w

    def doubled(self):
        return type(self)(self.w * 2)

    def total(self):
        return np.sum(self.w) if type(self.w) is np.ndarray else self.w

    @functools.lru_cache  # noqa: B019
    def cached(self, value):
        return value * value


def _kind(value):
    return TABLE[type(value)]


def _made(x):
    made = type("Made", (Model,), {"more": 1.0})
    return made(x).total() * made.more


ASKS = {
    "scalar": lambda x: x[0] * (2 if type(x[0]) is np.float64 else 3),
    "array": lambda x: np.sum(x) * (2 if type(x) == np.ndarray else 3),  # noqa: E721
    "number": lambda x: x[0].item() * (2 if type(x[0].item()) is float else 3),
    "table": lambda x: x[0] * _kind(x[0]) + np.sum(x) * _kind(x),
    "several": lambda x: x[0] * (2 if type(x) in (list, np.ndarray) else 3),
    "object": lambda x: Model(x).doubled().total(),
    "class made": _made,
    "name": lambda x: x[0] * len(type(x).__name__),
    "of plain": lambda x: x[0] * (2 if int is int and type(TABLE) is dict else 3),
    "of a class": lambda x: x[0] * (2 if isinstance(Model, type) and issubclass(type, type) else 3),
    "equal to type": lambda x: x[0] * (2 if type(Model) == type else 3),  # noqa: E721
    "mapped": lambda x: x[0] * (2 if list(map(type, x))[1] is np.float64 else 3),
}


@pytest.mark.parametrize("name", ASKS)
def test_types_are_those_of_the_values(name):
    f = ASKS[name]
    fg = yota.value_and_grad(f)
    for x in (X, X + 1):
        assert np.isclose(fg(x)[0], f(x))
    assert yota.gradcheck(f, X)
    assert "type" not in globals() and type is builtins.type


def test_an_exec_namespace_and_nested_traces():
    names = {"np": np, "yota": yota}
    code = "def f(x):\n    g = yota.gradient(lambda y: np.sum(y ** 2) if type(y) is np.ndarray else y)(x)\n"
    exec(code + "    return np.sum(g * x) if type(g) is np.ndarray else 0.0", names)
    np.testing.assert_allclose(yota.grad(names["f"], X)[1][0], 4 * X)
    assert "type" not in names


def test_a_name_of_the_users_own_is_left_alone(monkeypatch):
    module = types.ModuleType("own")
    vars(module).update(np=np, type=lambda x: "mine")
    exec("def f(x):\n    return np.sum(x) if type(x) == 'mine' else 0.0", vars(module))
    np.testing.assert_allclose(yota.grad(module.f, X)[1][0], 1.0)


@functools.cache
def cached(value):
    return value * value


def test_caches_do_not_see_traced_values():
    cached.cache_clear()
    cached(X[0])
    f = lambda x: cached(x[0]) + 3 * cached(value=x[1])
    np.testing.assert_allclose(yota.gradient(f)(X), [2 * X[0], 6 * X[1], 0])
    model = Model(X)
    for f in (lambda x: cached(x[0]), lambda x: model.cached(x[0]), lambda x: cached(value=x[1])):
        assert yota.gradcheck(f, X) and np.any(yota.grad(f, X)[1][0])
    assert type(cached(X[0])) is np.float64 and cached(X[0]) == X[0] * X[0]

    def inside(x):
        remembered = functools.cache(lambda value: value * value)
        return remembered(x[0])

    assert yota.gradcheck(inside, X)
    with pytest.raises(errors.TracingError, match="__wrapped__"):
        yota.grad(
            without_source("lambda x: [c := functools.cache(lambda v: v * v), c(x[0])][1]", functools=functools), X
        )
    np.testing.assert_allclose(yota.grad(lambda x: cached.__wrapped__(x[0]) * cached(3.0), X)[1][0], [18 * X[0], 0, 0])


MEMO = {}


def test_a_number_that_was_kept_before_is_not_taken_for_the_derivative():
    def remembered(x):
        if x not in MEMO:
            MEMO[x] = x * x
        return MEMO[x]

    plain = remembered(0.5)
    with pytest.raises(errors.TracingError, match="lose its derivative"):
        yota.grad(remembered, 0.5)
    MEMO.clear()
    assert plain == 0.25
    assert yota.grad(lambda x: {x: 2 * x}[x], 0.7)[1][0] == 2.0


class Direction:
    """A class with operators, of which NumPy knows nothing."""

    def __init__(self, *parts):
        self.parts = parts

    def __rmul__(self, factor):
        return Direction(*(factor * part for part in self.parts))

    def __radd__(self, other):
        return sum(self.parts) + other

    def __matmul__(self, other):
        return sum(a * b for a, b in zip(self.parts, other.parts, strict=True))


def test_operators_of_the_users_classes_take_traced_numbers():
    def f(x):
        a, b = Direction(x[0], x[1]), Direction(x[1], 2.0)
        return 2.0 * (a @ b) * a @ b + (x[0] + b) + (x[0] == b)

    x = np.array([0.3, 0.8])
    assert np.isclose(yota.grad(f, x)[0], f(x), rtol=1e-14) and yota.gradcheck(f, x)
    with pytest.raises(errors.TracingError, match=r"test_kinds.py:\d+.*a Direction is used"):
        yota.grad(lambda x: np.sum(x * Direction(1.0)), x)


def test_numbers_are_not_iterable_and_arrays_not_hashable():
    def total(v):
        return sum(map(total, v)) if isinstance(v, collections.abc.Iterable) else v**2

    def f(x):
        return total([x[0], [x, x[1:]]]) * (2 if isinstance(x, collections.abc.Hashable) else 3)

    for form in (f, yota.interpreted(f)):
        value, gradient = yota.value_and_grad(form)(X)
        assert np.isclose(value, f(X), rtol=1e-14)
        np.testing.assert_allclose(gradient, 6 * X * [2, 2, 2], rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda z: z.astype(bool),
        lambda z: np.array(z, dtype=bool),
        lambda z: np.where(np.asarray(z, bool), np.abs(z), 2.0),
        lambda z: np.abs(z)[z.astype(bool)],
    ],
)
def test_complex_numbers_are_true_by_either_part(f):
    z = np.array([2j, 1.0, 0.0, -3j])
    np.testing.assert_array_equal(yota.compile(yota.trace(f, z)[1])(z), f(z))


SINGLE = np.array([-1.0, 0.2, 3.0], np.float32)
HIGH, LOW = np.float32(3.0), np.float32(1.5)
RESULTS = {
    "select": lambda x: np.select([x > 0, x > -2], [x, 2]),
    "select a default": lambda x: np.select([x > 0], [x], 1.5),
    "piecewise": lambda x: np.piecewise(x, [x > 0], [3, np.sin]),
    "where of constants": lambda x: np.where(x > 0, HIGH, LOW) / 3,
    "where of a truth": lambda x: np.where(x[0] > 0, HIGH, LOW),
    "linspace": lambda x: np.linspace(x, 2, 3),
    "power": lambda x: x ** np.float64(2),
    "histogram": lambda x: np.histogram([1, 2, 3], bins=2, weights=x)[0],
    "pad": lambda x: np.pad(x[0], 1),
    "norm": lambda x: np.linalg.norm(x, 3),
    "cond": lambda x: np.linalg.cond(np.outer(x, x) + np.eye(3, dtype=np.float32)),
    "nanvar": lambda x: np.nanvar(np.where(x > 0, x, np.float32(np.nan))),
    "modf": lambda x: np.modf(x[1, ...])[0],
    "reduce": lambda x: np.logaddexp.reduce(np.tile(x, 9)),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_numpys_class_and_dtype(name, strict):
    kinds = []

    def noted(x):
        result = RESULTS[name](x)
        kinds.append(type(result))
        return np.sum(result), result

    wanted = noted(SINGLE)[1]
    found = yota.value_and_grad(noted, has_aux=True, strict=strict)(SINGLE)[0][1]
    assert set(kinds) == {type(wanted)}
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
