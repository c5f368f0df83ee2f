"""SciPy's special functions of complex arguments, and Carlson's integrals, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sc

import yota
from yota.errors import TracingError
from yota.ir.integrals import carlson, hurwitz

POINTS = np.array([1.2 + 0.7j, 3 - 2j, 0.4 + 0.1j])


def _li(z):
    return mp.polylog(2, 1 - z)


@pytest.mark.parametrize(
    ("function", "known"),
    [
        (sc.psi, mp.digamma),
        (sc.spence, _li),
        (lambda z: sc.jv(1.5, z), lambda z: mp.besselj(1.5, z)),
        (lambda z: sc.yv(0.3, z), lambda z: mp.bessely(0.3, z)),
        (lambda z: sc.iv(2, z), lambda z: mp.besseli(2, z)),
        (lambda z: sc.kv(1.5, z), lambda z: mp.besselk(1.5, z)),
        (lambda z: sc.kve(1.5, z), lambda z: mp.besselk(1.5, z) * mp.exp(z)),
        (lambda z: sc.elliprd(z, 1 + 2j, 0.5), lambda z: mp.elliprd(z, 1 + 2j, 0.5)),
        (lambda z: sc.elliprd(1.0, 2.0, z), lambda z: mp.elliprd(1, 2, z)),
        (lambda z: sc.elliprj(z, 1.0, 2.0, 1 + 1j), lambda z: mp.elliprj(z, 1, 2, 1 + 1j)),
        (lambda z: sc.elliprj(1.0, 0.0, 2.0, z), lambda z: mp.elliprj(1, 0, 2, z)),
    ],
)
def test_first_and_second_derivatives_are_those_of_mpmath(function, known):
    for z in POINTS:
        first, second = (complex(mp.diff(known, complex(z), order)) for order in (1, 2))
        slope = yota.gradient(lambda z: np.real(function(z)))(z)
        np.testing.assert_allclose(np.conj(slope), first, rtol=1e-10)
        along = yota.hvp(lambda t, z=z: np.real(function(z + t)))(0.0, 1.0)
        np.testing.assert_allclose(along, second.real, rtol=1e-8)


@pytest.mark.parametrize(
    ("name", "known"), [("yv", mp.bessely), ("kv", mp.besselk), ("kve", lambda v, z: mp.besselk(v, z) * mp.exp(z))]
)
def test_slopes_by_the_order_at_complex_arguments(name, known):
    for v, z in zip((1.5, 0.3, 2.0), POINTS, strict=True):
        found = yota.gradient(lambda v, z=z: np.real(getattr(sc, name)(v, z)))(v)
        np.testing.assert_allclose(found, float(mp.re(mp.diff(lambda s, z=z: known(s, complex(z)), v))), rtol=1e-10)


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_scaled_functions_depend_on_both_parts(name):
    known = {"jve": mp.besselj, "yve": mp.bessely, "ive": mp.besseli}[name]

    def scaled(x, y):
        return mp.re(known(1, mp.mpc(x, y)) * mp.exp(-abs(x if name == "ive" else y)))

    for z in POINTS:
        found = yota.gradient(lambda z: np.real(getattr(sc, name)(1, z)))(z)
        by = [float(mp.diff(scaled, (z.real, z.imag), order)) for order in ((1, 0), (0, 1))]
        np.testing.assert_allclose([found.real, found.imag], by, rtol=1e-10)


def test_scaled_functions_far_away_are_refused():
    with pytest.raises(TracingError, match="hankel1e"):
        yota.gradient(lambda z: np.real(sc.jve(1, z)))(1 + 900j)


def test_incomplete_elliptic_integrals_have_a_second_derivative_by_the_parameter():
    for function, known in ((sc.ellipkinc, mp.ellipf), (sc.ellipeinc, mp.ellipe)):
        for p, m in ((0.7, 0.3), (4.0, 0.6), (-2.0, -1.5), (1.0, 0.0)):
            found = yota.hvp(lambda m, f=function, p=p: f(p, m))(m, 1.0)
            assert found == pytest.approx(float(mp.diff(lambda s, f=known, p=p: f(p, s), m, 2)), rel=1e-9)


def test_carlsons_integrals_hold_where_arguments_meet_and_are_of_any_size():
    assert carlson(2.0, 2.0, 2.0, 2.0, 1, 0, 2, 1) == pytest.approx(2.0**-4.5 / 4.5, rel=1e-14)
    sizes = 10.0 ** np.arange(-80, 81, 20)
    np.testing.assert_allclose(1.5 * carlson(sizes, 1.0, 2.0, 1.0, 0, 0, 1, 0), sc.elliprd(sizes, 1.0, 2.0), rtol=1e-13)
    np.testing.assert_allclose(1.5 * carlson(1.0, 1.0, sizes, 1.0, 0, 0, 1, 0), sc.elliprd(1.0, 1.0, sizes), rtol=1e-13)
    assert carlson(0.0, 0.0, 1.0, 1.0, 0, 0, 0, 0) == np.inf
    assert np.isnan(carlson(-1.0, 2.0, 3.0, 1.0, 0, 0, 0, 1))
    assert carlson(np.ones((0, 2)), 1.0, 1.0, 1.0, 0, 0, 0, 0).shape == (0, 2)


def test_hurwitzs_zeta_function_is_that_of_mpmath():
    for s in (2, 3, 7):
        for z in (0.3 + 4j, -7.5 + 0.2j, 25 - 30j):
            np.testing.assert_allclose(hurwitz(s, z), complex(mp.zeta(s, z)), rtol=1e-12)
    np.testing.assert_allclose(hurwitz(2, np.array([0.5, 40.0])), sc.zeta(2, np.array([0.5, 40.0])), rtol=1e-14)
