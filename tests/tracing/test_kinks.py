"""The conventions of docs/kinks.md for functions that are recorded as several primitives."""

import numpy as np
import pytest

import yota


def _written(v, place, value):
    v[place] = value
    return v


def _copied(v, value, mask):
    np.copyto(v, value, where=mask)
    return v


LEVELS = np.array([0.0, 2.0, 3.0])
CASES = {
    "clip at an end": (lambda x: np.sum(np.clip(x, 0.0, 1.0)), [0.0, 0.5, 1.0, 2.0], [0.5, 1.0, 0.5, 0.0]),
    "ptp of ties": (lambda x: np.ptp(x), [1.0, 3.0, 3.0, 1.0], [-0.5, 0.5, 0.5, -0.5]),
    "median of ties": (lambda x: np.median(x), [2.0, 1.0, 2.0, 3.0, 2.0], 1.0),
    "running maximum of ties": (lambda x: np.sum(np.maximum.accumulate(x)), [1.0, 1.0, 1.0, 0.0], 4.0),
    "unique": (lambda x: np.sum(np.unique(x) * [1.0, 2.0]), [5.0, 3.0, 5.0, 3.0], [2.0, 1.0, 0.0, 0.0]),
    "interp at a point": (
        lambda x: np.sum(np.interp(x, [0.0, 1.0, 2.0], LEVELS)),
        [0.0, 1.0, 2.0, 9.0],
        [2.0, 1.0, 0.0, 0.0],
    ),
    "sinc": (lambda x: np.sum(np.sinc(x)), [0.0], [0.0]),
    "heaviside": (lambda x: np.sum(np.heaviside([0.0, 1.0], x)), [0.3], [1.0]),
    "nan_to_num": (lambda x: np.sum(np.nan_to_num(x)), [1.0, np.nan, np.inf], [1.0, 0.0, 0.0]),
    "nansum": (lambda x: np.nansum(2 * x), [1.0, np.nan], [2.0, 0.0]),
    "nanmean": (lambda x: np.nanmean(x), [1.0, np.nan, 3.0], [0.5, 0.0, 0.5]),
    "logaddexp of -inf": (lambda x: np.logaddexp.reduce(x), [-np.inf, 0.0], [0.0, 1.0]),
    "logaddexp of large": (lambda x: np.logaddexp.reduce(x), [1000.0, 1000.0], [0.5, 0.5]),
    "prod of zeros": (lambda x: np.prod(x), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    "branch not taken": (
        lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)),
        [0.0, 4.0],
        [0.0, 0.25],
    ),
    "branches not taken, nested": (
        lambda x: np.sum(np.where(x != 0, np.where(x < 5, np.sqrt(x), 0.0), 0.0)),
        [0.0, 4.0, 9.0],
        [0.0, 0.25, 0.0],
    ),
    "branch not taken, converted": (
        lambda x: np.sum(np.where(x > 0, np.sqrt(x).astype(np.float32), 0.0)),
        [0.0, 4.0],
        [0.0, 0.25],
    ),
    "a smaller operand": (lambda x: np.sum(np.maximum(np.sqrt(x), 0.5)), [0.0, 4.0], [0.0, 0.25]),
    "written over": (lambda x: np.sum(_written(np.log(x), slice(0, 2), x[:2] ** 2)), [0.0, 2.0, 4.0], [0.0, 4.0, 0.25]),
    "written over at indices": (
        lambda x: np.sum(_written(np.log(x), [1, 0], x[:2])),
        [0.0, 2.0, 4.0],
        [1.0, 1.0, 0.25],
    ),
    "written over by copyto": (lambda x: np.sum(_copied(np.sqrt(x), x**2, x == 0)), [0.0, 4.0], [0.0, 0.25]),
    "pad of ties": (lambda x: np.sum(np.pad(x, 1, "maximum")), [1.0, 1.0], [2.0, 2.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_convention(name):
    function, x, expected = CASES[name]
    with np.errstate(all="ignore"):
        found = yota.grad(function, np.array(x))[1][0]
    if isinstance(expected, float):
        assert np.sum(found) == expected and np.all(found >= 0)
    else:
        np.testing.assert_allclose(found, expected, atol=1e-12)
