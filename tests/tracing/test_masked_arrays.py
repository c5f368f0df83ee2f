"""Masked arrays made inside of a function are followed through data and mask; what is masked has no derivative."""

import numpy as np
import pytest

import yota
from tests.tracing.checking import check
from yota import errors

X = np.array([[0.5, -1.25, 2.0], [3.0, 0.75, -0.25]])
MASK = np.array([[False, True, False], [False, False, True]])
ma = np.ma


def hidden(x):
    return ma.array(x, mask=MASK, copy=True)


def writes(x):
    a = hidden(x**2)
    a[0, 0] = ma.masked
    a[0, 1] = 3 * x[0, 2]
    a *= x
    return a.sum()


def hardened(x):
    a = hidden(x)
    a.harden_mask()
    a[...] = x**2
    return a.sum()


def sets_mask(x):
    a = ma.array(x**2)
    a.mask = x < 0
    return a.sum() * a.count()


def sorts(x):
    a = hidden(x)
    a.sort(axis=1)
    return (a * np.array([1.0, 2.0, 4.0])).sum()


CASES = [
    lambda x: ma.masked_where(x < 0, x).sum(),
    lambda x: (hidden(x) * x).mean() + hidden(x).var() + ma.std(hidden(x)),
    lambda x: (hidden(x).mean(axis=0) * hidden(x).max(axis=0)).sum(),
    lambda x: ma.masked_invalid(np.log(x)).filled(7.0).sum(),
    lambda x: ma.sqrt(x).sum() + ma.log(ma.array(x)).sum() + (1 / hidden(x)).sum(),
    lambda x: np.exp(hidden(x)).cumsum()[3] + np.hypot(hidden(x), 2).sum(),
    lambda x: ma.average(hidden(x), weights=x**2) + ma.median(hidden(x)),
    lambda x: np.mean(hidden(x)) * np.sum(hidden(x)) + np.cumsum(hidden(x), axis=1).sum(),
    lambda x: ma.where(hidden(x) > 0, hidden(x), x**2).sum() + ma.maximum(hidden(x), 0.6).sum(),
    lambda x: ma.dot(hidden(x), hidden(x).T).sum() + ma.outer(hidden(x)[0], x[1]).sum(),
    lambda x: ma.concatenate([hidden(x), hidden(x) ** 2]).reshape(3, 4).prod(axis=1).sum(),
    lambda x: (hidden(x).anom() ** 2).sum() + np.sum(hidden(x).compressed() ** 3),
    lambda x: (ma.zeros_like(hidden(x)) + x**2).sum() + ma.cov(hidden(x)).sum(),
    lambda x: (np.zeros_like(hidden(x)) + x**2).sum() + (np.ones_like(hidden(x)) * x).sum(),
    lambda x: (np.take_along_axis(hidden(x), np.argsort(X, 1), 1) ** 2).sum() + np.var(hidden(x), axis=1).sum(),
    lambda x: np.add.reduce(hidden(x)).sum() + (np.maximum.reduce(hidden(x), axis=1) ** 2).sum(),
    lambda x: sum(v**2 for v in hidden(x)[0] if v is not ma.masked),
    writes,
    hardened,
    sets_mask,
    sorts,
]


@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
@pytest.mark.parametrize("function", CASES)
def test_masked_arrays_are_followed(function):
    before = X.copy()
    check(function, X, second=True)
    assert np.array_equal(X, before)


def test_second_derivatives_leave_out_what_is_masked():
    found = yota.hessian(lambda x: (ma.masked_where(x < 0, x) ** 3).sum())(X[0])
    np.testing.assert_allclose(found, np.diag([3.0, 0.0, 12.0]), rtol=1e-14)


def test_a_mask_that_is_computed_from_the_argument_is_that_of_each_call():
    gradient = yota.value_and_grad(lambda x: ma.masked_where(x < 0, x**2).sum())
    for x in (X, -X, X + 1):
        value, slopes = gradient(x)
        np.testing.assert_allclose(value, np.sum(x[x >= 0] ** 2))
        np.testing.assert_allclose(slopes, np.where(x < 0, 0, 2 * x))


def test_masks_from_outside_are_those_of_each_call():
    outside = ma.array(np.arange(1.0, 5.0), mask=[0, 1, 0, 0])
    gradient = yota.value_and_grad(lambda x: (outside * x).sum())
    x = np.ones(4)
    assert gradient(x)[1].tolist() == [1, 0, 3, 4]
    outside[0] = ma.masked
    assert gradient(x)[1].tolist() == [0, 0, 3, 4]
    outside.mask[2] = True
    assert gradient(x)[1].tolist() == [0, 0, 0, 4]
    outside[1] = 5.0
    assert gradient(x)[1].tolist() == [0, 5, 0, 4]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (hidden, r"returns a masked array. Return .filled"),
        (lambda x: ma.array(x, mask=True).sum(), r"returns a masked array"),
        (lambda x: np.where(hidden(x) > 0, hidden(x), 0).sum(), r"numpy.where of a masked array.*Use numpy.ma.where"),
        (lambda x: np.einsum("ij->", hidden(x)), r"c_einsum"),
        (lambda x: np.full_like(hidden(x), 2.0).sum(), r"full_like of a masked array"),
        (lambda x: np.multiply.outer(hidden(x), x).sum(), r"multiply.outer of a masked array"),
        (lambda x: hidden(x).astype(object).sum(), r"cast to object"),
        (lambda x: np.sum(hidden(x).tolist()[0][0]), r"object array"),
        (lambda x: (x + ma.array(X, mask=MASK)).sum(), r"MaskedArray.*np.ma.add"),
    ],
)
def test_what_masked_arrays_do_not_record_is_refused(function, message):
    with pytest.raises(errors.YotaError, match=message):
        yota.jacobian(function)(X)


def test_masked_arguments_are_refused_with_the_cure():
    with pytest.raises(errors.ArgumentError, match=r"numpy.ma.MaskedArray.*pass its .data"):
        yota.grad(np.sum, hidden(X))
