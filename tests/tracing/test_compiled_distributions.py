"""Distributions whose methods SciPy computes in compiled code: values are SciPy's, gradients those of differences."""

import mpmath
import numpy as np
import pytest
import scipy.stats

import yota

X = np.array([0.4, 1.1, 2.3])
Q = np.array([0.2, 0.6])
CALLS = {
    "stats.vonmises.cdf(x, k, 0.1, 1.3) + stats.vonmises.sf(4 + x, 60 * k)": ("x", "k"),
    "stats.vonmises_line.ppf(q, k)": ("q", "k"),
    "stats.poisson_binom.pmf([0, 1, 3], p)": ("p",),
    "stats.poisson_binom.cdf([[1], [2]], np.stack([p, p * p]))": ("p",),
    "stats.nchypergeom_fisher.pmf([0, 1, 3, 4], 12, 5, 4, k)": ("k",),
    "stats.nchypergeom_fisher.logsf([0, 2], 12, 5, 4, [k, 2 * k])": ("k",),
    "stats.nchypergeom_wallenius.cdf([1, 3], [10, 12], 5, 4, k)": ("k",),
    "stats.nchypergeom_wallenius.stats(12, 5, 4, [k, 3.0])": ("k",),
    "stats.nchypergeom_wallenius.pmf(5, 5, 5, 5, k) * k": ("k",),
    "stats.genhyperbolic.cdf(x - 1, 0.7, 1.2, -0.4) * stats.genhyperbolic.sf(k, k, 1.9, 0.3, 0.2)": ("x", "k"),
    "stats.genhyperbolic.nnlf((k, 1.8, 0.3, 0.0, 1.0), x)": ("x", "k"),
    "stats.geninvgauss.cdf(x, 0.7, k)": ("x", "k"),
    "stats.geninvgauss.ppf(q, k, 1.3)": ("q", "k"),
    "stats.geninvgauss.entropy(0.7, k)": ("k",),
    **{f"stats.kappa4.{each}(x, k - 0.8, 0.3 - k)": ("x", "k") for each in ("pdf", "logcdf", "sf")},
    "stats.studentized_range.cdf(x, 3 + k, [10, 1.3, np.inf])": ("x", "k"),
    "stats.studentized_range.pdf(x, 2 + k, 3 * k)": ("x", "k"),
    "stats.studentized_range.ppf(q[1], 4, 5 * k)": ("q", "k"),
    "stats.ksone.logpdf(0.3 * x, [1, 2, 30], 0.01, k)": ("x", "k"),
    "stats.kstwobign.pdf(x, 0.1, k)": ("x", "k"),
    "stats.landau.nnlf((k, 2 * k), np.append(x, [-3.0, 40.0]))": ("x", "k"),
    "stats.multinomial.pmf([2, 1, 3], 6, x / np.sum(x)) + stats.multinomial.cov(5, x / np.sum(x))[0]": ("x",),
    "stats.skewnorm.entropy(k) * stats.tukeylambda.cdf(x - 1, 0.3 * k)": ("x", "k"),
    "stats.kappa4.ppf(q, 0.2 * k, k - 0.9)": ("q", "k"),
    "stats.irwinhall.pdf(x, [3, 4, 3], 0.1, k) * stats.irwinhall.cdf(3 * x, 7)": ("x", "k"),
    "stats.norm.expect(lambda v: v**2 + np.sin(v), scale=k)": ("k",),
    "stats.irwinhall.sf(2 * x, 4) * stats.irwinhall.expect(np.sqrt, (5,), scale=k)": ("x", "k"),
}
"""Arguments by call."""


@pytest.mark.parametrize("call", CALLS)
def test_value_and_gradient(call):
    given = {"x": X, "q": Q, "k": 0.8, "p": np.array([0.2, 0.7, 0.4])}
    names = CALLS[call]
    code = compile(call, "call", "eval")

    def function(*values):
        return eval(code, {"stats": scipy.stats, "np": np}, dict(zip(names, values, strict=True)))

    def loss(*values):
        found = function(*values)
        return sum(np.sum(np.sin(each)) for each in (found if isinstance(found, tuple) else [found]))

    values = [given[name] for name in names]
    # SciPy integrates the density of geninvgauss to eight digits.
    near = 1e-7 if "geninvgauss" in call else 1e-10
    assert yota.trace(loss, *values)[0] == pytest.approx(loss(*values), rel=near)
    assert yota.gradcheck(loss, *values, directions=1)


@pytest.mark.parametrize("places", [[[0.2, 0.3]], [[0.9, 0.8]], [[0.2, 0.9], [0.7, 0.1]]])
def test_functions_for_parts_of_an_array(places):
    xpx = pytest.importorskip("scipy._lib.array_api_extra")

    def function(x, a):
        both = xpx.apply_where(x > 0.5, (x, a * np.ones(2)), lambda x, a: np.log(a * x - 0.4), lambda x, a: x * a)
        alone = xpx.apply_where(x > 0.5, x, lambda x: np.sqrt(x - 0.5), fill_value=2.0)
        return np.sum(both * alone)

    def part(x, a):
        return np.log(a * x - 0.4) * np.sqrt(x - 0.5) if x.real > 0.5 else 2.0 * a * x

    # Parts that change places share a tape.
    fg = yota.value_and_grad(function, wrt=(0, 1), dynamic=len(places) == 1)
    for x in places:
        value, (by_x, by_a) = fg(np.array(x), 1.3)
        assert value == pytest.approx(sum(part(each, 1.3) for each in np.array(x)))
        np.testing.assert_allclose(by_x, [np.imag(part(each + 1e-30j, 1.3)) / 1e-30 for each in x])
        assert by_a == pytest.approx(sum(np.imag(part(each + 0j, 1.3 + 1e-30j)) / 1e-30 for each in x))


