"""The functions by which partials are judged, against mpmath's own and where a careless rule may send them."""

from __future__ import annotations

import mpmath
import pytest

from yota.rules.algebras.digits import _head
from yota.rules.oracles.special_functions import _macdonald

MP = mpmath.mp.clone()
MP.dps = 50
MACDONALD = _macdonald(MP)


@pytest.mark.parametrize("order", [0, 1, 2.5, 40])
@pytest.mark.parametrize("x", ["1e-59", "1e-19", "1e-8", "1", "30", "9e3", "1e11", "1e59"])
def test_macdonald_agrees_with_mpmath(order: float, x: str) -> None:
    point = MP.mpf(x)
    assert abs(MACDONALD(order, point) / MP.besselk(order, point) - 1) < MP.mpf("1e-48")


def test_macdonald_far_out() -> None:
    assert MP.mpf(1) < MACDONALD(1, MP.mpf(10) ** -1000)
    assert MACDONALD(0, MP.mpf(10) ** 100) == MACDONALD(1, MP.mpf(10) ** 100) < MP.mpf(1)


def test_numbers_beyond_doubles_are_not_computed() -> None:
    with pytest.raises(OverflowError, match="so large or so small"):
        _head("k1", [MP.mpf(10) ** -1_000_000])
