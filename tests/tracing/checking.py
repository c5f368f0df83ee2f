"""Holds the gradient of a function of arrays against central differences, through a weighted sum of its results."""

from __future__ import annotations

import numpy as np

import yota


def real(*shape, seed=0, low=-2.0, high=2.0):
    """Random numbers without ties."""
    return np.random.default_rng(seed + 7 * sum(shape)).uniform(low, high, shape)


def compound(*shape, seed=0):
    """Random complex numbers."""
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


def weighted(function):
    """``function`` made a scalar: its floating results, each element with a weight of its own."""

    def loss(*args):
        results = function(*args)
        total = 0.0
        for number, result in enumerate(results if isinstance(results, (tuple, list)) else [results]):
            kind = result.dtype.kind if hasattr(result, "dtype") else np.asarray(result).dtype.kind
            if kind not in "fc":
                continue
            weights = np.cos(1.7 * np.arange(np.size(result)).reshape(np.shape(result)) + number + 0.3)
            part = np.real(result) + 0.7 * np.imag(result) if kind == "c" else result
            total = total + np.sum(weights * part)
        return total

    return loss


def check(function, *args, second=False, rtol=1e-6, atol=1e-7):
    """The value is NumPy's, the gradient is that of central differences; with ``second``, also that of the gradient."""
    loss = weighted(function)
    value, _ = yota.grad(loss, *args)
    np.testing.assert_allclose(value, loss(*args), rtol=1e-10, atol=1e-12)
    # A direction has a part along every element: one that is wrong shows in each.
    assert yota.gradcheck(loss, *args, rtol=rtol, atol=atol, directions=1)
    if second:
        assert yota.gradcheck(Steepness(loss), *args, rtol=1e-5, atol=1e-6, directions=1)


class Steepness:
    """A scalar of the gradient of a loss by its first argument."""

    def __init__(self, loss):
        self.slope = yota.gradient(loss)

    def __call__(self, x, *rest):
        found = self.slope(x, *rest)
        weights = np.sin(1.3 * np.arange(np.size(found)).reshape(np.shape(found)) + 0.5)
        return np.sum(weights * np.real(found))


def without_source(text, **names):
    """What ``text``, an expression, gives in a module of its own, which has no source for anybody to read."""
    scope = {"np": np, "__name__": "elsewhere", **names}
    return eval(compile(text, "<nowhere>", "eval"), scope)
