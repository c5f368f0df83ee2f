"""Functions that the user's code knows by names of its own, as after ``from numpy import zeros``, record too."""

from __future__ import annotations

import math
import threading
from cmath import exp as complex_exp
from functools import partial
from math import sin as sine

import numpy as np
import pytest
from numpy import array, full_like, linspace, r_, zeros
from numpy.linalg import norm
from scipy.fft import dct
from scipy.special import logsumexp

import yota

X = np.array([0.5, 1.5, 2.5, 4.0])
helpers = type("Helpers", (), {"root": staticmethod(math.sqrt)})


def written(x):
    out = zeros(3)
    out[0] = x[0] ** 2
    return np.sum(out) * np.sum(array([x[1], 2.0])) + np.sum(full_like(x, x[3]))


def closure(function):
    return lambda x: np.sum(function([x[0] * x[1], 2.0]))


IMPORTED = {
    "creation": written,
    "in a helper": lambda x: written(x) * 2,
    "in a closure": closure(np.array),
    "math": lambda x: sine(x[0]) * 2,
    "cmath": lambda x: complex_exp(1j * x[0]).imag,
    "scipy": lambda x: logsumexp(x),
    "lists": lambda x: norm([x[0], x[1], 2.0]),
    "linspace": lambda x: np.sum(linspace(x[0], x[1], 4) ** 2),
    "index trick": lambda x: np.sum(r_[x, x[0], 1.0] ** 2),
    "transform": lambda x: np.sum(dct(x) ** 2),
}


@pytest.mark.parametrize("name", IMPORTED)
def test_functions_imported_by_name_record(name):
    f, names = IMPORTED[name], dict(globals())
    value, g = yota.grad(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-13)
    assert yota.gradcheck(f, X) and np.any(g[0])
    assert yota.value_and_grad(f)(X)[0] == value and yota.trace(f, X)[0] == value
    assert {key for key, each in globals().items() if names.get(key) is not each} == set()


def test_a_recording_function_itself_is_differentiated():
    assert yota.grad(math.sin, 0.5)[1][0] == math.cos(0.5)
    assert yota.gradient(math.gamma)(3.0) == pytest.approx(1.845568670196934)
    assert yota.gradcheck(logsumexp, X)
    assert yota.gradcheck(partial(logsumexp, b=2.0), X)


def test_other_threads_see_plain_functions():
    found = []

    def f(x):
        thread = threading.Thread(target=lambda: found.append(type(zeros(3))))
        thread.start()
        thread.join()
        return np.sum(x * zeros(4))

    yota.grad(f, X)
    assert found == [np.ndarray]
