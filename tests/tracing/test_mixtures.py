"""Noncentral distributions, moments and sums of powers that scipy.stats has of its own in scipy.special."""

import mpmath
import numpy as np
import pytest
import scipy.special._ufuncs as own
from scipy import special, stats

import yota

CASES = [
    (own._ncx2_pdf, (3.1, 2.2, 1.7)),
    (own._ncx2_pdf, (300.0, 2.2, 200.0)),
    (special.chndtr, (3.1, 2.2, 1.7)),
    (own._ncx2_sf, (3.1, 2.2, 1.7)),
    (own._ncx2_isf, (0.3, 2.2, 1.7)),
    (special.chndtrix, (0.3, 2.2, 1.7)),
    (own._ncf_pdf, (1.1, 3.2, 5.3, 1.7)),
    (special.ncfdtr, (3.2, 5.3, 1.7, 1.1)),
    (own._ncf_isf, (0.4, 3.2, 5.3, 1.7)),
    (special.ncfdtri, (3.2, 5.3, 1.7, 0.4)),
    (own._nct_pdf, (1.1, 3.2, 0.7)),
    (own._nct_pdf, (-1.1, 3.2, 0.7)),
    (special.nctdtr, (3.2, 0.7, -0.4)),
    (own._nct_isf, (0.4, 3.2, 0.7)),
    (special.nctdtrit, (3.2, 0.7, 0.4)),
    *((getattr(own, f"_nct_{name}"), (5.2, 0.7)) for name in ("mean", "variance", "skewness", "kurtosis_excess")),
    *((getattr(own, f"_ncf_{name}"), (5.2, 9.7, 0.6)) for name in ("mean", "variance", "skewness", "kurtosis_excess")),
    *((getattr(own, f"_nbinom_{name}"), (5.2, 0.7)) for name in ("mean", "variance", "skewness", "kurtosis_excess")),
    (own._nbinom_cdf, (3.0, 5.2, 0.7)),
    (own._beta_ppf, (0.3, 5.2, 0.7)),
    (own._cauchy_isf, (0.3, 5.2, 0.7)),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_by_all_parameters(number):
    function, place = CASES[number]
    found, gradient = yota.grad(lambda *place: function(*place), *place, dynamic=True)
    assert found == pytest.approx(function(*place), rel=1e-12)
    for at, slope in enumerate(gradient):
        if function is own._nbinom_cdf and not at:
            continue  # the count is rounded down
        step = 1e-3 * place[at]

        def along(move, at=at):
            return function(*place[:at], place[at] + move, *place[at + 1 :])

        assert slope == pytest.approx(
            (8 * (along(step) - along(-step)) - along(2 * step) + along(-2 * step)) / (12 * step), rel=1e-7
        )


def test_the_zeta_function_of_complex_numbers():
    both = yota.value_and_grad(lambda p: np.abs(special.zeta(p[0] + 1j * p[1])))
    for s in (2.5 + 0.5j, 0.5 + 14j, -2 + 30j, 0.5 + 100j):
        found, gradient = both(np.array([s.real, s.imag]))
        exact, slope = complex(mpmath.zeta(s)), complex(mpmath.zeta(s, derivative=1))
        assert found == pytest.approx(abs(exact), rel=1e-12)
        expected = np.array([1, 1j]) * slope * np.conj(exact) / abs(exact)
        np.testing.assert_allclose(gradient, expected.real, atol=1e-11 * abs(slope))
    with pytest.raises(yota.errors.TracingError, match="an imaginary part above 184"):
        both(np.array([0.5, 500.0]))


def test_the_zeta_function_by_its_exponent():
    for s, q in ((2.3, 1.4), (1.2, 1.0), (9.0, 0.3)):
        found, gradient = yota.grad(special.zeta, s, q)
        assert found == pytest.approx(float(mpmath.zeta(s, q)), rel=1e-14)
        assert gradient == pytest.approx([float(mpmath.zeta(s, q, 1)), -s * float(mpmath.zeta(s + 1, q))], rel=1e-12)


def test_sums_of_powers():
    def total(a):
        return own._normalized_gen_harmonic(2, 5, 7, a) + own._gen_harmonic(7, a)

    def exact(a):
        powers = np.arange(1, 8) ** -a
        return np.sum(powers[1:5]) / np.sum(powers) + np.sum(powers)

    (found, gradient), (value, slope) = yota.grad(total, 1.3), yota.grad(exact, 1.3)
    assert (found, *gradient) == pytest.approx((value, *slope), rel=1e-14)


def test_other_parameters_take_the_terms_that_they_need():
    fg = yota.value_and_grad(lambda c: own._ncx2_pdf(3.0, 2.0, c), dynamic=True)
    for c in (1.0, 1.5, 90.0, 1e-3):
        assert fg(c)[0] == pytest.approx(own._ncx2_pdf(3.0, 2.0, c), rel=1e-11)


@pytest.mark.parametrize(
    ("name", "shapes", "methods"),
    [
        ("ncx2", (2.0, 0.0), ("logpdf", "pdf", "cdf", "logsf")),
        ("ncf", (3.0, 4.0, 0.0), ("logpdf", "cdf")),
        ("nct", (3.0, 0.0), ("logpdf", "cdf", "logsf")),
        ("rice", (0.0,), ("logpdf", "cdf", "logsf")),
        ("rice", (9.0,), ("logcdf",)),
    ],
)
def test_derivatives_without_noncentrality_are_those_from_above(name, shapes, methods):
    weights, x = np.array([1.0, 2.0, 0.5]), np.array([0.5, 1.5, 4.0])
    for method in methods:

        def loss(p, method=method):
            found = getattr(getattr(stats, name), method)(x, *[p[k] for k in range(len(shapes))])
            return np.sum(found * weights)

        p, h = np.array(shapes), 1e-4
        # Of fourth order, from one side.
        stencil = np.array([-25, 48, -36, 16, -3]) / (12 * h)
        known = [sum(c * loss(p + k * h * each) for k, c in enumerate(stencil)) for each in np.eye(len(p))]
        np.testing.assert_allclose(yota.gradient(loss)(p), known, rtol=1e-6, atol=1e-7)
        gradient = yota.gradient(loss)
        rows = [sum(c * gradient(p + k * h * each) for k, c in enumerate(stencil)) for each in np.eye(len(p))]
        np.testing.assert_allclose(yota.hessian(loss)(p), rows, rtol=1e-5, atol=1e-6)
