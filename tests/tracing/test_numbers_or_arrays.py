"""Results without axes are numbers or arrays where NumPy's are: code may ask for either."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import yota

MAKERS = {
    "where": lambda x: np.where(np.asarray(x) > 0, np.asarray(x), 2.0),
    "nan_to_num": lambda x: np.nan_to_num(np.asarray(x)),
    "interp": lambda x: np.interp(x, [0.0, 1.0], [0.0, 2.0]),
    "inner": lambda x: np.inner(np.array([x]), np.array([x])),
    "choose": lambda x: np.choose(0, [x, 1.0]),
    "nanmax": lambda x: np.nanmax(np.array([x, 0.1])),
    "broadcast_to": lambda x: np.broadcast_to(x, ()),
    "full": lambda x: np.full((), x),
    "full_like": lambda x: np.full_like(np.asarray(1.0), x),
    "select": lambda x: np.select([x < 0.5], [x * 2]),
    "asarray": np.asarray,
    "sum": lambda x: np.sum(np.asarray(x)),
    "copy": np.copy,
    "multiply": lambda x: np.asarray(x) * 2,
}
CASTS = (lambda y: y, np.float64, np.float32, np.complex128, lambda y: -y, np.asarray)


def weight(y):
    kinds = (float, np.ndarray, np.generic)
    return sum(isinstance(y, kind) * 2.0**number for number, kind in enumerate(kinds)) + 8.0 * np.isscalar(y)


@pytest.mark.parametrize("x", [0.3, np.array(0.3), np.float64(0.3)], ids=["float", "array", "float64"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_classes_are_those_of_numpy(make, x):
    def total(x):
        return sum(np.real(cast(make(x))) * weight(cast(make(x))) * 16.0**n for n, cast in enumerate(CASTS))

    np.testing.assert_allclose(yota.grad(total, x)[0], total(x), rtol=1e-6)


NAMES = "__len__ __iter__ __array__ __array_interface__ __index__ is_integer shape tolist item iloc".split()


@pytest.mark.parametrize("how", [lambda f: f, yota.interpreted], ids=["plain", "interpreted"])
@pytest.mark.parametrize("x", [0.3, np.float64(0.3), np.array(0.3), np.array([0.3, 0.4])], ids=str)
def test_attributes_are_those_of_numpy(x, how):
    def total(x):
        found = sum(hasattr(x, name) * 2.0**number for number, name in enumerate(NAMES))
        default = getattr(x, "iloc", 3.0) + (getattr(x, "__len__", None) is None)
        return np.sum(x) * (found + 2.0 ** len(NAMES) * default) + np.sum(getattr(x, "T", 2.0))

    assert yota.value_and_grad(how(total))(x)[0] == pytest.approx(total(x), rel=1e-12)


@pytest.mark.parametrize("x", [0.3, np.float64(0.3), np.array(0.3)], ids=["float", "float64", "array"])
def test_what_an_attribute_raises_is_caught(x):
    def total(x):
        try:
            return x.item() * x.size * 2.0
        except AttributeError:
            return x * 3.0

    assert yota.grad(total, x)[0] == total(x)


def test_an_attribute_of_plain_values_alone_is_refused():
    with pytest.raises(yota.errors.TracingError, match="__array_interface__ is an attribute of plain values alone"):
        yota.grad(lambda x: np.sum(x) * len(getattr(x, "__array_interface__", ())), np.ones(3))


LISTS = {
    "fft": lambda x: np.abs(np.fft.ifft([x[0], x[1], x[2] * x[3]])).sum() + np.abs(np.fft.rfft([x[0], x[1]])).sum(),
    "scipy.fft": lambda x: np.abs(scipy.fft.ifft([x[0], x[1], x[2] * x[3]])).sum(),
    "cholesky": lambda x: np.linalg.cholesky([[2 + x[0] ** 2, x[1] / 9], [x[1] / 9, 3.0]]).sum(),
    "singular values": lambda x: np.linalg.svdvals([[x[0], x[1]], [x[2], x[3]]]).sum(),
    "eigenvalues": lambda x: np.linalg.eigvalsh([[x[0], x[1]], (x[1], x[3])]).max(),
    "fix": lambda x: (np.fix([x[0], x[1] * 2]) * x[2]).sum(),
    "one": lambda x: np.mean([x[0]]) * np.array([x[1]]).sum() + np.array([[x[2]]]).max(),
    "stack": lambda x: np.stack([x[0], x[1]]).prod() + np.stack([x[:2], x[2:]]).prod(),
}


@pytest.mark.parametrize("name", LISTS)
def test_numpy_functions_take_lists_of_traced_numbers(name):
    x, direction = np.array([0.7, 1.3, -0.4, 0.9]), np.array([0.3, -0.2, 0.5, 0.1])
    function = LISTS[name]
    value, gradient = yota.value_and_grad(function)(x)
    assert value == pytest.approx(function(x), rel=1e-12)
    difference = (function(x + 1e-6 * direction) - function(x - 1e-6 * direction)) / 2e-6
    assert gradient @ direction == pytest.approx(difference, rel=1e-7)


def test_lists_of_one_number():
    for function in (lambda x: np.mean([x]), lambda x: np.array([x]).sum(), lambda x: (x / np.array([1.0]))[0]):
        assert yota.value_and_grad(function)(0.3) == (0.3, 1.0)
