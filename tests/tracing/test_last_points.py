"""Derivatives at the last point of what is interpolated, by one-sided differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import yota

interpolate = pytest.importorskip("scipy.interpolate")
ndimage = pytest.importorskip("scipy.ndimage")
stats = pytest.importorskip("scipy.stats")

X, Y = np.array([0.0, 1.0, 2.5, 4.0]), np.array([1.0, 3.0, 2.0, 7.0])
GRID = np.arange(4.0), np.arange(3.0)
HEIGHTS = np.outer(Y, [1.0, 2.0, 5.0])

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "quantile": (lambda q: np.quantile(Y, q), 0.0, 1.0),
    "quantile, method": (lambda q: np.quantile(Y, q, method="interpolated_inverted_cdf"), 0.3, 1.0),
    "quantile, hazen": (lambda q: np.quantile(Y, q, method="hazen"), 0.0, 1.0),
    "quantile, axis": (lambda q: np.sum(np.quantile(np.stack([Y, Y**2]), q, axis=1)), 0.0, 1.0),
    "nanquantile": (lambda q: np.nanquantile(np.append(Y, np.nan), q), 0.0, 1.0),
    "percentile": (lambda q: np.percentile(Y, q), 0.0, 100.0),
    "scoreatpercentile": (lambda q: stats.scoreatpercentile(Y, q), 0.0, 100.0),
    "interp": (lambda x: np.interp(x, X, Y, right=np.nan), 0.0, 4.0),
    "interp1d": (lambda x: interpolate.interp1d(X, Y)(x), 0.0, 4.0),
    "interp1d, filled": (lambda x: interpolate.interp1d(X, Y, bounds_error=False)(x), 0.0, 4.0),
    "interp1d, slinear": (lambda x: interpolate.interp1d(X, Y, kind="slinear")(x), 0.0, 4.0),
    "interp1d, cubic": (lambda x: interpolate.interp1d(X, Y, kind="cubic")(x), 0.0, 4.0),
    "grid": (lambda x: interpolate.RegularGridInterpolator(GRID, HEIGHTS)(np.stack([x, 0.5 * x]))[0], 0.0, 3.0),
    "grid, interpn": (lambda x: interpolate.interpn(GRID, HEIGHTS, np.stack([x, x / 3 + 1]))[0], 0.0, 3.0),
    "pixels": (lambda x: ndimage.map_coordinates(Y, np.stack([x])[None], order=1)[0], 0.0, 3.0),
    "pixels, wrapped": (lambda x: ndimage.map_coordinates(Y, [np.stack([x])], order=1, mode="wrap")[0], 0.0, 3.0),
}
if hasattr(stats, "quantile"):
    FUNCTIONS["stats.quantile"] = (lambda q: stats.quantile(Y, q), 0.0, 1.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slope_at_both_ends(name: str) -> None:
    f, first, last = FUNCTIONS[name]
    for end, sign in ((first, 1.0), (last, -1.0), (0.7 * first + 0.3 * last, 1.0)):
        steps = 1e-4 * sign * np.array([1.0, 0.5])
        slopes = [(float(f(end + step)) - float(f(end))) / step for step in steps]
        value, found = yota.value_and_grad(f)(end)
        assert value == f(end)
        np.testing.assert_allclose(found, 2.0 * slopes[1] - slopes[0], rtol=1e-6, atol=1e-7)


def test_numbers_that_are_not_finite_keep_the_value() -> None:
    for values in (np.array([-np.inf, 1.0]), np.array([1.0, np.inf]), np.array([2.0])):
        with np.errstate(invalid="ignore"):
            expected = np.quantile(values, 1.0)
            found = yota.value_and_grad(lambda q, values=values: np.quantile(values, q))(1.0)[0]
        np.testing.assert_equal(found, expected)
    x, y = np.array([0.0, 1.0, 1.0]), np.array([1.0, 2.0, np.inf])
    with np.errstate(invalid="ignore"):
        assert yota.value_and_grad(lambda at: np.interp(at, x, y, right=5.0))(1.0)[0] == np.interp(1.0, x, y, right=5.0)


@pytest.mark.parametrize(("which", "expected"), [(0, -10 / 3), (1, 1.0)])
def test_the_last_point_itself_may_move(which: int, expected: float) -> None:
    f = lambda x, y: np.interp(4.0, x, y, right=np.nan)
    np.testing.assert_allclose(yota.gradient(f, wrt=which)(X, Y), [0.0, 0.0, 0.0, expected], atol=1e-15)
