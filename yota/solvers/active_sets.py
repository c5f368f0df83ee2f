"""Linear constraints of a minimum: which of them bind, and the directions that these leave no room for."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.callables import original

_NEAR = 1e-3
"""How near to its end a constraint may bind, as a part of its size: some solvers stop before the end."""
_EXACT = 1e-12
_PUSH = 1e-7
"""The least multiplier of a constraint that binds, as a part of the gradient, or of one."""


def stacked(constraints: Sequence[Any], bounds: tuple[Any, Any] | None, count: int) -> tuple[Any, Any, Any]:
    """A matrix, and the lower and upper ends of its product with the solution, of ``LinearConstraint``s and bounds."""
    parts = [
        (each.A.toarray() if hasattr(each.A, "toarray") else np.atleast_2d(each.A), each.lb, each.ub)
        for each in constraints
    ]
    if bounds is not None:
        parts.append((np.eye(count), *bounds))
    matrix = np.concatenate([np.asarray(each[0], float) for each in parts])
    lower, upper = (
        np.concatenate([np.broadcast_to(np.asarray(each[side], float), len(each[0])) for each in parts])
        for side in (1, 2)
    )
    return matrix, lower, upper


def taken_away(rows: tuple[Any, Any, Any], x: Any, loss: Callable[[Any], float]) -> Any:
    """The orthogonal projection onto the normals of the constraints that bind at ``x``, a minimum of ``loss``."""
    norms = np.linalg.norm(rows[0], axis=1)
    matrix, lower, upper = (each[norms > 0] for each in rows)
    norms = norms[norms > 0]
    matrix, lower, upper = matrix / norms[:, None], lower / norms, upper / norms
    value, fixed = matrix @ x, lower == upper
    size = max(1.0, float(np.max(np.abs(x), initial=0.0)))
    low, high = ~fixed & (value - lower <= _NEAR * size), ~fixed & (upper - value <= _NEAR * size)
    normals = np.concatenate([matrix[low], -matrix[high]])
    away = np.concatenate([(value - lower)[low], (upper - value)[high]])
    binds = _pushed(normals, matrix[fixed], _slope(loss, x))
    held = np.concatenate([normals[binds], matrix[fixed]])
    if np.any(away[binds] > _EXACT * size):
        # On the constraints that bind, the function is lower than just before them.
        rest = np.concatenate([away[binds], (value - lower)[fixed]])
        if not loss(x - np.linalg.pinv(held) @ rest) < loss(x):
            held = np.concatenate([normals[binds & (away <= _EXACT * size)], matrix[fixed]])
    return np.linalg.pinv(held) @ held if len(held) else np.zeros((len(x), len(x)))


def _pushed(normals: Any, fixed: Any, slope: Any) -> Any:
    """Which inequalities, by their normals, have multipliers above zero; those of equations have any sign."""
    columns = np.concatenate([normals, fixed, -fixed])
    if not len(normals) or not np.all(np.isfinite(slope)):
        return np.ones(len(normals), bool)
    pushes, _ = original(importlib.import_module("scipy.optimize").nnls)(columns.T, slope)
    return pushes[: len(normals)] > _PUSH * max(1.0, float(np.max(np.abs(slope))))


def _slope(loss: Callable[[Any], float], x: Any) -> Any:
    """The gradient by differences, one-sided where a function ends."""
    found = np.zeros(len(x))
    with np.errstate(all="ignore"):
        here = loss(x)
        for place in range(len(x)):
            step = np.zeros(len(x))
            step[place] = np.cbrt(np.finfo(float).eps) * max(1.0, abs(x[place]))
            up, down = loss(x + step), loss(x - step)
            parts = [(up - here) / step[place], (here - down) / step[place]]
            known = [each for each in parts if np.isfinite(each)]
            found[place] = np.mean(known) if known else np.nan
    return found
