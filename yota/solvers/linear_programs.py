"""Linear programs and assignments by scipy.optimize: the same constraints stay active as the solution moves."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from yota.ir.callables import original
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Inner
from yota.solvers.solver_calls import Call, Calling, Path, recorded, solution_at
from yota.tracing.dispatch import concrete
from yota.tracing.implementations import records
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.transform.reverse.implicit_functions import Implicit
from yota.transform.reverse.tape_parts import Reversal, taped

_NEAR = 1e-8
"""A slack and a multiplier below this, as a part of what they are made of, are zero."""


class LinearProgram(Calling):
    """A linear program; see `Host`.

    names: the arguments that are the operands.
    numbers: which result is what; the vector of all unknowns follows them.
    """

    names: tuple[str, ...]
    numbers: dict[Path, int]

    def run(self, functions: Any, *others: Any) -> Solution:
        """See `Host.run`."""
        whole = self.call.run(functions, *others)
        found = solution_at(self.place, whole)
        if whole.x is None:
            return found
        prices = whole.ineqlin.marginals, whole.eqlin.marginals, whole.lower.marginals + whole.upper.marginals
        return replace(found, arrays=[*found.arrays, np.concatenate([whole.x, *prices])])

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        unknowns = len(self.numbers)
        known: list[int] = []

        def conditions(y: Any, *given: Any) -> Any:
            program = _Program(y, **dict(zip(self.names, given, strict=True)))
            results = dict(program.results())
            known[:] = [number for path, number in self.numbers.items() if path in results]
            return program.equation(), *[results[path] for path in self.numbers if path in results]

        types = [self.types[unknowns], *(at.builder.types[each] for each in at.op.operands)]
        implicit = Implicit(
            taped(conditions, types, at.registry),
            [("operand", place) for place in range(len(at.op.operands))],
            known,
            solution=unknowns,
            reasons={number: f"result {path[-1]}" for path, number in self.numbers.items()},
        )
        return implicit.adjoints(at.called(self.name), at)


class Assignment(Host):
    """An assignment of rows to columns; see `Host`."""

    maximize = False

    def run(self, functions: Any, *others: Any) -> Solution:
        """See `Host.run`."""
        solve = original(importlib.import_module("scipy.optimize").linear_sum_assignment)
        return Solution(list(solve(*others, self.maximize)), [], None)


class _Program:
    """The conditions of the optimum, in solution, multipliers of rows and reduced costs (Karush, Kuhn and Tucker)."""

    def __init__(
        self, y: Any, c: Any, bounds: Any, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, b_eq: Any = None
    ) -> None:
        self._c, self._lower, self._upper = c, bounds[:, 0], bounds[:, 1]
        self._A_ub, self._b_ub, self._A_eq, self._b_eq = A_ub, b_ub, A_eq, b_eq
        count, above = len(c), 0 if b_ub is None else len(b_ub)
        self._x, self._z = y[:count], y[-count:]
        self._above, self._equal = y[count : count + above], y[count + above : -count]

    def equation(self) -> Any:
        """What is zero at the optimum: a constraint holds exactly, or its multiplier is zero.

        Where both are, another constraint may be active on the other side, and the row is of zeros.
        """
        x, z, level = self._x, self._z, np.max(np.abs(self._c))
        costs, rows = self._c - z, []
        if self._b_ub is not None:
            costs = costs - self._above @ self._A_ub
            sizes = np.abs(self._A_ub)
            weights = np.abs(self._above) * np.max(sizes, axis=1)
            slack = self._b_ub - self._A_ub @ x
            rows.append(_either(slack, sizes @ np.abs(x) + np.abs(self._b_ub), self._above, weights, level))
        if self._b_eq is not None:
            costs = costs - self._equal @ self._A_eq
            rows.append(self._b_eq - self._A_eq @ x)
        below, beyond = x - self._lower, self._upper - x
        gap = np.where(z > 0, below, np.where(z < 0, beyond, np.minimum(below, beyond)))
        rows.append(_either(gap, np.max(np.abs(x)), z, np.abs(z), level))
        return np.concatenate([costs, *rows])

    def results(self) -> Iterator[tuple[Path, Any]]:
        """What SciPy gives, by name."""
        x, z = self._x, self._z
        yield ("x",), x
        yield ("fun",), self._c @ x
        for name, own, matrix, right, weights in (
            ("ineqlin", "slack", self._A_ub, self._b_ub, self._above),
            ("eqlin", "con", self._A_eq, self._b_eq, self._equal),
        ):
            if right is not None:
                yield (own,), right - matrix @ x
                yield (name, "residual"), right - matrix @ x
                yield (name, "marginals"), weights
        yield ("lower", "residual"), x - self._lower
        yield ("upper", "residual"), self._upper - x
        yield ("lower", "marginals"), np.where(z > 0, z, 0.0)
        yield ("upper", "marginals"), np.where(z < 0, z, 0.0)


def _either(gap: Any, scale: Any, multiplier: Any, weight: Any, level: Any) -> Any:
    is_met, is_free = gap <= _NEAR * scale, weight <= _NEAR * level
    return np.where(is_met & is_free, 0.0, np.where(is_free, multiplier, gap))


def _limits(trace: Trace, bounds: Any, count: int) -> Any:
    """Lower and upper bounds as SciPy takes them: a pair, or one for each variable."""
    if bounds is None or len(bounds) == 0:
        bounds = (0.0, None)
    rows = [bounds] if len(bounds) == 2 and not any(map(_is_pair, bounds)) else list(bounds)
    rows = rows * count if len(rows) == 1 else rows
    ends = [[_end(trace, low, -np.inf), _end(trace, high, np.inf)] for low, high in rows]
    return trace.traced(ends)


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or bool(getattr(value, "ndim", 0))


def _end(trace: Trace, value: Any, missing: float) -> Any:
    return trace.traced(missing if value is None else value).astype(float)


def _matrix(trace: Trace, value: Any) -> Any:
    found = trace.traced(value if is_tracer(value) or not hasattr(value, "toarray") else value.toarray())
    return np.atleast_2d(found).astype(float)


@records("scipy.optimize", "linprog")
def _linprog(trace: Trace, *args: Any, **keywords: Any) -> Any:
    known = sys.modules["scipy.optimize"].linprog
    bound = inspect.signature(inspect.unwrap(known)).bind(*args, **keywords)
    bound.apply_defaults()
    given = dict(bound.arguments)
    if not str(given["method"]).startswith("highs"):
        raise trace.unrecorded(f"scipy.optimize.linprog by {given['method']}", 'Pass method="highs".')
    for name in ("callback", "integrality"):
        if given[name] is not None and np.any(given[name]):
            raise trace.unrecorded(f"scipy.optimize.linprog with {name}", "Leave it out.")
    given["c"] = np.ravel(trace.traced(given["c"])).astype(float)
    given["bounds"] = _limits(trace, given["bounds"], len(given["c"]))
    for side in ("ub", "eq"):
        if given[f"b_{side}"] is not None:
            given[f"A_{side}"] = _matrix(trace, given[f"A_{side}"])
            given[f"b_{side}"] = np.ravel(trace.traced(given[f"b_{side}"])).astype(float)
    call = Call(trace, known, (), given, [])
    host = LinearProgram(call, ("x",))
    host.names = tuple(name for name in call.arguments if call.is_placed(name))
    found, host.numbers = recorded(call, host, ("x",))
    # Numbers of the search for integers, of which there are none.
    found.update({name: concrete(trace, found[name]) for name in found if name.startswith("mip_")})
    return found


@records("scipy.optimize", "linear_sum_assignment")
def _assignment(trace: Trace, cost_matrix: Any, maximize: bool = False) -> Any:
    """Rows and their columns: whole numbers, whose derivative is zero."""
    host = Assignment("scipy.optimize.linear_sum_assignment", Inner(trace))
    host.maximize = maximize
    return tuple(host.recorded([trace.traced(cost_matrix)])[1])
