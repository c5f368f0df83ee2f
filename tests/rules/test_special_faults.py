"""Where SciPy's own functions are wrong or end, the partials are right all the same, or zero where nothing moves."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import yota
from yota.rules.registry import registry


def partial(function, *point, by=0):
    """The derivative of a function of SciPy's, by generated code."""
    slope = yota.gradient(lambda x: function(*point[:by], x, *point[by + 1 :]))
    return float(slope(point[by]))


@pytest.mark.parametrize("x", [0.02, 0.3, 0.83, 0.9, 0.99, 1.0, 1.01, 1.5, 4.0])
def test_kolmogorov_where_scipy_stops_its_series_too_soon(x):
    with mp.workdps(40):
        terms = [(-1) ** (k - 1) * k * k * mp.exp(-2 * (k * mp.mpf(x)) ** 2) for k in range(1, int(12 / x) + 2)]
        exact = -8 * x * mp.fsum(terms)
    found = partial(scipy.special.kolmogorov, x)
    assert abs(found - exact) <= 1e-14 * abs(exact) + 1e-30
    if x > 0.1:
        slope = partial(scipy.special.kolmogi, scipy.special.kolmogorov(x))
        assert slope == pytest.approx(float(1 / exact), rel=1e-11)


def test_kolmogorov_twice():
    (bend,) = yota.hessian(lambda x: scipy.special.kolmogorov(x[0]))(np.array([0.9])).ravel()
    with mp.workdps(30):
        exact = mp.diff(lambda x: 2 * mp.nsum(lambda k: (-1) ** (k - 1) * mp.exp(-2 * (k * x) ** 2), [1, 30]), 0.9, 2)
    assert bend == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "c", "x"),
    [
        (0.4826023672621782, 3.482602367203743, 9.823864875445826, -4.055446353045714),
        (0.28046962715297913, 1.2804696271540268, 2.3583094737980552, -145.67898695315435),
        (3.6429093924080997, 4.6429093924386455, 0.41873266549704263, -21.38098356624597),
        (1.5, 2.5, 4.0, -7.0),
        (1.5, 2.2, 4.0, -7.0),
        (1.5, 2.2, 4.0, 0.7),
    ],
)
def test_hyp2f1_where_scipy_divides_by_nearly_nothing(a, b, c, x):
    with mp.workdps(40):
        exact = float(mp.mpf(a) * b / c * mp.hyp2f1(mp.mpf(a) + 1, mp.mpf(b) + 1, mp.mpf(c) + 1, x))
    assert partial(scipy.special.hyp2f1, a, b, c, x, by=3) == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize(("a", "x"), [(2.4e-4, 3.5e-9), (4.9e-2, 2e-9), (1.1e-3, 1.6e-8)])
def test_incomplete_gamma_for_small_orders(a, x):
    with mp.workdps(60):
        exact = float(mp.diff(lambda s: mp.gammainc(s, 0, x, regularized=True), a))
    assert partial(scipy.special.gammainc, a, x) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize(("a", "b", "x"), [(3e-3, 6.2e-3, 2.5e-7), (1.8e-2, 0.69, 3e-7), (9.4e-3, 1.35e-2, 8.9e-6)])
def test_incomplete_beta_for_small_shapes(a, b, x):
    with mp.workdps(100):
        exact = float(mp.diff(lambda s: mp.betainc(s, b, 0, x, regularized=True), a))
    assert partial(scipy.special.betainc, a, b, x) == pytest.approx(exact, rel=1e-12)


def test_inv_boxcox1p_where_it_rounds_to_minus_one():
    z, p = -17.4, -3.4e-5
    with mp.workdps(40):
        exact = float(mp.exp(mp.log1p(mp.mpf(p) * z) * (1 - mp.mpf(p)) / p))
    assert partial(scipy.special.inv_boxcox1p, z, p) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "point"),
    [
        ("stdtridf", (0.0043, -1.05)),
        ("betainccinv", (2.6e-4, 26.4, 0.99998)),
        ("stdtrit", (2.6e-4, 0.97)),
    ],
)
def test_where_scipy_gives_a_constant_nothing_moves(name, point):
    function = getattr(scipy.special, name)
    assert [partial(function, *point, by=position) for position in range(len(point))] == [0.0] * len(point)


def test_faults_of_scipy_are_said_in_the_rules():
    for name in (
        "hyp2f1",
        "itairy",
        "itstruve0",
        "it2struve0",
        "itmodstruve0",
        "cotdg",
        "tklmbda",
        "modfresnelp",
        "pbvv",
    ):
        assert "SciPy" in registry().rules(name)[0].doc, name
