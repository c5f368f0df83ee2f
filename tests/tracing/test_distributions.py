"""Densities and distribution functions of scipy.stats: values are SciPy's, gradients those of 50 digits."""

import math

import mpmath
import numpy as np
import pytest
import scipy.stats

import yota

SHAPES = {
    "norm": (),
    "t": (3.3,),
    "gamma": (2.2,),
    "beta": (2.1, 1.7),
    "chi2": (3.7,),
    "expon": (),
    "uniform": (),
    "laplace": (),
    "lognorm": (0.7,),
    "cauchy": (),
    "logistic": (),
    "halfnorm": (),
    "halfcauchy": (),
    "rayleigh": (),
    "weibull_min": (1.8,),
    "pareto": (2.5,),
    "gumbel_r": (),
    "invgamma": (2.4,),
    "gumbel_l": (),
    "maxwell": (),
    "chi": (2.6,),
    "f": (3.4, 5.2),
    "powerlaw": (1.6,),
}
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")
X = np.array([0.21, 0.48, 0.77, 0.9])


def method_of(name, method):
    return getattr(getattr(scipy.stats, name), method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_gradient(name, method):
    shapes = SHAPES[name]

    def loss(x, loc, scale, *shapes):
        return np.sum(np.cos(method_of(name, method)(x, *shapes, loc, scale)))

    x = X + 1 if name == "pareto" else X
    assert yota.gradcheck(loss, x, 0.05, 0.9, *shapes, directions=1)
    found, _ = yota.grad(loss, x, 0.05, 0.9, *shapes)
    assert found == pytest.approx(loss(x, 0.05, 0.9, *shapes), rel=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SHAPES)
def test_value_is_that_of_scipy(name, method):
    x = np.array([-400.0, -30.0, -1.0, 0.0, 1e-9, 0.3, 1.0, 2.5, 40.0, 800.0, np.nan])
    with np.errstate(all="ignore"):
        expected = method_of(name, method)(x, *SHAPES[name], 0.0, 1.2)
    found = yota.trace(lambda x: method_of(name, method)(x, *SHAPES[name], 0.0, 1.2), x)[0]
    np.testing.assert_allclose(found, expected, rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize("method", ["ppf", "isf"])
@pytest.mark.parametrize("name", SHAPES)
def test_inverses(name, method):
    shapes = (getattr(scipy.stats, name).shapes or "").replace(" ", "").split(",")
    named = dict(zip(shapes, SHAPES[name], strict=False))

    def inverse(q, loc, scale):
        return method_of(name, method)(q=q, loc=loc, scale=scale, **named)

    q = np.array([0.0, 1e-9, 0.2, 0.45, 0.7, 1 - 1e-9, 1.0, 1.5, -1.0, np.nan])
    found = yota.trace(inverse, q, 0.3, 1.2)[0]
    # SciPy's F distribution goes through 1 - q, which has few digits of a small q.
    known = q[1] if (name, method) == ("f", "isf") else 0.0
    np.testing.assert_allclose(found[q != known], inverse(q[q != known], 0.3, 1.2), rtol=1e-11)
    assert yota.gradcheck(lambda q, loc, scale: np.sum(inverse(q, loc, scale) ** 2), q[2:5], 0.3, 1.2, directions=1)
    assert np.all(np.isnan(yota.trace(inverse, q, 0.0, -1.0)[0]))


def test_the_far_end_of_the_f_distribution_to_50_digits():
    found = yota.trace(lambda q: scipy.stats.f.isf(q, 3.4, 5.2), np.array([1e-9]))[0][0]
    with mpmath.workdps(50):
        one, other = mpmath.mpf(3.4) / 2, mpmath.mpf(5.2) / 2

        def rest(x):
            return mpmath.betainc(other, one, 0, other / (other + one * x), regularized=True)

        exact = mpmath.findroot(lambda x: mpmath.log(rest(x) / mpmath.mpf(1e-9)), found)
    assert abs(float(exact) - found) < 1e-12 * found


@pytest.mark.parametrize("method", METHODS)
def test_a_scale_that_is_not_positive_gives_no_number(method):
    for name, shapes in SHAPES.items():
        assert np.all(np.isnan(yota.trace(lambda s: method_of(name, method)(X, *shapes, 0.0, s), -1.0)[0]))  # noqa: B023


FAR = {
    "norm": lambda z: -z * z / 2,
    "logistic": lambda z: -z - 2 * mpmath.log1p(mpmath.exp(-z)),
    "laplace": lambda z: -abs(z),
    "cauchy": lambda z: -mpmath.log1p(z * z),
    "expon": lambda z: -z,
    "gamma": lambda z: mpmath.mpf("1.2000000000000001776") * mpmath.log(z) - z,
}


@pytest.mark.parametrize("name", FAR)
def test_slope_of_the_logarithm_keeps_its_digits(name):
    for z in (1e-6, 0.7, 35.0, 700.0, 1e5):
        with mpmath.workdps(50):
            expected = float(mpmath.diff(FAR[name], mpmath.mpf(z)))
        _, g = yota.grad(lambda x: method_of(name, "logpdf")(x, *SHAPES[name]), z)
        assert g[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("z", [-700.0, -37.0, -1.0, 5.0])
def test_slope_of_the_logarithm_of_the_normal_distribution_function(z):
    with mpmath.workdps(50):
        t = mpmath.mpf(z)
        expected = float(mpmath.npdf(t) / mpmath.ncdf(t))
    assert yota.grad(lambda z: scipy.stats.norm.logcdf(z), z)[1][0] == pytest.approx(expected, rel=1e-12)


def test_erlang_is_gamma_of_a_whole_shape():
    given = scipy.stats.erlang(3, scale=1.3)
    found, g = yota.grad(lambda x: np.sum(given.logpdf(x)), X)
    assert found == pytest.approx(np.sum(given.logpdf(X)), rel=1e-13)
    np.testing.assert_allclose(g[0], 2 / X - 1 / 1.3, rtol=1e-13)


COUNTS = {
    "poisson": ((), (2.3,), [0, 1, 3, 5]),
    "binom": ((5,), (0.3,), [0, 1, 3, 5]),
    "bernoulli": ((), (0.3,), [0, 1]),
    "geom": ((), (0.3,), [1, 2, 5]),
    "nbinom": ((), (3.5, 0.4), [0, 1, 5]),
    "planck": ((), (0.7,), [0, 1, 5]),
    "logser": ((), (0.6,), [1, 2, 5]),
    "betabinom": ((6,), (1.5, 2.5), [0, 2, 6]),
}
"""For each distribution the shapes that are whole, those that are not, and values."""
SUMS = ("logser", "betabinom")
"""Those whose distribution function is SciPy's own sum."""


@pytest.mark.parametrize("method", ["pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", COUNTS)
def test_discrete(name, method):
    rest, shapes, values = COUNTS[name]
    inner = np.array(values[:-1] if method == "logsf" else values)

    def loss(*shapes):
        return np.sum(np.sin(method_of(name, method)(inner, *rest, *shapes)))

    assert yota.gradcheck(loss, *shapes, directions=1)
    k = np.array([-1.0, 0, 1, 1.5, 4, 5, 6, 7, np.nan])
    for given in (shapes, (*shapes[:-1], -1.0)):
        with np.errstate(all="ignore"):
            expected = method_of(name, method)(k, *rest, *given)
        if given != shapes and method == "logcdf" and name not in SUMS:
            # SciPy says 0 past the last value, whatever the shapes are.
            expected = np.full(k.shape, np.nan)
        found = yota.trace(lambda *shapes: method_of(name, method)(k, *rest, *shapes), *given)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_moments_of_discrete_distributions_that_scipy_sums():
    def loss(p):
        return sum(w * m for w, m in enumerate(scipy.stats.bernoulli.stats(p, moments="mvsk"), 1))

    assert yota.gradcheck(loss, 0.3)
    assert yota.grad(loss, 0.3)[0] == pytest.approx(loss(0.3), rel=1e-12)


def test_frozen():
    def loss(x, loc, scale, a):
        normal = scipy.stats.norm(loc, scale)
        shape = scipy.stats.gamma(a, scale=scale)
        return np.sum(normal.logpdf(x) + normal.cdf(x) * shape.pdf(x)) + scipy.stats.poisson(scale).logpmf(3)

    assert yota.gradcheck(loss, X, 0.1, 1.3, 2.2)
    plain = scipy.stats.norm(0.3, 1.2)
    assert yota.gradcheck(lambda x: np.sum(plain.logpdf(x)), X)


class TestMultivariateNormal:
    COVARIANCE = np.array([[2.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.5]])
    POINTS = np.random.default_rng(0).standard_normal((4, 3))

    def test_all_parameters(self):
        normal = scipy.stats.multivariate_normal

        def loss(x, mean, cov):
            cov = 0.5 * (cov + cov.T)
            return np.sum(normal.logpdf(x, mean, cov)) + np.sum(normal(mean, cov).pdf(x))

        args = (self.POINTS, np.array([0.1, 0.2, 0.3]), self.COVARIANCE)
        assert yota.gradcheck(loss, *args)
        assert yota.grad(loss, *args)[0] == pytest.approx(loss(*args), rel=1e-13)

    @pytest.mark.parametrize("cov", [1.7, np.array([1.0, 2.0, 0.5])])
    def test_simple_covariances(self, cov):
        def loss(x, cov):
            return np.sum(scipy.stats.multivariate_normal.logpdf(x, np.ones(3), cov))

        assert yota.gradcheck(loss, self.POINTS, cov)
        assert yota.grad(loss, self.POINTS, cov)[0] == pytest.approx(loss(self.POINTS, cov), rel=1e-13)

    def test_one_point_and_one_dimension(self):
        normal = scipy.stats.multivariate_normal
        assert yota.gradcheck(lambda x: normal.logpdf(x, np.zeros(3), self.COVARIANCE), self.POINTS[0])
        assert yota.gradcheck(lambda x, v: np.sum(normal.pdf(x, None, v)), X, 1.3)
        plain = normal(np.ones(3), self.COVARIANCE)
        assert yota.gradcheck(lambda x: np.sum(plain.logpdf(x)), self.POINTS)


def test_dirichlet():
    alpha = np.array([0.5, 1.2, 3.0])
    points = np.random.default_rng(1).dirichlet(alpha, 4).T

    def loss(x, alpha):
        return np.sum(scipy.stats.dirichlet.logpdf(x, alpha)) + np.sum(scipy.stats.dirichlet(alpha).pdf(x))

    assert yota.gradcheck(loss, points[:2], alpha)
    assert yota.grad(loss, points[:2], alpha)[0] == pytest.approx(loss(points[:2], alpha), rel=1e-12)
    assert yota.gradcheck(lambda a: np.sum(scipy.stats.dirichlet.logpdf(points, a)), alpha)


OTHERS = {
    "genextreme": ("logpdf", "cdf", "ppf", "entropy", "median", "stats"),
    "alpha": ("sf", "isf", "support"),
    "argus": ("ppf", "entropy"),
    "gamma": ("mean", "var", "std", "entropy", "support"),
    "dgamma": ("cdf", "isf"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_traced_through(name):
    for method in OTHERS[name]:
        variable = () if method in ("mean", "var", "std", "stats", "entropy", "median", "support") else (0.4,)
        call = method_of(name, method)

        def total(*place, call=call):
            found = call(*place)
            parts = found if isinstance(found, tuple) else [found]
            return sum((n + 1) * part for n, part in enumerate(parts) if np.isfinite(part))

        place = (*variable, *(0.7 for _ in range(getattr(scipy.stats, name).numargs)), 0.1, 1.3)
        found, gradient = yota.grad(total, *place)
        assert found == pytest.approx(total(*place), rel=1e-9)
        assert gradient == pytest.approx([slope(total, place, at) for at in range(len(place))], rel=1e-6, abs=1e-9)


def slope(total, place, at):
    """The derivative by differences of the fourth order."""
    step = 1e-3

    def along(move):
        return total(*place[:at], place[at] + move, *place[at + 1 :])

    return (8 * (along(step) - along(-step)) - along(2 * step) + along(-2 * step)) / (12 * step)


def test_scipy_is_left_as_it_was():
    before = [getattr(type(scipy.stats.norm), name) for name in METHODS]
    yota.grad(lambda x: scipy.stats.norm.logpdf(x), 0.5)
    assert [getattr(type(scipy.stats.norm), name) for name in METHODS] == before
    assert not {"logpdf", "pdf", "cdf"} & vars(scipy.stats.norm).keys()
    assert type(scipy.stats.multivariate_normal).__call__.__module__.startswith("scipy.")


@pytest.mark.parametrize("name", ["laplace", "logistic", "norm", "cauchy", "hypsecant", "gumbel_r", "t"])
def test_slopes_at_the_location_are_densities(name):
    """There formulas change sides."""
    distribution = getattr(scipy.stats, name)
    shapes = (3.5,) if name == "t" else ()
    x = np.array([0.7, 0.2, 1.4])
    density = distribution.pdf(x, *shapes, loc=0.7)
    for method, slope in ((distribution.cdf, density), (distribution.sf, -density)):
        found = yota.gradient(lambda x, method=method: np.sum(method(x, *shapes, loc=0.7)))(x)
        np.testing.assert_allclose(found, slope, rtol=1e-12)


def test_hyperbolic_distributions_by_shapes_of_both_signs():
    mp = mpmath.mp.clone()
    mp.dps = 30

    def inverse(x, p, b):
        return x ** (p - 1) * mp.exp(-b * (x + 1 / x) / 2) / (2 * mp.besselk(p, b))

    def hyperbolic(x, p, a, b):
        level, root = mp.sqrt(a * a - b * b), mp.sqrt(1 + x * x)
        factor = level**p / (mp.sqrt(2 * mp.pi) * a ** (p - mp.mpf(1) / 2) * mp.besselk(p, level))
        return factor * mp.exp(b * x) * mp.besselk(p - mp.mpf(1) / 2, a * root) * root ** (p - mp.mpf(1) / 2)

    for name, exact, point in (
        ("geninvgauss", inverse, (1.3, -0.7, 0.9)),
        ("genhyperbolic", hyperbolic, (0.3, 1.2, 1.5, -0.5)),
        ("genhyperbolic", hyperbolic, (-0.3, -1.2, 1.5, 0.5)),
    ):
        value, slopes = yota.grad(getattr(scipy.stats, name).pdf, *point)
        assert value == pytest.approx(float(exact(*map(mp.mpf, point))), rel=1e-12)
        for place in range(len(point)):
            order = tuple(int(each == place) for each in range(len(point)))
            assert slopes[place] == pytest.approx(float(mp.diff(exact, point, order)), rel=1e-10)


@pytest.mark.parametrize("shape", [0.8, 1.3, 4.0])
def test_the_generalized_normal_distribution_has_its_density_as_slope_at_its_location(shape):
    density = scipy.stats.gennorm.pdf(0.0, shape)
    assert yota.gradient(lambda x: scipy.stats.gennorm.cdf(x, shape))(0.0) == pytest.approx(density)
    assert yota.gradient(lambda q: scipy.stats.gennorm.isf(q, shape))(0.5) == pytest.approx(-1 / density)


def width(skew):
    return scipy.stats.pearson3.interval(0.9, skew)[1]


def test_code_of_scipy_that_selects_from_plain_arrays_by_traced_truths():
    value, found = yota.value_and_grad(width)(1.3)
    assert value == pytest.approx(width(1.3), rel=1e-12)
    assert found == pytest.approx(slope(width, (1.3,), 0), rel=1e-6)


def quantile(q, loc):
    return scipy.stats.zipf.ppf(q, 2.5, loc)


def test_quantiles_that_scipy_searches_for_are_steps():
    fg = yota.value_and_grad(quantile, wrt=("q", "loc"), dynamic=True)
    for q in (0.3, 0.9, 0.97):
        assert fg(q, 0.25) == (quantile(q, 0.25), (0.0, 1.0))


LIMITS = [("genextreme", (0.0,)), ("genpareto", (0.0,)), ("skewnorm", (0.0,)), ("pearson3", (0.0,))]


@pytest.mark.parametrize("method", ["logpdf", "cdf", "logsf", "ppf", "isf"])
@pytest.mark.parametrize(("name", "shapes"), LIMITS)
def test_shapes_at_which_scipy_takes_the_limit_have_derivatives(name, shapes, method):
    distribution = getattr(scipy.stats, name)
    x = np.array([0.2, 0.6, 0.9])
    x = x if method in ("ppf", "isf") else distribution.ppf(x, *shapes) * 1.3 + 0.2

    def values(p):
        return getattr(distribution, method)(x, *[p[k] for k in range(len(shapes))], loc=p[-2], scale=p[-1])

    p = np.array([*shapes, 0.2, 1.3])
    found = yota.jacobian(values)(p)
    for k, direction in enumerate(np.eye(len(p))):
        # Near its limit SciPy's own function is not exact to more digits.
        wide, narrow = ((values(p + h * direction) - values(p - h * direction)) / (2 * h) for h in (0.02, 0.01))
        np.testing.assert_allclose(found[:, k], (4 * narrow - wide) / 3, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gengamma", "exponweib", "nakagami", "exponpow", "betaprime"])
def test_hessians_where_a_shape_cancels_a_logarithm(name):
    distribution = getattr(scipy.stats, name)
    shapes = {"nakagami": (0.5,), "exponpow": (1.0,)}.get(name, (1.0, 1.0))
    x = np.array([0.4, 1.1, 2.3])

    def loss(p):
        return np.sum(distribution.logpdf(x, *[p[k] for k in range(len(shapes))], loc=p[-2], scale=p[-1]))

    p, gradient = np.array([*shapes, 0.1, 1.2]), yota.gradient(loss)
    wide, narrow = (
        np.array([(gradient(p + h * each) - gradient(p - h * each)) / (2 * h) for each in np.eye(len(p))])
        for h in (2e-3, 1e-3)
    )
    np.testing.assert_allclose(yota.hessian(loss)(p), (4 * narrow - wide) / 3, rtol=1e-6, atol=1e-6)


def test_methods_are_recorded_alike_after_code_that_needed_the_sources_of_scipy():
    def of(distribution, method, count, x):
        def loss(p):
            return np.sum(getattr(distribution, method)(x, *[p[k] for k in range(count)], loc=p[-2], scale=p[-1]))

        return loss

    x = np.array([0.4, 1.1, 2.3])
    yota.hessian(of(scipy.stats.betaprime, "logcdf", 2, x))(np.array([5.0, 6.0, 0.1, 1.2]))
    found = yota.hessian(of(scipy.stats.cauchy, "logpdf", 0, x))(np.array([0.4, 1.3]))
    z = (x - 0.4) / 1.3
    # The second derivative of -log(1 + z**2), at the location too, where SciPy's own code has a kink.
    assert found[0, 0] == pytest.approx(np.sum(-2 * (1 - z * z) / (1 + z * z) ** 2) / 1.3**2, rel=1e-12)


def test_the_distribution_function_of_student_has_second_derivatives_at_its_location():
    found = yota.hessian(lambda p: scipy.special.stdtr(p[0], p[1]))(np.array([3.0, 0.0]))
    with mpmath.workdps(30):
        slope = mpmath.diff(lambda v: 1 / (mpmath.sqrt(v) * mpmath.beta(v / 2, 0.5)), 3)
    np.testing.assert_allclose(found, [[0, float(slope)], [float(slope), 0]], rtol=1e-12, atol=1e-12)


def test_second_derivatives_of_the_wrapped_cauchy_distribution_in_its_middle():
    found = yota.hessian(lambda p: scipy.stats.wrapcauchy.cdf(p[0], p[1]))(np.array([math.pi, 0.3]))
    with mpmath.workdps(40):
        # The integral of the density from 0 to x.
        def density(x, c):
            return (1 - c * c) / (2 * mpmath.pi * (1 + c * c - 2 * c * mpmath.cos(x)))

        mixed = mpmath.diff(lambda c: density(mpmath.mpf(math.pi), c), 0.3)
    np.testing.assert_allclose(found, [[0, float(mixed)], [float(mixed), 0]], rtol=1e-12, atol=1e-12)
