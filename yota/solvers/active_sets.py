"""Bounds and constraints of a minimum: which of them are active at the solution."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.callables import original
from yota.ir.serialised import Carried
from yota.ir.types import TensorType
from yota.tracing.current import paused

_NEAR = 1e-3
"""How near to its end a row may be active, as a part of the solution or of one: some solvers stop before the end."""
_EXACT = 1e-12
_ZERO = 1e-7
"""Up to which part of the gradient, and of its change over the solution, a multiplier is zero."""
_DEPENDENT = 1e-9
"""Up to which length of what is left of it a normal of length one is a sum of others."""


@dataclass(frozen=True, eq=False)
class Row:
    """A bound, or an element of a constraint.

    fixed: whether it is linear, and its numbers are plain.
    """

    label: str
    fixed: bool


class Rows(Carried):
    """The bounds, and then the elements of each constraint."""

    def __init__(self) -> None:
        self._groups: list[tuple[str, int, bool]] = []

    def add(self, label: str, count: int, fixed: bool) -> None:
        """Add rows, whose numbers take the place of ``{}`` in their labels."""
        self._groups.append((label, count, fixed))

    def __len__(self) -> int:
        return sum(count for _, count, _ in self._groups)

    def __getitem__(self, number: int) -> Row:
        for label, count, fixed in self._groups:
            if number < count:
                return Row(label.format(number), fixed)
            number -= count
        raise IndexError(number)


@dataclass(frozen=True, eq=False)
class ActiveSet(Carried):
    """The active set of a solution, as the host of a `solved` op.

    The operands are the solution, the gradient and the bounds; where there are constraints, their values, lower ends,
    upper ends and Jacobian; and what the loss reads.

    rows: the bounds, and then the constraints.
    loss: gives what is made small, as a function of a step from the solution, for the solution and what it reads.
    """

    name: str
    rows: Rows
    loss: Callable[..., Callable[[Any], float]]

    @property
    def __name__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<active set of {self.name}>"

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The type of the only result."""
        return (TensorType(np.dtype(np.int64), (len(self.rows),)),)

    def on(self, target: Any) -> ActiveSet:
        """The same, as it is in code for a target."""
        return self

    def adjoints(self, at: Any) -> list[tuple[int, int]]:
        """None: the result is of whole numbers."""
        return []

    def __call__(self, x: Any, slope: Any, low: Any, high: Any, *more: Any) -> tuple[Any]:
        """For each row -1 or 1, if its lower or its upper end is active, or else 0.

        Raises DifferentiationError if the solver did not converge, if a row is at its end without a multiplier, or if
        the gradients of active rows are linearly dependent.
        """
        count = np.size(x)
        inner, begin, end, matrix = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, count))
        if len(self.rows) > count:
            (inner, begin, end, matrix), more = more[:4], more[4:]
        values, slope = np.concatenate([np.ravel(x), inner]), np.ravel(slope)
        lower, upper = np.concatenate([np.ravel(low), begin]), np.concatenate([np.ravel(high), end])
        if not all(np.all(np.isfinite(each)) for each in (slope, values, matrix)):
            self._refuse("the gradient of the function, or of a constraint, is infinite or no number")
        with paused(), np.errstate(all="ignore"):
            norms = np.maximum(np.concatenate([np.ones(count), np.linalg.norm(matrix, axis=1)]), 1e-300)
            below, above = (values - lower) / norms, (upper - values) / norms
            sides, away = np.where((below <= above) | (lower == upper), -1, 1), np.minimum(below, above)
            size = max(1.0, float(np.max(np.abs(x))))
            if np.min(away) < -_NEAR * size:
                self._refuse(f"the solver did not converge: {self.rows[int(np.argmin(away))].label} is violated")
            near = np.flatnonzero((away <= _NEAR * size) | (lower == upper))
            equal = (lower == upper)[near]
            normals = _Normals(near, sides[near], matrix / norms[count:, None], count)
            pushes = normals.multipliers(equal, slope)
            loss = self.loss(x, *more)
            least = _ZERO * _steepness(loss, np.ravel(x), slope, normals.inward())
            active, open = equal | (pushes > least), ~equal & (pushes <= least)
            for place in np.flatnonzero(~equal & (away[near] > _EXACT * size)):
                distance = away[near[place]]
                step = -distance * normals.row(place)
                rise = loss(step) - loss(0.0) - slope @ step
                fall = pushes[place] * distance
                if pushes[place] > least:
                    # On the way to the end, the loss falls by the multiplier, and rises by its second derivative.
                    active[place], open[place] = fall > 3 * rise, rise / 3 < fall <= 3 * rise
                else:
                    open[place] = distance <= _ZERO * size and rise - fall <= _ZERO * abs(loss(0.0))
        found = np.zeros(len(self.rows), np.int64)
        kept = near[self._independent(near, active, open, normals)]
        found[kept] = sides[kept]
        return (found,)

    def _independent(self, near: Any, active: Any, open: Any, normals: _Normals) -> Any:
        """The places of active rows, less those that others imply."""
        rows = [self.rows[each] for each in near]
        # Without a constraint, all normals are orthogonal.
        known = np.zeros((0, normals.count if len(self.rows) > normals.count else 0))
        kept = []
        for place in sorted(np.flatnonzero(active | open), key=lambda each: (not rows[each].fixed, open[each])):
            rest = normals.row(place) if known.shape[1] else np.ones(1)
            for _ in range(2 if known.shape[1] else 0):
                rest = rest - known.T @ (known @ rest)
            length = np.linalg.norm(rest)
            if open[place] and (length > _DEPENDENT or not rows[place].fixed):
                self._refuse(
                    f"the solution is at the end of {rows[place].label}, whose multiplier is zero, and the derivatives "
                    "of both sides differ; a smaller tolerance of the solver may tell the side"
                )
            if length > _DEPENDENT:
                kept.append(place)
                known = np.concatenate([known, rest[None] / length]) if known.shape[1] else known
            elif not rows[place].fixed:
                self._refuse(f"the gradients of {rows[place].label} and of other active constraints are dependent")
        return kept

    def _refuse(self, reason: str) -> None:
        raise DifferentiationError(f"the result of {self.name} has no derivative here: {reason}")


