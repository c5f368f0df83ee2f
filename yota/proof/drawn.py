"""Arrays for proofs, drawn at random but always the same."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

__all__ = ["Array", "Case", "compound", "hermitian", "real", "regular", "spd", "symmetric"]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Case = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Name of a primitive, operands and static keywords."""


def real(*shape: int, seed: int = 0, shift: float = 0.0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape) + shift


def compound(*shape: int, seed: int = 0) -> Any:
    """Complex ones."""
    return real(*shape, seed=seed) + 1j * real(*shape, seed=seed + 1)


def regular(*shape: int, seed: int = 0) -> Any:
    """Matrices far from singular ones."""
    return real(*shape, seed=seed) + 4 * np.eye(shape[-1])


def symmetric(*shape: int) -> Any:
    """Symmetric matrices."""
    a = real(*shape)
    return a + np.swapaxes(a, -1, -2)


def hermitian(*shape: int) -> Any:
    """Hermitian matrices."""
    a = compound(*shape)
    return a + np.conjugate(np.swapaxes(a, -1, -2))


def spd(*shape: int) -> Any:
    """Symmetric positive matrices."""
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + 3 * np.eye(shape[-1])
