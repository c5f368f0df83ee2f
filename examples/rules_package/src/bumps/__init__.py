"""Bumps and springs."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["bump", "stretch", "stretch_vjp"]


def bump(x: Any) -> Any:
    """1 / (1 + x^2), which is 1 at 0 and falls off on both sides."""
    return 1 / (1 + x * x)


def stretch(x: Any) -> Any:
    """Squared lengths of a chain's springs."""
    return np.square(np.diff(x))


def stretch_vjp(v: Any, x: Any) -> Any:
    """What `stretch` passes back."""
    pull = 2 * v * np.diff(x)
    return np.concatenate([-pull[:1], pull[:-1] - pull[1:], pull[-1:]])