def stationary(x: Any, slope: Any, sides: Any, low: Any, high: Any, *more: Any) -> Any:
    """What is zero at a minimum: the gradient along active constraints, and the way to active ends.

    slope: the gradient; other parameters are the result and the operands of `ActiveSet`.
    """
    at, count = np.reshape(sides[: x.size], x.shape), x.size
    if more:
        values, lower, upper, matrix = more
        active = sides[count:] != 0
        rows = np.where(active[:, None] & (at == 0), matrix, 0.0)
        rest = np.where(active, values - np.where(sides[count:] < 0, lower, upper), 0.0)
        # The multipliers solve the normal equations of the gradient in the rows; those of other rows are zero.
        square = rows @ rows.T + np.diag(np.where(active, 0.0, 1.0))
        slope = slope + rows.T @ np.linalg.solve(square, rest - rows @ slope)
    return np.where(at == 0, slope, x - np.where(at < 0, low, high))


@dataclass(frozen=True, eq=False)
class _Normals:
    """Directions of length one from the ends of rows inwards.

    near: the rows, which are bounds of ``count`` variables, or beyond these constraints.
    sides: -1 for a lower end, and 1 for an upper one.
    matrix: for each constraint the direction in which it grows.
    """

    near: Any
    sides: Any
    matrix: Any
    count: int

    def row(self, place: Any) -> Any:
        """One direction."""
        number, found = self.near[place], np.zeros(self.count)
        if number >= self.count:
            return -self.sides[place] * self.matrix[number - self.count]
        found[number] = -self.sides[place]
        return found

    def inward(self) -> Any:
        """A direction that leads away from the bounds."""
        found, bound = np.cos(np.arange(self.count)), self.near < self.count
        found[self.near[bound]] = -self.sides[bound] * np.abs(found[self.near[bound]])
        return found / np.linalg.norm(found)

    def multipliers(self, equal: Any, slope: Any) -> Any:
        """The multipliers that make up the gradient: above zero, except for those of equations."""
        if not len(self.matrix):
            return -self.sides * slope[self.near]
        if not len(self.near):
            return np.zeros(0)
        rows = np.array([self.row(place) for place in range(len(self.near))])
        columns = np.concatenate([rows, -rows[equal]]).T
        return original(importlib.import_module("scipy.optimize").nnls)(columns, slope)[0][: len(rows)]


def _steepness(loss: Callable[[Any], float], x: Any, slope: Any, direction: Any) -> float:
    """The size of a gradient, and of its change over the solution."""
    size = float(np.max(np.abs(x))) or 1.0
    step = _NEAR * size
    rise = loss(step * direction) - loss(0.0) - step * slope @ direction
    bend = 2 * abs(rise) / step**2 if np.isfinite(rise) else 0.0
    return float(np.max(np.abs(slope))) + bend * size
