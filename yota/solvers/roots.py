"""Roots and fixed points by scipy.optimize, and quantiles: the derivative is that of the implicit function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.tape import Tape
from yota.solvers.implicit import Solution
from yota.solvers.solver_calls import Call, Calling, Path, recorded
from yota.tracing.implementations import calls_back, records
from yota.tracing.trace import Trace
from yota.transform.reverse.finite_slopes import checked
from yota.transform.reverse.implicit_functions import Implicit
from yota.transform.reverse.tape_parts import Reversal, match
from yota.transform.sparse.dependence import pattern


class Root(Calling):
    """A solver whose first function is zero at the solution; see `Host`.

    fixed: whether the function gives the solution there, and not zero.
    elementwise: whether SciPy takes it that each element of the solution has an equation of its own.
    zero: results whose derivative is zero: what is left of the equation.
    beside: results that the function takes after the solution.
    """

    fixed = elementwise = False
    zero: Sequence[int] = ()
    called: Sequence[Path] = ()
    beside: Sequence[int] = ()

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """See `Host.branch`."""
        return self._inner.functions[0].number([solution.arrays[each] for each in (0, *self.beside)], values)

    def is_elementwise(self, equation: Tape) -> bool:
        """Whether each element of the solution has an equation of its own."""
        return self.elementwise and is_diagonal(equation)

    def _equation(self, tape: Tape) -> Tape:
        solution, result = tape.inputs[0].variable, tape.outputs[0]
        if not self.fixed:
            return replace(tape, outputs=(result,))
        builder = tape.builder()
        moved = match(builder, result, builder.types[solution])
        return builder.finish([builder.emit(primitive("subtract"), (moved, solution))])

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        branch = self._inner.functions[0].branches[self.chosen]
        equation = self._equation(branch.tape)
        implicit = Implicit(
            equation,
            [*(("result", each) for each in self.beside), *(("operand", place) for place in branch.places)],
            elementwise=self.is_elementwise(equation),
            constant=frozenset(self.zero),
            reasons={number: f"result {path[-1] if path else 0}" for number, path in enumerate(self.called)},
        )
        name = at.called(self.name)
        return checked(name, at, implicit.adjoints(name, at))


def is_diagonal(tape: Tape) -> bool:
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
    return recorded_root(Call(trace, solver, args, {}, called), place, elementwise=True)


def recorded_root(call: Call, place: Path, *, fixed: bool = False, elementwise: bool = False) -> Any:
    """The result of a call, with traced values in it; see `Root`."""
    host = Root(call, place)
    host.fixed, host.elementwise = fixed, elementwise
    found, numbers = recorded(call, host, place)
    host.called = list(numbers)
    host.zero = [number for path, number in numbers.items() if path[-1:] in (("fun",), ("fvec",))]
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
    return recorded_root(call, place, fixed=name == "fixed_point", elementwise=name == "newton")


_MOST = 200
"""Steps of a search; each second one halves the interval at the least."""
_CLOSE, _RELATIVE = 1e-14, 4 * float(np.finfo(float).eps)
"""How wide the interval is in the end, as in SciPy's search."""


@records("scipy.stats._distn_infrastructure", "rv_continuous._ppf")
def _ppf(trace: Trace, self: Any, q: Any, *shapes: Any) -> Any:
    ends = self._get_support(*shapes)
    size = np.broadcast_shapes(*map(np.shape, (q, *ends, *shapes)))

    def excess(x: Any) -> Any:
        return self.cdf(x, *shapes) - q

    return root(trace, increasing_root, ["f"], (), excess, *ends, size)


def increasing_root(f: Callable[[Any], Any], low: Any, high: Any, size: tuple[int, ...]) -> Any:
    """Where increasing functions, one for each element, are zero between their ends, which may be infinite.

    T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without
    using derivatives (1997).
    """
    with np.errstate(all="ignore"):
        x1, f1, x2, f2 = _bracket(f, np.broadcast_to(low, size), np.broadcast_to(high, size))
        share: Any = 0.5
        for _ in range(_MOST):
            x = x1 + share * (x2 - x1)
            value = np.asarray(f(x))
            same = np.sign(value) == np.sign(f1)
            x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
            x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
            x1, f1 = x, value
            found = np.where(np.abs(f1) < np.abs(f2), x1, x2)
            width, close = np.abs(x2 - x1), _CLOSE + _RELATIVE * np.abs(found)
            if np.all((width <= close) | (f1 == 0) | (f2 == 0) | np.isnan(f1)):
                break
            place, level = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            quadratic = f1 / (f1 - f2) * f3 / (f3 - f2) - (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f2 - f3)
            is_regular = (1 - np.sqrt(1 - place) < level) & (level < np.sqrt(place))
            least = np.minimum(0.5 * close / width, 0.5)
            share = np.clip(np.where(is_regular, quadratic, 0.5), least, 1 - least)
    return np.where(np.isnan(f1), np.nan, found)[()]


def _bracket(f: Callable[[Any], Any], low: Any, high: Any) -> tuple[Any, Any, Any, Any]:
    """Finite places around the roots, with values of their signs: infinite ends move out tenfold, as in SciPy."""
    left = np.where(np.isinf(low), np.minimum(-10.0, high), low)
    right = np.where(np.isinf(high), np.maximum(10.0, left), high)
    left, right = _moved_out(lambda x: f(x) > 0, np.isinf(low), left, right)
    right, left = _moved_out(lambda x: f(x) < 0, np.isinf(high), right, left)
    return left, np.full_like(left, -0.5), right, np.full_like(right, 0.5)


def _moved_out(is_inside: Callable[[Any], Any], infinite: Any, end: Any, other: Any) -> tuple[Any, Any]:
    """An end beyond the roots, where it is infinite, and the other end, which moves to the last place inside."""
    for _ in range(_MOST):
        beyond = infinite & is_inside(end) if np.any(infinite) else np.False_
        if not np.any(beyond):
            break
        end, other = np.where(beyond, 10.0 * end, end), np.where(beyond, end, other)
    return end, other
