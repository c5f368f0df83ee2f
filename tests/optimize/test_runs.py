"""Constant index arrays that run in steps become slices: same elements, same gradients, whatever the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import yota
from yota.ir.indexing import Slice
from yota.optimize.simplify_layout import slices

LENGTH = 100
RUN = st.tuples(st.integers(0, LENGTH - 1), st.integers(-3, 3), st.integers(1, 60))


def taken(found: list[Slice]) -> np.ndarray[Any, Any]:
    return np.concatenate([np.arange(LENGTH)[slice(each.start, each.stop, each.step)] for each in found])


@settings(max_examples=200)
@given(st.lists(RUN, min_size=1, max_size=9), st.booleans())
def test_slices_are_the_elements_at_the_places(runs: list[tuple[int, int, int]], negative: bool) -> None:
    parts = [start + step * np.arange(count) for start, step, count in runs]
    places = np.concatenate([part[(part >= 0) & (part < LENGTH)] for part in parts])
    found = slices(places - LENGTH if negative else places, LENGTH)
    if found is not None:
        assert len(found) <= 8
        np.testing.assert_array_equal(taken(found), places)
    if len(places) >= 64 and all(step for _, step, _ in runs) and 16 * len(runs) <= len(places):
        assert found is None or len(found) <= 2 * len(runs)


def test_short_or_wild_places_stay() -> None:
    assert slices(np.arange(63), LENGTH) is None
    assert slices(np.random.default_rng(0).permutation(LENGTH), LENGTH) is None
    assert slices(np.zeros(LENGTH, int), LENGTH) is None
    assert slices(np.arange(LENGTH).reshape(10, 10), LENGTH) is None


REFLECTED = np.r_[2, 1, np.arange(LENGTH), 98, 97]


@pytest.mark.parametrize(
    "places",
    [REFLECTED, np.arange(LENGTH)[::-1], np.arange(0, LENGTH, 1) - LENGTH, np.r_[np.arange(90), np.arange(90)]],
)
@pytest.mark.parametrize("axis", [0, 1])
def test_values_and_gradients(places: np.ndarray[Any, Any], axis: int) -> None:
    x = np.random.default_rng(1).normal(size=(LENGTH, LENGTH))
    weights = np.random.default_rng(2).normal(size=(len(places), LENGTH) if axis == 0 else (LENGTH, len(places)))

    def f(x: Any) -> Any:
        return np.sum(np.take(x, places, axis=axis) ** 3 * weights)

    value, g = yota.grad(f, x)
    body = "".join(line for line in g.source.partition("def f")[2].splitlines() if "#" not in line)
    assert "add.at" not in body
    assert "np.take" not in body
    expected = np.zeros_like(x)
    where = (places,) if axis == 0 else (slice(None), places)
    np.add.at(expected, where, 3 * x[where] ** 2 * weights)
    np.testing.assert_allclose(value, np.sum(x[where] ** 3 * weights), rtol=1e-12)
    np.testing.assert_allclose(g[0], expected, rtol=1e-12)


def test_strict_values_are_gathered_as_the_function_does() -> None:
    x = np.random.default_rng(3).normal(size=LENGTH)

    def f(x: Any) -> Any:
        return np.sum(x[REFLECTED])

    assert yota.value_and_grad(f, strict=True)(x)[0] == f(x)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_elements_added_at_places_below_zero(dtype: Any) -> None:
    places = np.random.default_rng(4).integers(-50, 50, (40, 30)).astype(dtype)
    for shape in ((50,), (50, 1), (50, 6), (50, 2, 3)):
        x = np.random.default_rng(5).normal(size=shape)
        weights = np.random.default_rng(6).normal(size=(40, 30, *shape[1:]))
        value, g = yota.grad(lambda x, weights=weights: np.sum(x[places] ** 2 * weights), x)
        expected = np.zeros_like(x)
        np.add.at(expected, places, 2 * x[places] * weights)
        np.testing.assert_allclose(g[0], expected, rtol=1e-12)


def test_a_mask_of_all_elements_adds_nothing_to_zeros() -> None:
    x = np.linspace(0.1, 0.9, LENGTH)

    def f(x: Any) -> Any:
        return np.sum(np.sin(x[x < 1]) * x)

    value, g = yota.grad(f, x)
    assert "np.empty" not in g.source
    np.testing.assert_allclose(g[0], np.sin(x) + x * np.cos(x), rtol=1e-13)
