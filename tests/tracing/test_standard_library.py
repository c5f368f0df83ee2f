"""Functions of Python's own library, iteration in NumPy's ways, and what takes plain values alone."""

from __future__ import annotations

import decimal
import fractions
import json
import math
import statistics
import struct

import numpy as np
import pytest

import yota
from yota import errors

X = np.array([0.5, 1.5, 2.5, 4.0])

WORKS = {
    "mean": lambda x: statistics.mean(x),
    "fmean": lambda x: statistics.fmean(x),
    "fmean of list": lambda x: statistics.fmean([x[0], 2.0, x[1]]),
    "harmonic": lambda x: statistics.harmonic_mean(x),
    "geometric": lambda x: statistics.geometric_mean(x),
    "variance": lambda x: statistics.variance(x),
    "variance about": lambda x: statistics.variance(x, 1.0),
    "pvariance": lambda x: statistics.pvariance(x, mu=x[0]),
    "stdev": lambda x: statistics.stdev(x),
    "pstdev": lambda x: statistics.pstdev(x),
    "median": statistics.median,
    "ndenumerate": lambda x: sum(value**2 * place[0] for place, value in np.ndenumerate(x)),
    "ndindex": lambda x: sum(x[place] ** 2 for place in np.ndindex(x.shape)),
    "fromiter": lambda x: np.sum(np.fromiter((value**2 for value in x), float, 3)),
    "fromiter of plain": lambda x: np.sum(np.fromiter(range(4), float) * x),
    "frompyfunc": lambda x: np.sum(np.frompyfunc(lambda value: value * value, 1, 1)(x)),
    "flat": lambda x: _flat(x, 2.0),
    "flat of few": lambda x: _flat(x, [1.0, x[0]]),
}


def _flat(x, values):
    y = (x * x).reshape(2, 2)
    y.T.flat = values
    return np.sum(y * x[:2]) + np.sum(x)


@pytest.mark.parametrize("name", WORKS)
def test_works(name):
    f = WORKS[name]
    value, _ = yota.grad(f, X)
    np.testing.assert_allclose(value, float(f(X)), rtol=1e-13)
    assert yota.gradcheck(f, X)


PLAIN_ALONE = {
    "json": lambda x: (json.dumps(x[0].item()), np.sum(x))[1],
    "nditer": lambda x: sum(np.sum(value) for value in np.nditer(x, ["external_loop"])),
    "fraction": lambda x: float(fractions.Fraction(x[0].item())) * x[1],
    "decimal": lambda x: float(decimal.Decimal(x[0].item())) * x[1],
    "hex": lambda x: float.fromhex(x[0].hex()) * x[1],
    "struct": lambda x: struct.unpack("d", struct.pack("d", x[0]))[0] * x[1],
    "ufunc of the user's": lambda x: np.sum(_square(x)),
}
_square = np.frompyfunc(lambda value: value * value, 1, 1)


@pytest.mark.parametrize("name", PLAIN_ALONE)
def test_what_takes_plain_values_alone_is_refused_with_its_line(name):
    PLAIN_ALONE[name](X)
    with pytest.raises(errors.TracingError, match=r"test_standard_library.py:[\d:]+: `.*`: ") as caught:
        yota.grad(PLAIN_ALONE[name], X)
    assert "Use" in str(caught.value) or "Leave" in str(caught.value) or "Make" in str(caught.value)


def test_an_error_of_the_users_own_is_not_renamed():
    for f, error in (
        (lambda x: json.dumps(x), "ndarray is not JSON"),
        (lambda x: x.nothing, "no attribute 'nothing'"),
        (lambda x: x + None, "unsupported operand"),
    ):
        with pytest.raises((TypeError, AttributeError), match=error) as caught:
            yota.grad(f, X)
        assert not isinstance(caught.value, errors.YotaError)


def test_the_results_are_of_the_functions_types():
    for f in (lambda x: x, lambda x: x * 1.0, lambda x: 1.0 * x):
        value, g = yota.grad(f, 2.0)
        assert type(value) is float and type(g[0]) is float
        value, g = yota.grad(f, np.float32(2.0))
        assert type(value) is np.float32 and type(g[0]) is np.float32
    value, g = yota.grad(np.sin, 2.0)
    assert type(value) is np.float64 and type(g[0]) is float


