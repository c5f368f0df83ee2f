"""Wrappers around functions: NumPy's loops over rows and elements, and those of scipy.stats."""

import functools

import numpy as np
import pytest
import scipy.stats

import yota

X = np.array([0.3, 1.1, 0.8, 2.0, 0.7])
Y = np.array([0.9, 0.2, 1.4, 1.0, 0.4])
S = np.array([[2.0, 0.3], [0.3, 1.0]])


def by_elements(x, y):
    with np.nditer([x, y, None], flags=["zerosize_ok"], op_dtypes=[float, float, float]) as it:
        for one, other, out in it:
            out[...] = one**2 * other
        return np.sum(it.operands[-1])


def by_places(x, y):
    it = np.nditer(x, flags=["multi_index"])
    return sum(value * y[it.multi_index] for value in it)


def of_rows(x, y):
    found = np.apply_along_axis(lambda row, k: np.stack([k * row**2, row]), 0, np.stack([x, y]), 3.0)
    return np.sum(found * np.arange(20.0).reshape(2, 2, 5)) + np.apply_over_axes(np.sum, found, [0, 2])[0, 1, 0]


@functools.cache
def gamma():
    """SciPy reads its own source to make the class, which takes a second."""
    return scipy.stats.make_distribution(scipy.stats.gamma)


FUNCTIONS = [
    by_elements,
    by_places,
    of_rows,
    lambda x, y: scipy.stats.pearsonr(x, y).statistic,
    lambda x, y: scipy.stats.f_oneway(x, y).pvalue,
    lambda x, y: scipy.stats.ttest_ind(x, y, equal_var=False).pvalue,
    lambda x, y: scipy.stats.variation(x) + scipy.stats.circvar(y) + scipy.stats.tmean(x, (0.2, 1.5)),
    lambda x, y: np.sum(scipy.stats.zscore(x) ** 3) + scipy.stats.ks_1samp(y, scipy.stats.norm.cdf).statistic,
    lambda x, y: np.sum(scipy.stats.gaussian_kde(x)(y) + scipy.stats.gaussian_kde(y).logpdf(x)),
    lambda x, y: scipy.stats.multinomial.entropy(4, x / np.sum(x)) + scipy.stats.dirichlet.entropy(y),
    lambda x, y: scipy.stats.multivariate_t.logpdf(x[:2], y[:2], S * x[3], df=2 + x[4]),
    lambda x, y: scipy.stats.multivariate_t.logpdf(x[:2], y[:2], np.eye(2) * x[3] + np.diag(y[1:3]), df=3),
    lambda x, y: scipy.stats.multivariate_normal(y[:2], np.ones((2, 2)), allow_singular=True).logpdf(y[:2] + x[0]),
    lambda x, y: scipy.stats.multivariate_normal(y[:2], S * x[0]).entropy(),
    lambda x, y: scipy.stats.wishart.logpdf(S * x[1], 3.5 + y[0], S * x[0] + np.eye(2)),
    lambda x, y: scipy.stats.Normal(mu=x[0], sigma=y[0]).logcdf(x[1]),
    lambda x, y: gamma()(a=x[0]).pdf(y[0]),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_gradient(number):
    function = FUNCTIONS[number]
    assert yota.grad(function, X, Y)[0] == pytest.approx(function(X, Y), rel=1e-10)
    assert yota.gradcheck(function, X, Y)


def test_a_truth_among_indices():
    def written(x):
        p = np.zeros(3) + x[0]
        p[np.sum(x) > 1, -1] = x[1]
        p[np.sum(x) < 1, 0] = 7.0
        return np.sum(p**2)

    assert yota.grad(written, X)[1][0] == pytest.approx([4 * X[0], 2 * X[1], 0, 0, 0])
