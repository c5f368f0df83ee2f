"""Slices of every start, stop and step select what NumPy's do: read, written, viewed again, deleted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import yota
from tests.emit.compiled import needs_compiler
from tests.generated import loaded

BOUNDS = [None, *range(-7, 8)]
STEPS = [None, 1, 2, 3, 7, -1, -2, -3, -7]
EVERY = [slice(*each) for each in itertools.product(BOUNDS, BOUNDS, STEPS)]
AGAIN = [slice(None, None, -1), slice(-2, None, -1), slice(1, None, 2), slice(-3, -1), slice(4, 0, -2)]


def apart(extent: int) -> list[slice]:
    """One slice for each way to select elements, and for each way to select none."""
    found = {}
    for each in EVERY:
        chosen = range(*each.indices(extent))
        found[tuple(chosen) or (each.start, each.step)] = each
    return list(found.values())


def reads(x: Any) -> Any:
    return np.concatenate([x[:0], *(x[each] for each in EVERY)])


def views(x: Any) -> Any:
    return np.concatenate([x[:0], *(x[one][other] for one in apart(len(x)) for other in AGAIN)])


def writes(x: Any) -> Any:
    results = []
    for number, each in enumerate(apart(len(x))):
        y = x * 1.0
        y[each] *= 3.0
        y[each][::-1][-2::-1] += 1.0
        y[each][:2] = number
        results.append(y)
        results.append(np.delete(x, each))
    return np.concatenate(results)


@pytest.mark.parametrize("extent", range(6))
@pytest.mark.parametrize("function", [reads, views, writes])
def test_every_slice(function: Any, extent: int) -> None:
    x = np.arange(1.0, extent + 1)
    value, tape = yota.trace(function, x)
    np.testing.assert_array_equal(value, function(x))
    if function is not reads:
        np.testing.assert_array_equal(yota.compile(tape)(x + 0.5), function(x + 0.5))


def chosen(x: Any) -> Any:
    """Some of the slices, that the targets compile."""
    total = 0.0
    for number, each in enumerate(apart(len(x))[::5]):
        y = x * 1.0
        y[each] *= 3.0
        y[-2::-1] *= 2.0
        total = total + np.sum(y**2) * (number + 1) + np.sum(x[each] ** 3) + np.sum(x[each][-2::-1])
    return total


@needs_compiler
@pytest.mark.parametrize("extent", [1, 2, 5])
def test_in_every_target(extent: int) -> None:
    x = np.arange(1.0, extent + 1)
    exact = [np.imag(chosen(x + 1e-30j * unit)) / 1e-30 for unit in np.eye(extent)]
    module = loaded(str(yota.generate(chosen, {"x": f"float64[{extent}]"})))
    for found in (yota.value_and_grad(chosen, target=each) for each in ("numpy", "c")):
        value, gradient = found(x)
        np.testing.assert_allclose(value, chosen(x), rtol=1e-14)
        np.testing.assert_allclose(gradient, exact, rtol=1e-13)
    value, gradient = module.chosen_value_and_gradient(x)
    np.testing.assert_allclose(value, chosen(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, exact, rtol=1e-13)


def test_the_slice_of_one_element() -> None:
    x = np.arange(3.0)
    assert yota.trace(lambda x: x[:1][-2::-1], x)[0].shape == (0,)
    assert yota.trace(lambda x: x[:1][-2::-1].copy(), x)[0].shape == (0,)


def changed(x):
    y = x * 2
    y[np.argmax(x)] = 0.0
    y[np.argmin(x)] += x[0]
    return y @ x


AT_PLACES = {
    "largest": lambda x: x[np.argmax(x)] ** 2,
    "from the end": lambda x: x[-1 - np.argmax(x)] * x[np.argmax(x) - 3],
    "of a matrix": lambda x: np.outer(x, x)[np.argmax(x), np.argmin(x)],
    "in order": lambda x: sum(x[place] * rank for rank, place in enumerate(np.argsort(x))),
    "found": lambda x: x[np.searchsorted(np.cumsum(np.abs(x)), 1.5)] * x[1],
    "rounded": lambda x: x[np.floor(3 * np.abs(x[0])).astype(int)],
    "written": changed,
}


@pytest.mark.parametrize("target", ["numpy", pytest.param("c", marks=needs_compiler)])
@pytest.mark.parametrize("name", AT_PLACES)
def test_elements_at_places_that_are_computed(name, target):
    """One recording holds for all places, and so does a generated module."""
    function, rng = AT_PLACES[name], np.random.default_rng(0)
    slope = yota.value_and_grad(function, target=target, dynamic=False)
    for _ in range(20):
        x = rng.normal(size=12)
        value, gradient = slope(x)
        direction = 1e-7 * rng.normal(size=12)
        assert value == pytest.approx(function(x), rel=1e-12)
        difference = (function(x + direction) - function(x - direction)) / 2
        assert gradient @ direction == pytest.approx(difference, rel=1e-6, abs=1e-13)


def test_places_outside_are_refused_as_numpy_does():
    with pytest.raises(IndexError, match="index 12 is out of bounds"):
        yota.grad(lambda x: x[np.argmax(x) + 12 - np.argmax(x)], np.arange(12.0))
    slope = yota.value_and_grad(lambda x: x[np.argmax(x) + 1], dynamic=False)
    slope(np.array([1.0, 0.0]))
    with pytest.raises(IndexError):
        slope(np.array([0.0, 1.0]))
