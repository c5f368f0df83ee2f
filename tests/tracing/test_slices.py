"""Slices of every start, stop and step select what NumPy's do: read, written, viewed again, deleted."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import yota
from tests.codegen.compiled import needs_compiler
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
