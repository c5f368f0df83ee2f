"""SciPy's functions of numbers inside C, by the loops of their ufuncs."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import yota

CASES: list[tuple[str, Callable[[float], Any], Callable[[mpmath.mpf], Any]]] = [
    ("gamma", scipy.special.gamma, mpmath.gamma),
    ("jv of a fraction", lambda x: scipy.special.jv(1.5, x), lambda x: mpmath.besselj(1.5, x)),
    ("jv of an int", lambda x: scipy.special.jv(3, x), lambda x: mpmath.besselj(3, x)),
    ("beta", lambda x: scipy.special.beta(x, 2.5), lambda x: mpmath.beta(x, 2.5)),
    ("zeta", lambda x: scipy.special.zeta(3, x), lambda x: mpmath.zeta(3, x)),
    ("airy", lambda x: scipy.special.airy(x)[2], mpmath.airybi),
    ("sici", lambda x: math.prod(scipy.special.sici(x)), lambda x: mpmath.si(x) * mpmath.ci(x)),
    ("poch", lambda x: scipy.special.poch(x, 2.5), lambda x: mpmath.rf(x, 2.5)),
]


@pytest.mark.parametrize(("value", "exact"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_function_of_numbers_calls_the_loops_of_scipy(value: Any, exact: Any) -> None:
    derivative = yota.value_and_grad(value, target="c")
    found = derivative(0.4)
    assert float(found[0]) == pytest.approx(float(exact(mpmath.mpf(0.4))), rel=1e-13)
    assert float(found[1]) == pytest.approx(float(mpmath.diff(exact, 0.4)), rel=1e-11)
    assert derivative.source.startswith("/*"), "a kernel of C is the whole function"


def test_an_order_that_selects_another_loop_stays_with_numpy() -> None:
    derivative = yota.value_and_grad(lambda x: scipy.special.expn(2, x), target="c")
    value, slope = derivative(0.4)
    assert "scipy.special.expn(2," in derivative.source
    assert float(value) == pytest.approx(float(mpmath.expint(2, 0.4)), rel=1e-14)
    assert float(slope) == pytest.approx(-float(mpmath.expint(1, 0.4)), rel=1e-13)


def test_a_number_beside_arrays_is_computed_in_the_kernel() -> None:
    gamma = scipy.special.gamma
    derivative = yota.value_and_grad(lambda x, a: gamma(x) * np.sum(gamma(a)), target="c")
    value, slope = derivative(3.0, np.arange(1.0, 5.0))
    assert value == pytest.approx(20.0, rel=1e-14)
    assert slope == pytest.approx(20.0 * (1.5 - float(mpmath.euler)), rel=1e-13)


def test_an_error_that_scipy_raises_is_raised() -> None:
    compiled = yota.value_and_grad(scipy.special.gamma, target="c")
    with np.errstate(all="ignore"):
        compiled(2.0)
        with (
            scipy.special.errstate(all="raise"),
            pytest.raises(scipy.special.SpecialFunctionError, match="singularity"),
        ):
            compiled(-1.0)
        assert np.isnan(compiled(-1.0)[0])


@pytest.mark.parametrize("count", [5, 6, 7, 9])
def test_points_of_any_length_run_on_vectors(count):
    def reach(q):
        angles = np.cumsum(q)
        return (np.sum(np.cos(angles)) - 1) ** 2 + np.sum(np.sin(angles)) ** 2

    points = np.random.default_rng(count).normal(size=(1001, count))
    compiled = yota.batch(yota.value_and_grad(reach), target="c")
    value, gradient = compiled(points)
    angles = np.cumsum(points, axis=1)
    x, y = np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1)
    slopes = 2 * (y[:, None] * np.cos(angles) - (x - 1)[:, None] * np.sin(angles))
    np.testing.assert_allclose(value, (x - 1) ** 2 + y**2, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, np.cumsum(slopes[:, ::-1], axis=1)[:, ::-1], rtol=1e-12, atol=1e-12)
    # GCC uses no vectors for rows of a known length that is no power of 2.
    assert f"row_of({count})" in compiled.source
    assert f"[{count} * i" not in compiled.source
