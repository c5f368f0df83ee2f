"""Bounds and constraints of a minimum as one function of the solution, and of traced values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.serialised import Carried
from yota.solvers.active_sets import Rows
from yota.solvers.inner import Function
from yota.solvers.solver_calls import Call
from yota.tracing.current import current
from yota.tracing.methods import is_traced


class Limits(Carried):
    """What bounds a solution.

    function: takes the solution, and gives lower and upper bounds; where there are constraints, also their values, and
        lower and upper ends.
    rows: the bounds, and then the constraints.
    """

    def __init__(self, call: Call, low: Any, high: Any, constraints: Sequence[Any]) -> None:
        self._bounds, self._constraints = (low, high), constraints
        self.rows = Rows()
        self.function = Function(call.inner, self._ends, several=True)

    def state(self) -> dict[str, Any]:
        """See `Carried.state`: what is needed beside the generated code."""
        return {"function": self.function, "rows": self.rows}

    def _ends(self, x: Any) -> tuple[Any, ...]:
        plain = not is_traced([*self._bounds])
        self.rows = Rows()
        self.rows.add("the bounds of x[{}]" if np.ndim(x) else "the bounds", np.size(x), plain)
        columns: list[list[Any]] = [[], [], []]
        for number, each in enumerate(self._constraints):
            value, *ends = map(_array, _parts(each)(x))
            value = np.ravel(value)
            matrix: Any = getattr(each, "A", None)
            held = matrix.data if hasattr(matrix, "toarray") else matrix
            plain = matrix is not None and not is_traced([held, each.lb, each.ub])
            self.rows.add(f"element {{}} of constraints[{number}]", value.size, plain)
            for column, found in zip(columns, (value, *ends), strict=True):
                column.append(np.broadcast_to(found, value.shape))
        bounds = [np.broadcast_to(_array(each), np.shape(x)) for each in self._bounds]
        return (*bounds, *(map(np.concatenate, columns) if self._constraints else ()))


def limits(call: Call, bounds: tuple[Any, Any] | None, constraints: Sequence[Any] = ()) -> Limits | None:
    """What bounds the solution of a call; None for nothing."""
    low, high = (-np.inf, np.inf) if bounds is None else bounds
    if not constraints and not is_traced([low, high]) and np.all(np.isinf(low)) and np.all(np.isinf(high)):
        return None
    return Limits(call, low, high, constraints)


def pair(bounds: Any) -> tuple[Any, Any] | None:
    """Lower and upper bounds of ``Bounds``, or of a pair for each variable; None for none."""
    if bounds is None or hasattr(bounds, "lb"):
        return None if bounds is None else (bounds.lb, bounds.ub)
    pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]
    return [low for low, _ in pairs], [high for _, high in pairs]


def _parts(constraint: Any) -> Callable[[Any], tuple[Any, Any, Any]]:
    """What gives the value of a constraint, and both its ends."""
    if isinstance(constraint, dict):
        high = 0.0 if constraint["type"].lower() == "eq" else np.inf
        return lambda x: (constraint["fun"](x, *constraint.get("args", ())), 0.0, high)
    if hasattr(constraint, "A"):
        return lambda x: (constraint.A @ x, constraint.lb, constraint.ub)
    return lambda x: (constraint.fun(x), constraint.lb, constraint.ub)


def _array(value: Any) -> Any:
    trace = current()
    assert trace is not None
    return trace.traced(value).astype(float)
