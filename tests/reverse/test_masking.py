"""Adjoints that are zero where a partial is infinite: what is overwritten, or never read, has no part in a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import yota

POINT = np.array([[0.0, 1.0, 3.0], [0.0, 2.0, 0.5]])
"""The first column is replaced by each function."""


def distance(x: Any) -> Any:
    return np.where(x[0] > x[1], x[0] - x[1], x[1] - x[0])


def of_one_array(x: Any) -> Any:
    s = x[0] / distance(x)
    s[distance(x) == 0] = 0.0
    return np.sum(s)


def of_a_row(x: Any) -> Any:
    out = np.zeros_like(x)
    out[0] = x[0] / distance(x)
    out[:, distance(x) == 0] = 0
    return np.sum(out)


def at_a_mask(x: Any) -> Any:
    d, out, larger = distance(x), np.zeros_like(x), x[0] >= x[1]
    out[0, larger] = x[0, larger] / d[larger]
    out[0, d == 0] = 0
    return np.sum(out[0])


def written_back(x: Any) -> Any:
    d, out = distance(x), np.zeros_like(x)
    out[0] = x[0] / d
    hue = out[0] / 6 + 1
    hue[d == 0] = 0
    out[0], out[1] = hue, d
    return np.sum(out * np.array([[1.0], [2.0]]))


def in_pieces(x: Any) -> Any:
    d, out = distance(x), np.zeros_like(x)
    for own, other in ((0, 1), (1, 0)):
        larger = x[own] >= x[other]
        out[0, larger] = own + (x[own, larger] - x[other, larger] ** 2) / d[larger]
    hue = out[0].copy()
    hue[d == 0] = 0
    out[0] = hue
    return np.sum(out[0] ** 2)


def of_places(x: Any) -> Any:
    """What is read is chosen by one number."""
    out = np.zeros_like(x[0])
    out[[0, 2]] = x[0, [0, 2]] / distance(x)[[0, 2]]
    return np.sum(np.where(x[0, 0] == 0, 0.0, out) ** 2) + np.sum(x[0] * x[1])


def of_stacked(x: Any) -> Any:
    """Two products of one quotient are overwritten together."""
    quotient = x[0] / distance(x)
    both = np.stack([1 + quotient * x[1], quotient * 3], axis=-1)
    both[distance(x) == 0] = np.nan
    return np.nansum(both**2)


def of_sorted(x: Any) -> Any:
    quotient = np.reshape(x[0] / distance(x), (3, 1))
    both = np.stack([1 + quotient * 2, quotient * 3], axis=-1)
    both[distance(x) == 0] = np.nan
    return np.sum(np.sort(both, 0)[:2, 0] ** 2)


FUNCTIONS = [of_one_array, of_a_row, at_a_mask, written_back, in_pieces, of_places, of_stacked, of_sorted]


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
def test_what_is_overwritten_has_no_part(f: Any, target: str) -> None:
    gradient = yota.gradient(f, target=target)(POINT)
    assert np.isfinite(gradient).all()
    # By differences of fourth order: the functions compare, which complex numbers do not.
    for place in ((0, 1), (1, 1), (0, 2), (1, 2)):
        step = np.zeros_like(POINT)
        step[place] = 1e-3
        near, far = f(POINT + step) - f(POINT - step), f(POINT + 2 * step) - f(POINT - 2 * step)
        np.testing.assert_allclose(gradient[place], (8 * near - far) / 12e-3, rtol=1e-7, atol=1e-9)


THICKNESS = np.array([np.inf, 1.0, 2.0, np.inf])


def of_layers(x: Any) -> Any:
    return np.sum(np.sin((x * THICKNESS)[1:3]))


def of_angle(x: Any) -> Any:
    phases = np.array([1.0, 2.0, 3.0, 4.0]) * np.cos(x[0]) * THICKNESS
    return sum(np.exp(-phases[i]) for i in range(1, 3))


def of_thickness(x: Any) -> Any:
    return np.prod((x * np.array([np.inf, x[1], x[2] ** 2, np.inf]))[1:3])


@pytest.mark.parametrize("f", [of_layers, of_angle, of_thickness])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_infinite_numbers_that_are_not_read_have_no_part(f: Any) -> None:
    x = np.array([0.3, 0.7, 0.9, 1.1])
    expected = [f(x + 1e-30j * unit).imag / 1e-30 for unit in np.eye(4)]
    np.testing.assert_allclose(yota.gradient(f)(x), expected, rtol=1e-13)