@pytest.mark.parametrize("method", ["logpdf", "cdf", "sf"])
def test_a_shape_of_0_is_no_place_of_its_own(method):
    def loss(h, k):
        return np.sum(getattr(scipy.stats.kappa4, method)(X, h, k))

    found = yota.grad(loss, 0.0, 0.0)[1]
    step = 1e-3
    coarse, fine = ((loss(s, 0.0) - loss(-s, 0.0)) / (2 * s) for s in (step, step / 2))
    assert found[0] == pytest.approx((4 * fine - coarse) / 3, rel=1e-8)
    coarse, fine = ((loss(0.0, s) - loss(0.0, -s)) / (2 * s) for s in (step, step / 2))
    assert found[1] == pytest.approx((4 * fine - coarse) / 3, rel=1e-8)


@pytest.mark.parametrize(("counts", "odds"), [((3, 20, 12, 8), 30.0), ((0, 10, 4, 0), 2.0), ((4, 30, 14, 9), 0.5)])
def test_wallenius_to_30_digits(counts, odds):
    x, total, first, drawn = counts

    def mass(w):
        left = w * (first - x) + (total - first - drawn + x)
        counted = mpmath.binomial(first, x) * mpmath.binomial(total - first, drawn - x) * left
        ends = [0, *(mpmath.mpf(2) ** (each / 2) / 64 for each in range(17)), 64]
        return counted * mpmath.quad(
            lambda s: mpmath.exp(-s * left) * (1 - mpmath.exp(-w * s)) ** x * (1 - mpmath.exp(-s)) ** (drawn - x), ends
        )

    value, g = yota.grad(lambda w: scipy.stats.nchypergeom_wallenius.pmf(x, total, first, drawn, w), odds)
    with mpmath.workdps(30):
        assert value == pytest.approx(float(mass(mpmath.mpf(odds))), rel=1e-11)
        assert g[0] == pytest.approx(float(mpmath.diff(mass, odds)), rel=1e-9, abs=1e-15)


def smirnov_slope(x, n):
    def part(j):
        left, right = 1 - x - mpmath.mpf(j) / n, x + mpmath.mpf(j) / n
        return mpmath.binomial(n, j) * x * right ** (j - 1) * left ** (n - j) if left > 0 else mpmath.mpf(0)

    return -mpmath.fsum(part(j) for j in range(n))


def landau_density(x):
    place = mpmath.pi / 2 * x + mpmath.log(mpmath.pi / 2)

    def inner(t):
        return mpmath.exp(-t * mpmath.log(t) - place * t) * mpmath.sin(mpmath.pi * t) if t else mpmath.mpf(0)

    scale = 1 / max(1, place)
    return mpmath.quad(inner, [0, *(scale * each for each in (0.25, 0.5, 1, 2, 3, 4, 6, 8, 12, 20, 40, 80))]) / 2


@pytest.mark.parametrize(("n", "x"), [(2, 0.7), (5, 0.37), (20, 0.15), (300, 0.04)])
def test_slopes_of_smirnovs_density_to_30_digits(n, x):
    value, g = yota.grad(lambda x: scipy.stats.ksone.pdf(x, n), x)
    with mpmath.workdps(40):
        whole = mpmath.taylor(lambda y: smirnov_slope(y, n), mpmath.mpf(x), 2)
    assert value == pytest.approx(float(whole[1]), rel=1e-11)
    assert g[0] == pytest.approx(float(2 * whole[2]), rel=1e-11)


@pytest.mark.parametrize("x", [-2.0, 0.15, 0.2, 30.0, 1e5])
def test_slopes_of_landaus_density_to_30_digits(x):
    value, g = yota.grad(scipy.stats.landau.pdf, x)
    with mpmath.workdps(30):
        assert value == pytest.approx(float(landau_density(mpmath.mpf(x))), rel=1e-11)
        assert g[0] == pytest.approx(float(mpmath.diff(landau_density, mpmath.mpf(x))), rel=1e-11)


def test_the_last_probability_is_what_the_others_leave():
    p, others = np.array([0.3, 0.2, 0.5]), np.array([0.3, 0.2])
    _, whole = yota.grad(lambda p: scipy.stats.multinomial.pmf([3, 4, 1], 8, p), p)
    # 8! / (3! 4! 1!) a^3 b^4 (1 - a - b)
    a, b = others
    assert whole[0] == pytest.approx(
        [280 * (3 * a**2 * b**4 * 0.5 - a**3 * b**4), 280 * (4 * a**3 * b**3 * 0.5 - a**3 * b**4), 0]
    )


def test_counts_have_no_derivative():
    with pytest.raises(yota.errors.TracingError, match="no derivative by its count"):
        yota.grad(lambda n: scipy.stats.ksone.pdf(0.3, n), 5.0)
    with pytest.raises(yota.errors.TracingError, match="no derivative by counts"):
        yota.grad(lambda n: scipy.stats.nchypergeom_fisher.pmf(1, 12, n, 4, 0.5), 5.0)


def test_few_degrees_of_freedom_are_refused():
    with pytest.raises(yota.errors.TracingError, match="less than one degree"):
        yota.grad(lambda q: scipy.stats.studentized_range.cdf(q, 3.0, 0.5), 2.0)
