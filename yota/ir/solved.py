"""Results of solvers on a tape: an op that calls a solver at each run, and one that refuses singular derivatives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.linear_solvers import Direct
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.ir.types import TensorType, tuple_of

_LARGEST = 1e14
"""The condition number from which on a matrix is singular."""
_FAR = 1e-2
"""How far a step of Newton's goes from what is no solution, as a part of the largest element, or of this."""
_FAR_OFF = "the solver did not converge, and what it gave solves no equation"


def solved(*operands: Any, host: Any) -> tuple[Any, ...]:
    """The results of the solver of ``host``."""
    found: tuple[Any, ...] = host(*operands)
    return found


def regular(slope: Any, rest: Any, solution: Any, *more: Any, what: str, elementwise: bool) -> Any:
    """``slope``, the derivative of an equation by its solution, or a matrix of such: what an adjoint is divided by.

    slope: a matrix, or an array like the solution if ``elementwise``.
    rest: what the equation leaves at the solution.
    solution: the solution.
    more: columns and rows of the numbers of a sparse matrix. Where the matrix is known by products alone, the
        solution of the transposed system for some vector, and ``slope`` is ``solution``.
    what: the name of the solver.
    Raises DifferentiationError if the derivative is singular, or the solution none.
    """
    if elementwise and isinstance(slope, float) and isinstance(solution, float):
        # Numbers that pass need no arrays.
        bound = _FAR * max(_FAR, abs(solution)) * abs(slope)
        if slope and abs(slope) < math.inf and abs(rest) <= bound:
            return slope
    slope_of, rest, solution = np.asarray(slope), np.ravel(rest), np.ravel(solution)
    if len(more) == 1:
        # Its product with what is left is an element of the step, or a sum of such.
        step = np.ravel(more[0]) @ rest
        reason = "" if np.isfinite(step) and _is_near(step, solution) else _FAR_OFF
    else:
        reason = _irregular(slope_of, rest, solution, more, elementwise=elementwise)
    if reason:
        raise DifferentiationError(f"the result of {what} has no derivative here: {reason}")
    return slope


def _irregular(slope: Any, rest: Any, solution: Any, places: tuple[Any, ...], *, elementwise: bool) -> str:
    if not np.all(np.isfinite(slope)):
        return "the derivative of the equation at the solution is infinite or no number"
    if elementwise:
        if not np.all(slope):
            return "the derivative of the equation at the solution is zero"
        step = rest / np.ravel(slope)
    elif places:
        columns, rows = places
        step = Direct().step(slope, rest, columns, rows, _LARGEST)
    else:
        scale = np.max(np.abs(slope), axis=1, keepdims=True, initial=0.0)
        regular = np.all(scale) and (not slope.size or np.linalg.cond(slope / scale) < _LARGEST)
        step = np.linalg.solve(slope, rest) if regular else None
    if step is None:
        return "the Jacobian of the equations at the solution is singular"
    return "" if _is_near(step, solution) else _FAR_OFF


def _is_near(step: Any, solution: Any) -> bool:
    return bool(np.all(np.abs(step) <= _FAR * max(_FAR, np.max(np.abs(solution), initial=0.0))))


def _typed(operands: tuple[TensorType, ...], static: tuple[tuple[str, Any], ...]) -> TensorType:
    return tuple_of(dict(static)["host"].types)


SOLVED = Primitive("solved", "yota.ir.solved.solved", False, solved, None, "tensor", _typed)
REGULAR = Primitive("regular", "yota.ir.solved.regular", False, regular, typed=lambda operands, static: operands[0])


def on_target(tape: Tape, target: Any) -> Tape:
    """``tape`` with the calls of its solvers as they are in code for a target."""
    ops = [
        replace(op, static=(("host", op.keyword("host").on(target)),)) if op.primitive is SOLVED else op
        for op in tape.ops
    ]
    return replace(tape, ops=tuple(ops))
