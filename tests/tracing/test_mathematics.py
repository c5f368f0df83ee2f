"""The modules math and cmath: every function that has a derivative, against central differences of the plain one."""

from __future__ import annotations

import cmath
import math
import sys

import numpy as np
import pytest
import scipy.special

import yota
from yota import errors

X = np.array([0.6, 0.3])

REAL = {
    **{
        name: lambda x, name=name: getattr(math, name)(x[0])
        for name in "gamma lgamma erf erfc sqrt exp sin atanh fabs".split()
    },
    "product from a traced start": lambda x: math.prod([2.0, 3.0], start=x[0]),
    "product with a start": lambda x: math.prod([x[0], x[1]], start=2),
    "atan2": lambda x: math.atan2(x[0], x[1]),
}
COMPLEX = {
    **{
        name: lambda z, name=name: getattr(cmath, name)(z)
        for name in "exp log log10 sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()
    },
    "log to a base": lambda z: cmath.log(z, 3 + z),
    "phase": lambda z: cmath.phase(z) * (1 + 2j),
    "polar": lambda z: cmath.polar(z)[0] + 1j * cmath.polar(z)[1],
    "rect": lambda z: cmath.rect(z.real, z.imag),
}


@pytest.mark.parametrize("name", REAL)
def test_functions_of_math(name):
    f = REAL[name]
    value, g = yota.grad(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    assert yota.gradcheck(f, X) and g[0][0]
    assert math.isclose(yota.grad(lambda v: f(np.array([v, 0.3])), 0.6)[1][0], g[0][0])


@pytest.mark.parametrize(
    "f, x",
    [
        (lambda x: abs(x**-1.5), -2.0),
        (lambda x: ((-2) ** x).imag, 1.5),
        (lambda x: abs(x**x), -1.5),
        (lambda x: (x**0.5).imag + (x**2.0).real, -2.0),
    ],
)
@pytest.mark.parametrize("target", ["numpy", "c"])
def test_powers_of_negative_numbers_of_pythons_are_complex(f, x, target):
    value, slope = yota.value_and_grad(f, target=target)(x)
    assert math.isclose(value, f(x), rel_tol=1e-14)
    assert math.isclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel_tol=1e-8)


@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_cmath(name):
    def f(x):
        found = COMPLEX[name](x[0] + 1j * x[1])
        return found.real + 0.7 * found.imag

    value, g = yota.grad(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-14)
    assert yota.gradcheck(f, X) and np.any(g[0])


def test_cmath_of_real_numbers_is_complex():
    root = yota.grad(lambda x: cmath.sqrt(x).imag, -4.0)
    assert root[0] == 2.0 and root[1][0] == -0.25


def test_what_has_no_form_is_refused_with_a_cure():
    with pytest.raises(errors.TracingError, match=r"math\.nextafter of a traced value.*Do it"):
        yota.grad(lambda x: math.nextafter(x[0], x[1]), X)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(errors.TracingError, match=r"math\.erf.*scipy\.special\.erf\. Install SciPy"):
        yota.trace(lambda x: math.erf(x[0]), X)


def test_results_are_numbers_of_pythons():
    single = np.array([0.5, 0.25], np.float32)
    for f in (
        lambda x: single * math.sin(x[0]),
        lambda x: single * math.log(x[0], 3),
        lambda x: single * math.hypot(x[0], x[1], 2.0),
        lambda x: single * math.hypot(-x[0]),
        lambda x: single * math.modf(x[0] * 3)[0],
        lambda x: single * math.erf(x[0]),
        lambda x: single * math.fsum(x),
        lambda x: single[:1] * math.sqrt(x[0]),
    ):
        for x in (X, single):
            value, tape = yota.trace(f, x)
            for found in (value, yota.play(tape, x), yota.compile(tape)(x)):
                assert found.dtype == f(x).dtype
                np.testing.assert_allclose(found, f(x), rtol=1e-6 if found.dtype == np.float32 else 1e-14)
    assert type(yota.grad(lambda x: math.sin(x), 0.5)[0]) is float
    assert yota.trace(lambda x: math.sqrt(x), 0.25)[1].types[2].weak


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("how", ["logaddexp", "reduce", "logsumexp"])
def test_paths_of_probability_zero_add_nothing_to_a_gradient(how, target):
    add = {
        "logaddexp": np.logaddexp,
        "reduce": lambda a, b: np.logaddexp.reduce(np.array([a, b])),
        "logsumexp": lambda a, b: scipy.special.logsumexp(np.array([a, b])),
    }[how]

    def paths(x):
        """The log of the elementary symmetric polynomial of degree 2 of exp(x)."""
        found = np.array([0.0, -np.inf, -np.inf])
        for each in x:
            found = np.array([found[0], add(found[1], found[0] + each), add(found[2], found[1] + each)])
        return found[2]

    x = np.array([0.5, -1.0, 2.0, 0.25])
    terms = np.exp(x[:, None] + x) * (1 - np.eye(4))
    value, gradient = yota.value_and_grad(paths, target=target)(x)
    np.testing.assert_allclose(value, np.log(terms.sum() / 2), rtol=1e-14)
    np.testing.assert_allclose(gradient, 2 * terms.sum(axis=1) / terms.sum(), rtol=1e-13)
