"""Inverses of increasing functions, to as many digits as mpmath works with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["root"]


def root(mp: Any, function: Callable[[Any], Any]) -> Any:
    """Where an increasing function passes 0: halved to a few digits, then by secants."""
    low, high = mp.mpf(-700), mp.mpf(700)
    with mp.workdps(15):
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return mp.findroot(function, (low, high), solver="secant", verify=False)
