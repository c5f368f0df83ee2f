"""With strict=True, loops that end by values compute all that they carry with NumPy's bits."""

from __future__ import annotations

import numpy as np
import pytest

import yota


def several(x):
    a, b, c = x, 0.7 * x, 1.0 * x
    while np.sum(a) > 1e-3:
        a = a * 0.7
        b = 0.2 * (0.7 * b) * x + x * (0.3 * b)
        c = (0.1 * c * 0.3) * b * 7.0 - 0.3 * (-c * 0.1)
    return np.sum(b * c + b) + np.sum(c)


@pytest.mark.parametrize("target", ["numpy", "c"])
@pytest.mark.parametrize("x", [2.3, np.linspace(0.3, 1.4, 5)], ids=["number", "array"])
def test_strict_keeps_the_bits_of_all_that_is_carried(x, target):
    value, _ = yota.value_and_grad(yota.interpreted(several), target=target, strict=True)(x)
    assert value == several(x)
