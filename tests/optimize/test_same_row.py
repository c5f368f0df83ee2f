"""Pieces that are added to one row of an adjoint are one sum."""

from __future__ import annotations

import numpy as np
import pytest

import yota
from yota.optimize import pipeline


def squares(x):
    """Rows that are read several times."""
    return np.sum(x[0] * x[1] - x[1] * x[2] + x[0] ** 3 - x[-1])


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_adjoints_of_rows_are_added_before_they_are_written(size):
    x = np.random.default_rng(size).normal(size=(3, size))
    result = yota.grad(squares, x)
    expected = [x[1] + 3 * x[0] ** 2, x[0] - x[2], -x[1] - 1.0]
    np.testing.assert_allclose(result[1][0], expected, rtol=1e-14, atol=1e-14)
    for op in pipeline.run(result[1].tape).ops:
        if op.name == "scatter":
            assert len(set(op.keyword("indices"))) == len(op.operands) == 3


def test_rows_that_overlap_in_part_are_added_in_their_order():
    x = np.random.default_rng(0).normal(size=(2, 1000))
    gradient = yota.gradient(lambda x: np.sum(x[0, :600] ** 2) + np.sum(x[0, 400:] ** 3) + np.sum(np.sin(x[0, :600])))
    expected = np.zeros((2, 1000))
    expected[0, :600] += 2 * x[0, :600] + np.cos(x[0, :600])
    expected[0, 400:] += 3 * x[0, 400:] ** 2
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-13)
