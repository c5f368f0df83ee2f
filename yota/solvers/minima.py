"""Minima and fits by scipy.optimize: the derivative is that of the point where the gradient is zero."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.errors import DifferentiationError, StaleTapeError
from yota.ir.catalog import item_of, primitive
from yota.ir.inputs import Input
from yota.ir.serialised import Carried
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.run.machine.signals import StaleTape
from yota.solvers.active_sets import ActiveSet, stationary
from yota.solvers.constraints import Limits, limits, pair
from yota.solvers.implicit import Solution
from yota.solvers.inner import MOST, Branch, Function
from yota.solvers.roots import is_diagonal
from yota.solvers.solver_calls import Call, Calling, Path, listed, recorded
from yota.tracing.implementations import calls_back, records
from yota.tracing.trace import Trace
from yota.transform.reverse.backward import reverse, zeros_like
from yota.transform.reverse.equation_systems import jacobian, jacobian_rows
from yota.transform.reverse.finite_slopes import checked
from yota.transform.reverse.implicit_functions import Implicit
from yota.transform.reverse.tape_parts import Reversal, emitted, match, taped

_FREE = ("cg", "bfgs", "newton-cg", "dogleg", "trust-ncg", "trust-exact", "trust-krylov")
"""Methods of ``minimize`` without bounds and constraints."""
_BOUNDED = ("nelder-mead", "powell", "l-bfgs-b", "tnc")
"""Methods without constraints."""

_SETTLED = ("jac", "grad", "optimality", "active_mask")
"""Results that belong to the solution, wherever the search started."""

_WEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "": lambda f, z: np.ones_like(f),
    "linear": lambda f, z: f,
    "soft_l1": lambda f, z: f / np.sqrt(1 + z),
    "cauchy": lambda f, z: f / (1 + z),
    "arctan": lambda f, z: f / (1 + z**2),
    "huber": lambda f, z: f / np.where(z <= 1, 1.0, np.sqrt(np.where(z <= 1, 1.0, z))),
}
"""The derivatives of losses by a result ``f``, where ``z`` is the square of its scaled value."""


class Loss(Carried):
    """What a solver makes small, from the results of its function.

    squares: the loss by which the results are weighed; empty if the function itself is made small.
    scale: what the results are divided by in the loss.
    """

    def __init__(self, squares: str, scale: Any, branch: Branch) -> None:
        self.squares, self.scale, self.branch = squares, scale, branch

    def weights(self, f: Any) -> Any:
        """The derivative by each result."""
        return _WEIGHTS[self.squares](f, (f / float(self.scale)) ** 2)

    def __call__(self, x: Any, *read: Any) -> Callable[[Any], float]:
        """The loss, as a function of a step from the solution."""

        def results(step: Any) -> Any:
            place = np.reshape(np.ravel(x) + step, np.shape(x))
            try:
                found = self.branch(place if place.ndim else type(x)(place), *read)
            except (StaleTape, StaleTapeError):
                return np.nan
            return np.asarray(found[0] if isinstance(found, tuple) else found)

        if not self.squares:
            return lambda step: float(np.sum(results(step)))
        here = results(0.0)
        # With the weights that hold at the solution, the squares have the same gradient as the loss.
        weights = np.divide(self.weights(here), here, out=np.ones_like(here), where=here != 0)
        return lambda step: float(np.sum(weights * results(step) ** 2)) / 2


class Minimum(Calling):
    """A solver that makes its first function small, or the squares of its results; see `Host`.

    squares, scale: see `Loss`.
    limits: bounds and constraints of the solution.
    measured: results that are computed from those of the function, and where that is asked for, their derivatives.
    numbers: which result is what.
    elementwise: whether SciPy makes each element of the function small by the element of the solution in its place.
    """

    elementwise = False
    squares = ""
    scale: Any = 1.0
    limits: Limits | None = None
    measured: Mapping[Path, Callable[..., Any]] = MappingProxyType({})
    numbers: dict[Path, int]

    def _functions(self) -> list[Function]:
        return [self._inner.functions[0], *([] if self.limits is None else [self.limits.function])]

    def _loss(self, branch: Branch) -> Loss:
        return Loss(self.squares, self.scale, branch)

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """See `Host.branch`."""
        numbers = [each.number([solution.arrays[0]], values) for each in self._functions()]
        return sum(number * MOST**place for place, number in enumerate(numbers))

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        branches = [each.branches[self.chosen // MOST**n % MOST] for n, each in enumerate(self._functions())]
        paths = {number: path for path, number in self.numbers.items()}
        measured = {path: each for path, each in self.measured.items() if self.numbers.get(path) in at.adjoints}
        tape, results, given = self._equation(branches, at, measured)
        settled = {number for number, path in paths.items() if path[-1:] and path[-1] in _SETTLED}
        if any(at.op.operands[number] in at.active for kind, number in given if kind == "operand"):
            settled = set()
        implicit = Implicit(
            tape,
            given,
            [self.numbers[path] for path in results],
            elementwise=self.elementwise and is_diagonal(tape),
            constant=frozenset(settled),
            reasons={number: f"result {path[-1] if path else 0}" for number, path in paths.items()},
        )
        name = at.called(self.name)
        return checked(name, at, implicit.adjoints(name, at))

    def _equation(
        self, branches: Sequence[Branch], at: Reversal, measured: Mapping[Path, Callable[..., Any]]
    ) -> tuple[Tape, list[Path], list[tuple[str, int]]]:
        """What is zero at the solution; what further outputs are; and what the inputs after the solution are."""
        tape = replace(branches[0].tape, outputs=branches[0].tape.outputs[:1], guards=())
        (value,), solution, registry = tape.outputs, tape.inputs[0].variable, at.registry
        builder, type = tape.builder(), tape.types[value]
        results = [path for path in (("fun",), (1,)) if path in self.numbers and self._is_value(path, type)]
        weights = emitted(builder, taped(self._loss(branches[0]).weights, [type], registry), [value]).outputs[0]
        (slope,) = reverse(tape, builder, {value: weights}, [solution], registry)
        where = builder.types[solution]
        slope = zeros_like(builder, solution) if slope is None else match(builder, slope, where)
        given = [("operand", place) for branch in branches for place in branch.places]
        ends = [] if self.limits is None else self._ends(builder, slope, branches, at, given)
        known = [solution, slope, value, *ends]
        if any(measure in (_covariance, _absolute) for measure in measured.values()):
            known.append(jacobian_rows(builder, tape, registry, reverse))

        def ended(x: Any, slope: Any, value: Any, *more: Any) -> Any:
            further = [measure(value, *more[len(ends) :]) for measure in measured.values()]
            rest = stationary(x, slope, *more[: len(ends)]) if ends else slope
            return rest.astype(where.dtype), *[value] * len(results), *further

        outputs = emitted(builder, taped(ended, [builder.types[each] for each in known], registry), known).outputs
        builder.inputs = [Input(each.variable, number, each.name) for number, each in enumerate(builder.inputs)]
        return builder.finish(outputs), [*results, *measured], given

    def _ends(
        self, builder: TapeBuilder, slope: int, branches: Sequence[Branch], at: Reversal, given: list[tuple[str, int]]
    ) -> list[int]:
        """The active set, and further operands of it as of `stationary`; see `ActiveSet`."""
        assert self.limits is not None
        tape = replace(branches[1].tape, guards=())
        inputs = [builder.inputs[0].variable]
        inputs += [builder.input(tape.types[each.variable], 0, each.name) for each in tape.inputs[1:]]
        ends = list(emitted(builder, tape, inputs).outputs)
        if len(ends) > 2:
            rows = jacobian(replace(tape, outputs=tape.outputs[2:3]), at.registry, reverse)
            ends += emitted(builder, rows, inputs).outputs
        outer = [item_of(at.builder, at.op.result, 0), *(at.op.operands[place] for _, place in given)]
        found = emitted(at.builder, builder.finish([slope, *ends]), outer).outputs
        host = ActiveSet(at.called(self.name), self.limits.rows, self._loss(branches[0]))
        operands = (outer[0], *found, *outer[1 : len(branches[0].places) + 1])
        sides = item_of(at.builder, at.builder.emit(primitive("solved"), operands, {"host": host}), 0)
        given.append(("variable", sides))
        return [builder.input(at.builder.types[sides], 0, "sides"), *ends]

    def _is_value(self, path: Path, type: TensorType) -> bool:
        """Whether a result is what the function gives at the solution."""
        found = self.types[self.numbers[path]]
        return found.size == type.size and (path != (1,) or not self.squares)


def _cost(rest: Any) -> Any:
    return 0.5 * np.sum(rest**2)


def _norm(rest: Any) -> Any:
    return np.sqrt(np.sum(rest**2))


def _same(rest: Any) -> Any:
    return rest


def _absolute(rest: Any, rows: Any) -> Any:
    """The covariance of the parameters of a fit, from what is left and its derivatives by each parameter."""
    return np.linalg.inv(rows @ rows.T)


def _covariance(rest: Any, rows: Any) -> Any:
    """The same, scaled so that what is left has the variance that it shows."""
    more = rest.size - len(rows)
    if more < 1:
        raise DifferentiationError("the covariance of a fit has no derivative: there are no more data than parameters")
    return _absolute(rest, rows) * (np.sum(rest**2) / more)


def recorded_minimum(
    call: Call, place: Path, bounds: Any = None, constraints: Sequence[Any] = (), **attributes: Any
) -> Any:
    """The result of a call, with traced values in it."""
    if call.is_placed("f_scale"):
        raise call.trace.unrecorded(f"{call.name} with traced f_scale", "Scale the function.")
    host = Minimum(call, place)
    host.limits = limits(call, bounds, constraints)
    for name, value in attributes.items():
        setattr(host, name, value)
    found, host.numbers = recorded(call, host, place)
    return found


@calls_back("scipy.optimize", "minimize")
def minimize(trace: Trace, *args: Any, **keywords: Any) -> Any:
    """The result of a call of ``minimize``, with traced values in it."""
    original = sys.modules["scipy.optimize"].minimize
    call = Call(trace, original, args, keywords, ["fun", "jac", "hess", "hessp", "constraints"])
    # Other methods take bounds and constraints with a warning, and leave them out.
    method = str(call.given["method"]).lower()
    constraints = [] if method in (*_FREE, *_BOUNDED) else listed(call.given["constraints"])
    return recorded_minimum(call, ("x",), None if method in _FREE else pair(call.given["bounds"]), constraints)


@calls_back("scipy.optimize", "minimize_scalar")
def _minimize_scalar(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].minimize_scalar, args, keywords, ["fun"])
    return recorded_minimum(call, ("x",), call.given["bounds"])


@calls_back("scipy.optimize", "least_squares")
def _least_squares(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].least_squares, args, keywords, ["fun", "jac"])
    loss = call.arguments["loss"]
    if loss not in _WEIGHTS or call.arguments["kwargs"]:
        raise trace.unrecorded(f"{call.name} with kwargs, or a loss of one's own", "Put them into the function.")
    measured = {("cost",): _cost} if loss == "linear" else {}
    ends, scale = _both(call.given["bounds"]), call.arguments["f_scale"]
    return recorded_minimum(call, ("x",), ends, squares=loss, scale=scale, measured=measured)


@calls_back("scipy.optimize", "leastsq")
def _leastsq(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].leastsq, args, keywords, ["func", "Dfun"])
    return recorded_minimum(call, (0,), squares="linear", measured={(1,): _absolute, (2, "fvec"): _same})


@calls_back("scipy.optimize", "curve_fit")
def _curve_fit(trace: Trace, *args: Any, **keywords: Any) -> Any:
    original = sys.modules["scipy.optimize"].curve_fit
    given = inspect.signature(inspect.unwrap(original)).bind(*args, **keywords)
    given.apply_defaults()
    model, x, y, sigma = (given.arguments[name] for name in ("f", "xdata", "ydata", "sigma"))
    matrix = sigma is not None and np.ndim(sigma) > 1
    if given.arguments.get("kwargs", {}).get("loss", "linear") != "linear":
        raise trace.unrecorded("scipy.optimize.curve_fit with a loss", "Use least_squares.")
    if isinstance(x, (list, tuple)):
        x = trace.traced(x)
    if isinstance(y, (list, tuple)):
        y = trace.traced(y)

    def residuals(p: Any) -> Any:
        rest = model(x, *(p[number] for number in range(len(p)))) - y
        if matrix:
            return np.linalg.solve(np.linalg.cholesky(sigma), rest)
        return rest if sigma is None else rest / sigma

    call = Call(trace, original, args, keywords, ["f", "jac"], before=residuals)
    measured = {(1,): _absolute if given.arguments["absolute_sigma"] else _covariance, (2, "fvec"): _same}
    return recorded_minimum(call, (0,), _both(call.given["bounds"]), squares="linear", measured=measured)


def _both(bounds: Any) -> Any:
    """Lower and upper bounds of ``Bounds``, or of a pair of these."""
    return (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds


@records("scipy.optimize", "nnls")
def _nnls(trace: Trace, *args: Any, **keywords: Any) -> Any:
    return _linear(trace, "nnls", (0,), {(1,): _norm}, args, keywords)


@records("scipy.optimize", "lsq_linear")
def _lsq_linear(trace: Trace, *args: Any, **keywords: Any) -> Any:
    return _linear(trace, "lsq_linear", ("x",), {("cost",): _cost}, args, keywords)


def _linear(trace: Trace, name: str, place: Path, measured: Any, args: Any, keywords: Any) -> Any:
    """The least squares of a matrix times the solution, less a vector."""
    original = sys.modules["scipy.optimize"].__dict__[name]
    given = inspect.signature(inspect.unwrap(original)).bind(*args, **keywords).arguments
    matrix, right = given["A"], trace.traced(given["b"])
    matrix = matrix if hasattr(matrix, "format") else trace.traced(matrix)
    call = Call(trace, original, args, keywords, [], before=lambda x: matrix @ x - right)
    ends = _both(call.given.get("bounds", (0.0, np.inf)))
    return recorded_minimum(call, place, ends, squares="linear", measured=measured)


_GLOBAL = ("differential_evolution", "dual_annealing", "basinhopping", "shgo", "brute", "direct")


@calls_back("scipy.optimize", *_GLOBAL, named=True)
def _refused(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.refuse(
        f"scipy.optimize.{name} searches for the lowest of several minima, and which one that is may change at any "
        "point: the result has no derivative there.",
        "Call it outside of the function, and scipy.optimize.minimize inside, from the place that it found.",
    )
