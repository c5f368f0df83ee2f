"""Minima and fits by scipy.optimize: the derivative is that of the point where the gradient is zero."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.inputs import Input
from yota.ir.tape import Tape
from yota.ir.types import TensorType
from yota.rules.registry import Registry
from yota.solvers.active_sets import stacked, taken_away
from yota.solvers.implicit import Host, Solution
from yota.solvers.solver_calls import Call, Path, recorded, solution_at
from yota.tracing.implementations import calls_back, records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.transform.reverse.backward import reverse, zeros_like
from yota.transform.reverse.equation_systems import jacobian_rows
from yota.transform.reverse.implicit_functions import Implicit
from yota.transform.reverse.tape_parts import Reversal, emitted, match, taped

_EXACT = 1e-12
"""How near to a bound an element is at it, as a part of its size or of one."""
_NEAR = 1e-3
"""How near to a bound an element may belong at it: some solvers stop before the bound."""
_MOST = 4096
"""Largest number of variables with constraints: the directions that these take away are a full matrix."""

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
_COST: dict[Path, Callable[..., Any]] = {("cost",): lambda rest: 0.5 * np.sum(rest**2)}


class Minimum(Host):
    """A solver that makes its first function small, or the squares of its results; see `Host`.

    squares: the loss by which the results are weighed; empty if the function itself is made small.
    scale: what the results are divided by in the loss.
    bounds: gives those of the solution, for solvers that do not say which are reached, from further operands.
    constraints: those of the solution, where there are others than bounds: all of them are linear.
    moving, held: whether bounds are traced, and whether the last solution is at one; both at once is refused.
    measured: results that are computed from those of the function, and where that is asked for, their derivatives.
    numbers: which result is what.
    """

    squares = ""
    scale: Any = 1.0
    bounds: Callable[..., tuple[Any, Any]] | None = None
    constraints: Sequence[Any] = ()
    moving = held = False
    measured: Mapping[Path, Callable[..., Any]] = MappingProxyType({})
    numbers: dict[Path, int]

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """See `Host.branch`."""
        return self._inner.functions[0].number([solution.arrays[0]], values)

    def reached(self, solution: Solution, functions: Sequence[Callable[..., Any]], others: Sequence[Any]) -> Solution:
        """The solution, with where it is at a bound, or what constraints take away, and once more itself."""
        x, whole = np.asarray(solution.arrays[0], float), solution.whole

        def loss(x: Any) -> float:
            found = functions[0](x if x.ndim else type(solution.arrays[0])(x))
            found = np.asarray(found[0] if isinstance(found, tuple) else found)
            return float(np.sum(found**2 if self.squares else found))

        at = np.zeros(x.shape, bool)
        if self.constraints:
            if x.size > _MOST:
                raise DifferentiationError(
                    f"{self.name} with constraints of {x.size} variables has no derivative here: {_MOST} are the most. "
                    "Eliminate the constraints"
                )
            limits = None if self.bounds is None else self.bounds(*others)
            at = taken_away(stacked(self.constraints, limits, x.size), x, loss)
        elif isinstance(whole, dict) and "active_mask" in whole:
            at = np.asarray(whole["active_mask"]) != 0
        elif self.bounds is not None:
            for sign, bound in zip((1.0, -1.0), map(np.asarray, self.bounds(*others)), strict=True):
                away = sign * (x - bound)
                at |= away <= _EXACT * np.maximum(1.0, np.abs(x))
                for place in np.argwhere(~at & (away <= _NEAR * np.maximum(1.0, np.abs(x)))):
                    index, moved = tuple(place), np.array(x)
                    moved[index] = np.broadcast_to(bound, x.shape)[index]
                    at[index] = loss(moved) < loss(x)
        self.held = bool(np.any(at))
        ended = [*solution.ended, *([int(self.held)] if self.moving else [])]
        return replace(solution, arrays=[*solution.arrays, at, np.array(x)], ended=ended)

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        branch = self._inner.functions[0].branches[self.chosen]
        first = max(self.numbers.values()) + 1
        paths = {number: path for path, number in self.numbers.items()}
        measured = {path: each for path, each in self.measured.items() if self.numbers.get(path) in at.adjoints}
        tape, results = self._equation(branch.tape, at.registry, measured)
        settled = {number for number, path in paths.items() if path[-1:] and path[-1] in _SETTLED}
        if any(at.op.operands[place] in at.active for place in branch.places):
            settled = set()
        given = [*(("operand", place) for place in branch.places), ("result", first), ("result", first + 1)]
        implicit = Implicit(
            tape,
            given,
            [self.numbers[path] for path in results],
            constant=frozenset({first, first + 1, *settled}),
            reasons={number: f"result {path[-1] if path else 0}" for number, path in paths.items()},
        )
        return implicit.adjoints(self.name, at)

    def _equation(
        self, tape: Tape, registry: Registry, measured: Mapping[Path, Callable[..., Any]]
    ) -> tuple[Tape, list[Path]]:
        """The gradient, or at a bound the way to it; what further outputs are."""
        tape = replace(tape, outputs=tape.outputs[:1], guards=())
        (value,), solution = tape.outputs, tape.inputs[0].variable
        builder, type = tape.builder(), tape.types[value]
        results = [path for path in (("fun",), (1,)) if path in self.numbers and self._is_value(path, type)]
        scale, weigh = float(self.scale), _WEIGHTS[self.squares]
        weights = emitted(builder, taped(lambda f: weigh(f, (f / scale) ** 2), [type], registry), [value]).outputs[0]
        (slope,) = reverse(tape, builder, {value: weights}, [solution], registry)
        where = builder.types[solution]
        slope = zeros_like(builder, solution) if slope is None else match(builder, slope, where)
        taken = TensorType(np.dtype(float), (where.size, where.size)) if self.constraints else None
        at = builder.input(taken or TensorType(np.dtype(bool), where.shape), len(builder.inputs), "at")
        same = builder.input(TensorType(np.dtype(float), where.shape), len(builder.inputs), "same")

        given = [solution, at, same, slope, value]
        if any(measure in (_covariance, _absolute) for measure in measured.values()):
            given.append(jacobian_rows(builder, tape, registry, reverse))

        def ended(x: Any, at: Any, same: Any, slope: Any, value: Any, *rows: Any) -> Any:
            further = [measure(value, *rows) for measure in measured.values()]
            rest = np.where(at, x - same, slope) if taken is None else slope + at @ (x - same - slope)
            return rest.astype(where.dtype), *[value] * len(results), *further

        outputs = emitted(builder, taped(ended, [builder.types[each] for each in given], registry), given).outputs
        builder.inputs = [Input(each.variable, number, each.name) for number, each in enumerate(builder.inputs)]
        return builder.finish(outputs), [*results, *measured]

    def _is_value(self, path: Path, type: TensorType) -> bool:
        """Whether a result is what the function gives at the solution."""
        found = self.types[self.numbers[path]]
        return found.size == type.size and (path != (1,) or not self.squares)


def _absolute(rest: Any, rows: Any) -> Any:
    """The covariance of the parameters of a fit, from what is left and its derivatives by each parameter."""
    return np.linalg.inv(rows @ rows.T)


def _covariance(rest: Any, rows: Any) -> Any:
    """The same, scaled so that what is left has the variance that it shows."""
    more = rest.size - len(rows)
    if more < 1:
        raise DifferentiationError("the covariance of a fit has no derivative: there are no more data than parameters")
    return _absolute(rest, rows) * (np.sum(rest**2) / more)


def _recorded(call: Call, place: Path, *, squares: str = "", **attributes: Any) -> Any:
    """The result of a call, with traced values in it."""
    if call.is_placed("f_scale"):
        raise call.trace.unrecorded(f"{call.name} with traced f_scale", "Scale the function.")
    taken = solution_at(place)

    def run(functions: Sequence[Callable[..., Any]], *others: Any) -> Solution:
        return host.reached(taken(call.run(functions, *others)), functions, others)

    host = Minimum(call.name, call.inner, run)
    host.squares = squares
    host.moving = any(map(call.is_placed, ("bounds", "x1", "x2")))
    for name, value in attributes.items():
        setattr(host, name, value)
    found, host.numbers = recorded(call, host, place)
    if host.moving and host.held:
        raise call.trace.unrecorded(f"{call.name} with a traced bound that the solution reaches", "Eliminate it.")
    return found


@calls_back("scipy.optimize", "minimize")
def _minimize(trace: Trace, *args: Any, **keywords: Any) -> Any:
    original = sys.modules["scipy.optimize"].minimize
    call = Call(trace, original, args, keywords, ["fun", "jac", "hess", "hessp"])
    constraints = call.arguments["constraints"]
    constraints = constraints if isinstance(constraints, (tuple, list)) else (constraints,)
    linear = sys.modules["scipy.optimize"].LinearConstraint
    if not all(isinstance(each, linear) and not is_traced([each.A, each.lb, each.ub]) for each in constraints):
        raise trace.unrecorded(
            "scipy.optimize.minimize with constraints other than plain LinearConstraints",
            "Eliminate them, or solve the conditions of the optimum by root.",
        )
    if constraints and call.is_placed("bounds"):
        raise trace.unrecorded("scipy.optimize.minimize with constraints and traced bounds", "Eliminate them.")
    # They may be arrays, which the user writes into.
    return _recorded(call, ("x",), bounds=_limits(call, _pair), constraints=constraints)


@calls_back("scipy.optimize", "minimize_scalar")
def _minimize_scalar(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].minimize_scalar, args, keywords, ["fun"])
    return _recorded(call, ("x",), bounds=_limits(call, tuple))


@calls_back("scipy.optimize", "fmin_slsqp", "fmin_cobyla", named=True)
def _unrecorded(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.unrecorded(f"scipy.optimize.{name}", "Use minimize.")


_CALLED = {
    name: called
    for names, called in {
        "fmin fmin_powell fminbound brent golden": ["func"],
        "fmin_bfgs fmin_cg fmin_ncg": ["f", "fprime", "fhess", "fhess_p"],
        "fmin_l_bfgs_b fmin_tnc": ["func", "fprime"],
    }.items()
    for name in names.split()
}
"""Parameters that are functions."""


@calls_back("scipy.optimize", *_CALLED, named=True)
def _old(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    """What records a function that gives the minimum, and more where that is asked for."""
    call = Call(trace, getattr(sys.modules["scipy.optimize"], name), args, keywords, _CALLED[name])
    several = name in ("fmin_l_bfgs_b", "fmin_tnc") or call.arguments.get("full_output")
    several = several or call.arguments.get("retall")
    bounds = _limits(call, _pair)
    if "x1" in call.arguments:
        bounds = lambda *others: tuple(call.value(end, (), others) for end in ("x1", "x2"))  # noqa: E731
    return _recorded(call, (0,) if several else (), bounds=bounds)


@calls_back("scipy.optimize", "least_squares")
def _least_squares(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].least_squares, args, keywords, ["fun", "jac"])
    loss = call.arguments["loss"]
    if loss not in _WEIGHTS or call.arguments["kwargs"]:
        raise trace.unrecorded(f"{call.name} with kwargs, or a loss of one's own", "Put them into the function.")
    return _recorded(
        call, ("x",), squares=loss, scale=call.arguments["f_scale"], measured=_COST if loss == "linear" else {}
    )


@calls_back("scipy.optimize", "leastsq")
def _leastsq(trace: Trace, *args: Any, **keywords: Any) -> Any:
    call = Call(trace, sys.modules["scipy.optimize"].leastsq, args, keywords, ["func", "Dfun"])
    return _recorded(call, (0,), squares="linear", measured={(1,): _absolute, (2, "fvec"): lambda rest: rest})


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
    bounds = _limits(call, lambda found: _pair(found) if hasattr(found, "lb") else found)
    measured = {(1,): _absolute if given.arguments["absolute_sigma"] else _covariance, (2, "fvec"): lambda rest: rest}
    return _recorded(call, (0,), squares="linear", bounds=bounds, measured=measured)


def _limits(call: Call, pair: Callable[[Any], tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]] | None:
    """The lower and upper bounds of a call, from the values of its operands; None where there are none."""
    if call.arguments.get("bounds") is None:
        return None
    return lambda *others: pair(call.value("bounds", (), others))


def _pair(bounds: Any) -> tuple[Any, Any]:
    """Lower and upper bounds of ``Bounds``, or of a pair for each variable."""
    if hasattr(bounds, "lb"):
        return bounds.lb, bounds.ub
    pairs = [[-np.inf if low is None else low, np.inf if high is None else high] for low, high in bounds]
    return tuple(np.asarray(pairs, float).T)


@records("scipy.optimize", "nnls")
def _nnls(trace: Trace, *args: Any, **keywords: Any) -> Any:
    measured = {(1,): lambda rest: np.sqrt(np.sum(rest**2))}
    return _linear(trace, "nnls", (0,), lambda *_: (0.0, np.inf), measured, args, keywords)


@records("scipy.optimize", "lsq_linear")
def _lsq_linear(trace: Trace, *args: Any, **keywords: Any) -> Any:
    return _linear(trace, "lsq_linear", ("x",), None, _COST, args, keywords)


def _linear(trace: Trace, name: str, place: Path, bounds: Any, measured: Any, args: Any, keywords: Any) -> Any:
    """The least squares of a matrix times the solution, less a vector."""
    original = sys.modules["scipy.optimize"].__dict__[name]
    given = inspect.signature(inspect.unwrap(original)).bind(*args, **keywords).arguments
    matrix, right = trace.traced(given["A"]), trace.traced(given["b"])
    call = Call(trace, original, args, keywords, [], before=lambda x: matrix @ x - right)
    return _recorded(call, place, squares="linear", bounds=bounds, measured=measured)


_GLOBAL = ("differential_evolution", "dual_annealing", "basinhopping", "shgo", "brute", "direct")


@calls_back("scipy.optimize", *_GLOBAL, named=True)
def _refused(name: str, trace: Trace, *args: Any, **keywords: Any) -> Any:
    raise trace.refuse(
        f"scipy.optimize.{name} searches for the lowest of several minima, and which one that is may change at any "
        "point: the result has no derivative there.",
        "Call it outside of the function, and scipy.optimize.minimize inside, from the place that it found.",
    )
