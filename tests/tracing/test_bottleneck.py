"""Reductions of Bottleneck against differences, as other packages call them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.tracing.test_leaks import assert_right

bn = pytest.importorskip("bottleneck")
X = np.array([1.25, 0.5, 2.0, -0.75, 3.0, 1.5])
HOLES = np.array([[0.0, np.nan, 0.0], [0.0, 0.0, 0.0]])
mean_by_another_name = bn.nanmean


def table(x):
    return x.reshape(2, 3) + HOLES


CASES = [
    lambda x: bn.nanmean(table(x)) ** 2 + mean_by_another_name(table(x), axis=0) @ x[:3],
    lambda x: np.sum(bn.nanstd(table(x), axis=1, ddof=1)) + bn.nanvar(table(x)),
    lambda x: bn.nansum(table(x) ** 2) + bn.ss(x),
    lambda x: bn.nanmax(table(x)) * bn.nanmin(table(x)) + bn.nanmedian(table(x), axis=1)[0] + bn.median(x),
    lambda x: x[bn.nanargmax(table(x))] * (2.0 if bn.anynan(table(x)) and not bn.allnan(table(x)) else 1.0),
]


@pytest.mark.parametrize("f", CASES)
def test_reductions(f):
    assert_right(f, X)
