"""Pushforwards and pullbacks of functions that return structures."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import yota
from yota.errors import DifferentiationError
from yota.run.machine import native

TARGETS = ["numpy", pytest.param("c", marks=pytest.mark.skipif(not native.is_available(), reason="no C compiler"))]
X, W = np.array([0.3, 0.7, 1.1]), np.array([[1.0, 2.0, 0.5], [0.2, -1.0, 3.0]])


class Pair(NamedTuple):
    hidden: Any
    rest: Any


def f(x, w):
    hidden = np.tanh(w @ x)
    return Pair(hidden, {"norm": np.sum(hidden**2), "outer": np.outer(hidden, x), "fixed": np.ones(2, w.dtype)})


def in_jax(x, w):
    hidden = jnp.tanh(w @ x)
    return Pair(hidden, {"norm": jnp.sum(hidden**2), "outer": jnp.outer(hidden, x), "fixed": jnp.ones(2, w.dtype)})


COTANGENT = Pair(np.array([1.0, -2.0]), {"norm": 0.5, "outer": W * 2, "fixed": np.ones(2)})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_in_jax(dtype, target):
    x, w = X.astype(dtype), W.astype(dtype)
    cotangent = jax.tree.map(lambda each: np.asarray(each, dtype), COTANGENT)
    rtol = 1e-10 if dtype is np.float64 else 1e-5
    value, pullback = yota.vjp(f, x, w, target=target)
    pushed = yota.jvp(f, (x, w), (2 * x, w - 1), target=target)
    with jax.enable_x64(True):
        expected, back = jax.vjp(in_jax, x, w)
        forward = jax.jvp(in_jax, (x, w), (2 * x, w - 1))
        adjoints = back(jax.tree.map(jnp.asarray, cotangent))
    for one, other in zip(pullback(cotangent), adjoints, strict=True):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=rtol)
    assert type(value) is type(pushed[1]) is Pair
    for one, other in ((value, expected), *zip(pushed, forward, strict=True)):
        np.testing.assert_allclose(one.hidden, other.hidden, rtol=rtol)
        for key in ("norm", "outer", "fixed"):
            np.testing.assert_allclose(one.rest[key], other.rest[key], rtol=rtol, atol=1e-12)
    still = yota.jvp(f, (x, w), (None, None))[1]
    assert not np.any(still.rest["outer"]) and still.rest["outer"].shape == (2, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_complex_branches_and_pickles(target):
    def wave(z):
        return {"e": np.exp(z), "s": np.sum(np.real(z) ** 2)} if np.real(z[0]) > 0 else {"e": z, "s": 0.0}

    z, v = np.array([0.5 + 1j, 2.0]), np.array([1.0, 1j])
    value, tangent = yota.jvp(wave, (z,), (v,), target=target)
    np.testing.assert_allclose(tangent["e"], np.exp(z) * v)
    np.testing.assert_allclose(tangent["s"], np.sum(2 * z.real * v.real))
    _, pullback = yota.vjp(wave, z, target=target, dynamic=True)
    (adjoint,) = pullback({"e": v, "s": 2.0})
    np.testing.assert_allclose(adjoint, np.conjugate(np.exp(z)) * v + 4 * z.real)
    _, pullback = yota.vjp(f, X, W, target=target)
    again = pickle.loads(pickle.dumps(pullback))
    np.testing.assert_array_equal(again(COTANGENT)[0], pullback(COTANGENT)[0])


def test_lists_of_numbers_are_vectors():
    value, pullback = yota.vjp(lambda x: [x[0] * x[1], x[2]], X)
    np.testing.assert_allclose(pullback(np.array([2.0, 3.0]))[0], [2 * X[1], 2 * X[0], 3.0])


def test_what_does_not_fit_is_refused():
    _, pullback = yota.vjp(f, X, W)
    with pytest.raises(DifferentiationError, match="the cotangent has parts at"):
        pullback(Pair(np.ones(2), {"norm": 1.0}))
    with pytest.raises(DifferentiationError, match=r"the cotangent has shape \(3,\), the value has shape \(2,\)"):
        pullback(COTANGENT._replace(hidden=np.ones(3)))
