"""Calls that the user got wrong: an error that says where, what was found, and what to write."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota
from yota.errors import ArgumentError, TracingError, YotaError

X = np.array([1.0, 2.0, 3.0])


def product(a: Any, b: Any) -> Any:
    return np.sum(a * b)


def scaled(x: Any, k: float = 3.0) -> Any:
    return x * k


async def awaiting(x: Any) -> Any:
    return x


def yielding(x: Any) -> Any:
    yield x


async def both(x: Any) -> Any:
    yield x


class Masked(np.ndarray):
    """Multiplies in a way of its own."""

    def __mul__(self, other: Any) -> Any:
        return 5 * np.asarray(self) * np.asarray(other)


class Noted(np.ndarray):
    """An array with a note, which computes as any other."""

    def __new__(cls, values: Any, note: str) -> Noted:
        made = np.asarray(values).view(cls)
        made.note = note
        return made

    def __array_finalize__(self, parent: Any) -> None:
        self.note = getattr(parent, "note", "")


MASKED = X.view(Masked)
MATRIX = np.ones((2, 2)).view(np.matrix)
HIDDEN = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no function": (lambda: yota.value_and_grad(3), "the first argument is 3, of type int; pass a function"),
    "no function, traced": (lambda: yota.trace(3.5, X), "the first argument is 3.5, of type float"),
    "no function, pulled back": (lambda: yota.vjp(X, X), "the first argument is array.*of type ndarray"),
    "no function, batched": (lambda: yota.batch("f"), "the first argument is 'f', of type str"),
    "no tape": (lambda: yota.play(np.sin, X), "<ufunc 'sin'> is a ufunc, and no tape: value, tape = yota.trace"),
    "no tape, compiled": (lambda: yota.compile(product), "and no tape"),
    "a list of positions": (lambda: yota.value_and_grad(product, wrt=[0, 1]), r"pass a tuple: wrt=\(0, 1\)"),
    "a truth for a position": (lambda: yota.gradient(product, wrt=True), "wrt=True is a bool"),
    "half a position": (lambda: yota.gradient(product, wrt=0.5), "wrt=0.5 is a float"),
    "a tuple in a tuple": (lambda: yota.gradient(product, wrt=(0, (1,))), r"wrt=\(1,\) is a tuple"),
    "an unknown name": (
        lambda: yota.gradient(product, wrt="c")(X, X),
        "wrt='c' is no argument of product; it has a, b",
    ),
    "a missing argument": (
        lambda: yota.gradient(product)(),
        r"wrt=0, the argument 'a' of product is missing; pass it: a=\.\.\.",
    ),
    "a position too far": (lambda: yota.gradient(product, wrt=2)(X, X), "product was called with 2 arguments"),
    "a default": (
        lambda: yota.gradient(scaled, wrt="k")(2.0),
        r"wrt='k' of scaled was left to its default, .* pass it: k=\.\.\.",
    ),
    "an unknown target": (lambda: yota.value_and_grad(product, target="C"), "target='C' is not known"),
    "strict on a GPU": (lambda: yota.gradient(product, target="cuda", strict=True), "strict=True is not available for"),
    "a seed of another shape": (
        lambda: yota.grad(scaled, X, seed=np.ones((3, 1))),
        r"the seed has shape \(3, 1\), but scaled returns shape \(3,\)",
    ),
    "a seed that is text": (lambda: yota.grad(scaled, X, seed="a"), "argument seed has dtype <U1"),
    "an async function": (lambda: yota.grad(awaiting, 1.0), "awaiting is an async function"),
    "a generator function": (lambda: yota.grad(yielding, 1.0), "yielding returned a generator"),
    "an async generator": (lambda: yota.grad(both, 1.0), "both returned a generator"),
    "no return": (lambda: yota.grad(lambda x: None, 1.0), r"returned nothing \(None\)"),
    "a truth as an argument": (lambda: yota.grad(scaled, True), "is the bool True, which is static; pass 1.0"),
    "a generator as an argument": (
        lambda: yota.grad(lambda x, parts: x * sum(parts), 1.0, (each for each in (1, 2))),
        "argument parts is a generator, which can be iterated only once; pass a list",
    ),
    "a zip": (lambda: yota.grad(lambda x, parts: x, 1.0, zip(X, X, strict=True)), "argument parts is a zip"),
    "masked": (lambda: yota.grad(np.sum, HIDDEN), "argument a is a numpy.ma.MaskedArray, which computes in a way"),
    "a matrix": (lambda: yota.grad(np.sum, MATRIX), "argument a is a numpy.matrix"),
    "a subclass": (lambda: yota.grad(product, MASKED, X), r"argument a is a .*Masked, .* \(__mul__\)"),
    "a subclass from outside": (lambda: yota.grad(lambda x: np.sum(x * MASKED), X), "MASKED, an array from outside"),
    "masked from outside": (lambda: yota.grad(lambda x: np.sum(x * HIDDEN), X), "HIDDEN, an array from outside"),
    "a matrix from outside": (lambda: yota.grad(lambda x: np.sum(x[:2] * MATRIX), X), "MATRIX, an array from outside"),
    "no tuple of arguments": (lambda: yota.jvp(np.sin, X, X), r"are a ndarray; give a tuple: jvp\(f, \(x,\), \(v,\)\)"),
    "a direction of a dict": (
        lambda: yota.jvp(lambda d: d["w"], ({"w": X},), ({"w": X},)),
        "argument 1 is a dict; a direction is one of an array",
    ),
    "points of no argument": (lambda: yota.batch(product, over="c")(X, X), "over= names none; the arguments are: a, b"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_usage(name: str) -> None:
    call, message = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(YotaError, match=message):
            call()


def test_keywords_that_the_function_does_not_have() -> None:
    with pytest.raises(TypeError, match=re.escape("scaled() got an unexpected keyword argument 'y'")):
        yota.grad(scaled, 1.0, y=2.0)


def test_names_of_keywords_of_any_name() -> None:
    def polynomial(**terms: Any) -> Any:
        return terms["x"] * terms["y"] ** 2

    assert yota.value_and_grad(polynomial, wrt="y")(x=2.0, y=3.0) == (18.0, 12.0)
    assert yota.gradient(lambda x, *, k: x * k, wrt="k")(3.0, k=2.0) == 3.0
    assert yota.gradient(scaled, wrt=np.int64(1))(2.0, 5.0) == 2.0
    assert yota.gradient(functools.partial(scaled, k=5.0))(2.0) == 5.0


def test_a_subclass_that_computes_as_arrays_do() -> None:
    value, gradient = yota.value_and_grad(product)(Noted(X, "measured"), X)
    assert value == 14.0
    assert np.array_equal(gradient, X)


def test_a_pullback_stays_at_its_point() -> None:
    point = {"w": X.copy()}
    value, pullback = yota.vjp(lambda p, n: p["w"] ** n, point, 2)
    point["w"] += 10.0
    by_point, by_exponent = pullback(np.ones(3))
    assert np.array_equal(by_point["w",], 2 * X)
    assert by_exponent is None
    assert np.array_equal(value, X**2)


def test_a_pullback_of_the_argument_itself() -> None:
    value, pullback = yota.vjp(lambda x: x, X)
    assert value is X
    assert np.array_equal(pullback(np.ones(3))[0], np.ones(3))


def test_functions_of_numpys_have_no_line_of_the_users() -> None:
    _, tape = yota.trace(np.linalg.norm, X)
    assert {op.location for op in tape.ops} == {None}
    fit = yota.value_and_grad(max, dynamic=False)
    assert fit(X)[0] == 3.0
    with pytest.raises(yota.errors.StaleTapeError, match=r"^bool\(\) of a traced value was") as caught:
        fit(X[::-1])
    assert "dynamic=True" in str(caught.value)


def test_arrays_of_many_axes() -> None:
    shape = (1,) * 20
    value, gradient = yota.value_and_grad(lambda x: np.sum(x * x))(np.full(shape, 3.0))
    assert value == 9.0
    assert np.array_equal(gradient, np.full(shape, 6.0))


def test_errors_of_returns_are_errors_of_tracing() -> None:
    with pytest.raises(TracingError):
        yota.trace(awaiting, 1.0)
    with pytest.raises(ArgumentError):
        yota.hessian(0)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_whole_numbers_past_64_bits(target: str) -> None:
    of = yota.value_and_grad(lambda x, n: np.sum(x * n), target=target)
    assert of(X, 10**30)[0] == np.sum(X * 10**30)
    assert of(2.0, -(10**30)) == (-2e30, -1e30)
    with pytest.raises(OverflowError):
        of(X, 10**400)