MATH = {
    "dist": lambda x: math.dist(x[:2], [0.0, 1.0]),
    "modf": lambda x: math.modf(x[2])[0] * 2 + math.modf(x[1])[1],
    "modf of negative": lambda x: math.modf(-x[2])[0],
    "ldexp": lambda x: math.ldexp(x[0], 3),
    "fsum of a generator": lambda x: math.fsum(value * value for value in x) + math.fsum({1: x[0], 2: x[1]}.values()),
    "fsum of a map": lambda x: math.fsum(map(math.exp, x)) * math.prod(value for value in x),
    "mean of a generator": lambda x: statistics.mean(value * value for value in x) + statistics.fmean(iter(x)),
    "remainder": lambda x: math.remainder(x[3], x[1]) + 2 * math.remainder(-x[2], x[1]) + math.remainder(x[0], x[3]),
    "isclose": lambda x: x[0] * (2 if math.isclose(x[0], 0.5, abs_tol=0.2) else 3),
    "isclose of far": lambda x: x[0] * (2 if math.isclose(x[0], x[1], rel_tol=1e-3) else 3),
    "single truth": lambda x: np.sum(x[np.array(True)] ** 2) + np.sum(x[x[0] > 9]),
}


@pytest.mark.parametrize("name", MATH)
def test_functions_of_math(name):
    f = MATH[name]
    fg = yota.value_and_grad(f)
    for x in (X, X * 1.01):
        np.testing.assert_allclose(fg(x)[0], f(x), rtol=1e-13)
        assert yota.value_and_grad(f, strict=True)(x)[0] == f(x)
    assert yota.gradcheck(f, X)


@pytest.mark.parametrize("target", ["numpy", "c"])
def test_compensated_sums(target):
    def f(x):
        return math.fsum([x[0] * 1e16, x[1], -1e16 * x[0], *(x * 1e-3)])

    for x in (X, X * 1.01):
        value, gradient = yota.value_and_grad(f, target=target)(x)
        np.testing.assert_allclose(value, f(x), rtol=4e-16)
        np.testing.assert_allclose(gradient[1:], 1e-3 + np.array([1.0, 0.0, 0.0]), rtol=1e-15)
    assert yota.value_and_grad(lambda x: math.fsum(x) + math.fsum([]))(np.array([np.inf, 1.0]))[0] == np.inf


def test_remainders_of_halves_and_of_numbers_without_end():
    for x, y in (
        (3.0, 2.0),
        (5.0, 2.0),
        (-3.0, 2.0),
        (-5.0, -2.0),
        (4.0, 2.0),
        (1e17, 3.0),
        (2.5, math.inf),
        (-4.0, 2.0),
    ):
        value = yota.trace(math.remainder, x, y)[0]
        assert value == math.remainder(x, y) and math.copysign(1, value) == math.copysign(1, math.remainder(x, y))


def test_assignment_under_a_single_truth():
    def f(x):
        y = x * x
        y[np.array(False)] = 7.0
        y[x[0] < 9] = 2.0 * x
        return np.sum(y)

    np.testing.assert_array_equal(yota.grad(f, X)[1][0], [2.0] * 4)


@pytest.mark.parametrize(
    "function, fault, outside, inside",
    [
        (math.sqrt, ValueError, -2.0, 4.0),
        (math.log, ValueError, -2.0, 4.0),
        (math.log10, ValueError, 0.0, 4.0),
        (math.acos, ValueError, 2.0, 0.5),
        (math.exp, OverflowError, 1e4, 1.0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_numbers_that_math_refuses_are_refused_or_caught(function, fault, outside, inside):
    def caught(x):
        try:
            return function(x)
        except fault:
            return x**2

    with pytest.raises(fault):
        yota.grad(lambda x: function(x), outside)
    fg = yota.value_and_grad(caught)
    step = 1e-6
    for x in (outside, inside, outside + 0.0, inside):
        value, slope = fg(x)
        assert value == pytest.approx(caught(x), rel=1e-14)
        # At the end of a domain the difference is taken inside of what is caught.
        known = 2 * x if x == outside else (function(x + step) - function(x - step)) / (2 * step)
        assert slope == pytest.approx(known, rel=1e-6, abs=1e-12)
