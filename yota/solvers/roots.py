"""Roots and fixed points by scipy.optimize: the derivative is that of the implicit function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.tape import Tape
from yota.solvers.implicit import Host, Solution
from yota.solvers.solver_calls import Call, Path, recorded
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace
from yota.transform.reverse.implicit_functions import Implicit
from yota.transform.reverse.tape_parts import match
from yota.transform.sparse.dependence import pattern


class Root(Host):
    """A solver whose first function is zero at the solution; see `Host`.

    fixed: whether the function gives the solution there, and not zero.
    elementwise: whether SciPy takes it that each element of the solution has an equation of its own.
    zero: results whose derivative is zero: what is left of the equation.
    """

    fixed = elementwise = False
    zero: frozenset[int] = frozenset()
    called: Sequence[Path] = ()

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """See `Host.branch`."""
        return self._inner.functions[0].found([solution.arrays[0]], values)[0]

    def is_elementwise(self, equation: Tape) -> bool:
        """Whether each element of the solution has an equation of its own."""
        return self.elementwise and _is_diagonal(equation)

    def _equation(self, tape: Tape) -> Tape:
        solution, result = tape.inputs[0].variable, tape.outputs[0]
        if not self.fixed:
            return replace(tape, outputs=(result,))
        builder = tape.builder()
        moved = match(builder, result, builder.types[solution])
        return builder.finish([builder.emit(primitive("subtract"), (moved, solution))])

    def adjoints(self, builder: Any, registry: Any, op: Any, adjoints: Any, active: Any, reverse: Any) -> Any:
        """See `Host.adjoints`."""
        branch = self._inner.functions[0].branches[self.chosen]
        equation = self._equation(branch.tape)
        implicit = Implicit(
            equation,
            [("operand", place) for place in branch.places],
            elementwise=self.is_elementwise(equation),
            constant=self.zero,
            reasons={number: f"result {path[-1] if path else 0}" for number, path in enumerate(self.called)},
        )
        return implicit.adjoints(self.name, builder, registry, op, adjoints, active, reverse)


def _is_diagonal(tape: Tape) -> bool:
    """Whether each element of the result depends on no other element of the first input."""
    result, solution = tape.outputs[0], tape.inputs[0].variable
    count = tape.types[solution].size
    try:
        found = pattern(tape, result, solution, {}, 4 * count)
    except DifferentiationError:
        return False
    rows, columns = found.matrix.nonzero()
    return bool(tape.types[result].size == count and np.all(rows == columns))


def root(trace: Trace, solver: Callable[..., Any], called: Sequence[str], place: Path, *args: Any) -> Any:
    """A solver's call, which gives at ``place`` the root of a function with an equation for each element."""
    return _recorded(Call(trace, solver, args, {}, called), place, elementwise=True)


def _recorded(call: Call, place: Path, *, fixed: bool = False, elementwise: bool = False) -> Any:
    host = call.host(Root, place)
    host.fixed, host.elementwise = fixed, elementwise
    found, numbers = recorded(call, host, place)
    host.called = list(numbers)
    host.zero = frozenset(number for path, number in numbers.items() if path[-1:] in (("fun",), ("fvec",)))
    return found


_CALLED: dict[str, list[str]] = {
    **{name: ["f"] for name in "brentq brenth ridder bisect toms748".split()},
    "newton": ["func", "fprime", "fprime2"],
    "fsolve": ["func", "fprime"],
    "fixed_point": ["func"],
    "root": ["fun", "jac"],
    "root_scalar": ["f", "fprime", "fprime2"],
    **{
        name: ["F"]
        for name in "broyden1 broyden2 anderson linearmixing diagbroyden excitingmixing newton_krylov".split()
    },
}
"""Parameters that are functions."""


@calls_back("scipy.optimize", *_CALLED, named=True)
def _form(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, getattr(sys.modules["scipy.optimize"], name), args, keywords, _CALLED[name])
    place: Path = {"root": ("x",), "root_scalar": ("root",)}.get(
        name, (0,) if call.arguments.get("full_output") else ()
    )
    return _recorded(call, place, fixed=name == "fixed_point", elementwise=name == "newton")
