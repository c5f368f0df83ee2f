"""Derivatives of a call by extrapolated differences, argument by argument."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.survey.calls import is_moving
from yota.rules.laws.sampling import noise, slope_along
from yota.structures import flatten, is_leaf, rebuild

__all__ = ["Slope", "directions", "moved", "slope", "symmetric", "symmetrised"]

_STEPS, _PARTS = (2.0**-11, 2.0**-21, 2.0**-42), (5e-2, 1e-4, 1e-4)
"""Steps that must agree, as far as digits go, for a slope to be one, and to which part of it."""

_LARGEST = 1e100
"""Of larger values no difference has a digit."""


@dataclass(frozen=True)
class Slope:
    """A directional derivative and an estimate of its error; infinite where there is none or it is not known."""

    value: float
    error: float
    constant: bool = False

    @property
    def known(self) -> bool:
        return math.isfinite(self.error)


def directions(value: Any, random: np.random.Generator) -> list[Any]:
    """A step for each number of an argument, as long as the number, or as the mean."""
    return [_direction(leaf, random) if is_moving(leaf) else 0.0 for _, leaf in flatten(value) if is_leaf(leaf)]


def _direction(leaf: Any, random: np.random.Generator) -> Any:
    array = np.asarray(leaf)
    step = random.standard_normal(array.shape)
    if array.dtype.kind == "c":
        step = step + 1j * random.standard_normal(array.shape)
    finite = np.isfinite(array)
    sizes = np.abs(np.where(finite, array, 0.0)).astype(float)
    mean = float(np.sqrt(np.mean(sizes**2))) if np.any(sizes) else 1.0
    return np.where(finite, step * np.maximum(sizes, mean), 0.0)


def symmetric(value: Any) -> bool:
    """Whether an argument is a symmetric or Hermitian matrix or a stack of them, as an array or as lists."""
    matrix = _matrix(value)
    return matrix is not None and bool(np.allclose(matrix, np.conj(np.swapaxes(matrix, -1, -2)), rtol=1e-12, atol=0))


def symmetrised(value: Any, steps: list[Any]) -> list[Any]:
    """Steps of a symmetric argument, as which it stays symmetric: some functions read one triangle (docs/kinks.md)."""
    whole = np.reshape(np.asarray(steps), np.shape(value))
    even = whole + np.conj(np.swapaxes(whole, -1, -2))
    if isinstance(value, np.ndarray):
        return [even]
    leaves = [leaf for _, leaf in flatten(value)]
    return [each if isinstance(leaf, complex) else each.real for leaf, each in zip(leaves, even.flat, strict=True)]


def _matrix(value: Any) -> Any:
    """A square matrix or a stack of them; None for anything else."""
    if not isinstance(value, np.ndarray) and not (isinstance(value, list) and isinstance(value[0], list)):
        return None
    try:
        found = np.asarray(value)
    except ValueError:
        return None
    return found if found.ndim > 1 and found.shape[-1] == found.shape[-2] > 1 and found.dtype.kind in "fc" else None


def moved(value: Any, steps: list[Any], h: float) -> Any:
    """An argument that is moved along a direction."""
    leaves = [leaf for _, leaf in flatten(value) if is_leaf(leaf)]
    return rebuild(
        value,
        iter([_moved(leaf, step, h) for leaf, step in zip(leaves, steps, strict=True)]),
    )


def _moved(leaf: Any, step: Any, h: float) -> Any:
    if not is_moving(leaf):
        return leaf
    if isinstance(leaf, np.ndarray):
        return (leaf + h * step).astype(leaf.dtype, copy=False)
    return type(leaf)(leaf + h * step)


def slope(along: Callable[[float], float]) -> Slope:
    """The derivative at 0, if it is one."""
    rounding = noise(along)
    value, error = slope_along(along, rounding, 1e-8, 0.0)
    middle = along(0.0)
    if not abs(middle) < _LARGEST:
        return Slope(math.nan, math.inf)
    if value == 0.0 and all(along(sign * step) == middle for step in (2.0**-4, 2.0**-8, *_STEPS) for sign in (-1, 1)):
        return Slope(0.0, 0.0, constant=True)
    ends = [(step, (along(step) - along(-step)) / (2 * step)) for step in _STEPS]
    digits = 50 * sys.float_info.epsilon * abs(middle) + 10 * rounding
    allowed = [abs(value) * part + digits / step for part, (step, _) in zip(_PARTS, ends, strict=True)]
    smooth = all(abs(end - value) <= most for most, (_, end) in zip(allowed, ends, strict=True))
    # What the slopes on both sides differ by goes with the step; at a kink it stays.
    far, near = (abs(along(step) - 2 * middle + along(-step)) / step for step in (2.0**-14, 2.0**-18))
    smooth = smooth and near <= min(far / 4, 1e-3 * (abs(value) + abs(middle))) + 4 * digits * 2.0**18
    # An extrapolation can settle on a slope that short steps do not have.
    error = max(error, digits / _STEPS[0], 0.0 if value else 1e-8 * abs(middle), abs(ends[1][1] - value) / 20)
    known = smooth and error <= 1e-3 * abs(value) + 1e-7 * abs(middle) + 1e-10
    return Slope(value, error) if known else Slope(math.nan, math.inf)
