"""Special functions by their parameters, as series and as inverses, against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sc

import yota


def wright(a, b, x):
    return mp.nsum(lambda k: mp.mpf(x) ** k / mp.factorial(k) * mp.rgamma(a * k + b), [0, mp.inf])


SERIES = {
    "hyp0f1": (sc.hyp0f1, mp.hyp0f1, [(1.5, -3.0), (2.5, 0.0), (0.5, 4.0)]),
    "hyp2f1": (sc.hyp2f1, mp.hyp2f1, [(1.5, 2.5, 1.0, -0.5), (3.0, 2.0, 1.5, 0.6), (0.5, 1.5, 0.7, 0.0)]),
    "hyp1f1": (sc.hyp1f1, mp.hyp1f1, [(3.5, 2.5, 4.0), (3.5, 2.5, -0.5)]),
    "wright_bessel": (sc.wright_bessel, wright, [(1.5, 1.1, 2.0), (0.5, 0.1, 0.1), (0.5, 3.0, 5.0)]),
    "log_wright_bessel": (sc.log_wright_bessel, lambda *args: mp.log(wright(*args)), [(1.5, 1.1, 2.0)]),
}


@pytest.mark.parametrize("name", SERIES)
def test_series_by_their_parameters(name):
    function, known, points = SERIES[name]
    for point in points:
        slopes = yota.gradient(lambda *args: function(*args), wrt=tuple(range(len(point))), dynamic=True)(*point)
        for place, slope in enumerate(slopes):
            order = tuple(int(each == place) for each in range(len(point)))
            expected = float(mp.diff(known, tuple(map(mp.mpf, point)), order))
            assert slope == pytest.approx(expected, rel=1e-9, abs=1e-13)
        curvature = yota.hvp(lambda a, point=point: function(a, *point[1:]), dynamic=True)(point[0], 1.0)
        expected = float(mp.diff(lambda a, point=point: known(a, *map(mp.mpf, point[1:])), mp.mpf(point[0]), 2))
        assert curvature == pytest.approx(expected, rel=1e-8, abs=1e-12)


def test_a_series_that_cancels_is_refused():
    with pytest.raises(yota.errors.DifferentiationError, match="hyp1f1"):
        yota.gradient(lambda a: sc.hyp1f1(a, 2.5, -30.0))(3.5)


def chi_square(x, v, c):
    return mp.nsum(
        lambda j: mp.exp(-c / 2) * (c / 2) ** j / mp.factorial(j) * mp.gammainc(v / 2 + j, 0, x / 2, regularized=True),
        [0, 60],
    )


def student(v, c, t):
    y = t * t / (v + t * t)

    def term(j):
        scale = mp.exp(-c * c / 2) * (c * c / 2) ** j / 2
        both = mp.betainc(j + 0.5, v / 2, 0, y, regularized=True) / mp.factorial(j)
        odd = mp.betainc(j + 1, v / 2, 0, y, regularized=True) * c / mp.sqrt(2) / mp.gamma(j + 1.5)
        return scale * (both + odd)

    return mp.ncdf(-c) + mp.nsum(term, [0, 60])


INVERSES = {
    "chndtridf": (sc.chndtridf, lambda y, args: chi_square(args[0], y, args[2]), 1, (3.0, 0.05, 1.5)),
    "nctdtridf": (sc.nctdtridf, lambda y, args: student(y, *args[1:]), 0, (0.6, 0.5, 1.0)),
    "nctdtrinc": (sc.nctdtrinc, lambda y, args: student(args[0], y, args[2]), 1, (3.0, 0.4, 1.0)),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverses_by_a_parameter(name):
    function, below, place, point = INVERSES[name]
    value = function(*point)
    point = tuple(map(mp.mpf, point))
    steep = mp.diff(lambda y: below(y, point), mp.mpf(value))
    slopes = yota.gradient(lambda *args: function(*args), wrt=(0, 1, 2))(*map(float, point))
    for number, slope in enumerate(slopes):
        moved = lambda s, number=number: below(value, (*point[:number], s, *point[number + 1 :]))
        expected = 1 / steep if number == place else -mp.diff(moved, point[number]) / steep
        assert slope == pytest.approx(float(expected), rel=1e-7)
    rows = float(point[place]) * np.array([0.9, 1.1])
    rest = [float(each) for each in point]
    found = yota.gradient(lambda p: np.sum(function(*rest[:place], p, *rest[place + 1 :])))(rows)
    one = yota.gradient(lambda p: function(*rest[:place], p, *rest[place + 1 :]))
    np.testing.assert_allclose(found, [one(each) for each in rows], rtol=1e-9)
