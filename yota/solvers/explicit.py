"""Differential equations by scipy.integrate's explicit methods: the derivative is that of the steps that were taken.

Where the user chose the times, generated code takes the steps: SciPy's algorithm, with its operations in their order.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import astuple
from types import SimpleNamespace
from typing import Any

import numpy as np

from yota.emit.python.loop_functions import is_plain
from yota.ir.catalog import item_of
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.run.specialise import Target, is_in_c, loaded, parts_of, simplified, source_of
from yota.solvers.integration_steps import Scheme, Stepped, Steps, Track, at_numbers, rate_of
from yota.solvers.solver_calls import Operand
from yota.tracing.current import paused
from yota.transform.reverse.tape_parts import taped

_NUMBER = TensorType(np.dtype(float))
_TRIALS = 4
"""Trials of a step for which there is room, for each step that has room."""
_MOST = 2**20
"""Elements of what the trials keep up to which generated code takes the steps."""
_SHORTEST = 4e-15
"""The length of a step, as a part of the time, below which SciPy is asked: it may say that it failed."""


def _total(weights: Sequence[float], rows: Sequence[Any]) -> Any:
    terms = [float(weight) * row for weight, row in zip(weights, rows, strict=False) if weight]
    return sum(terms[1:], terms[0]) if terms else 0.0 * rows[0]


def _step(method: Any, rate: Callable[..., Any], t: Any, y: Any, f: Any, h: Any) -> tuple[Any, list[Any]]:
    """The state after a step, and the slopes at all stages, the last of which is there."""
    slopes = [f]
    for weights, c in zip(method.A[1:], method.C[1:], strict=False):
        slopes.append(rate(t + float(c) * h, y + h * _total(weights, slopes)))
    after = y + h * _total(method.B, slopes)
    return after, [*slopes, rate(t + h, after)]


def _terms(
    method: Any, rate: Callable[..., Any], t: Any, y: Any, h: Any, after: Any, slopes: Sequence[Any]
) -> list[Any]:
    """The coefficients of the polynomial that gives the state within a step."""
    if isinstance(method.P, np.ndarray):
        return [h * _total(column, slopes) for column in method.P.T]
    slopes, last = list(slopes), slopes[-1]
    for weights, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
        slopes.append(rate(t + float(c) * h, y + h * _total(weights, slopes)))
    step = after - y
    first = h * slopes[0]
    return [step, first - step, 2.0 * step - (h * last + first), *(h * _total(row, slopes) for row in method.D)]


def _within(method: Any, x: Any, y: Any, terms: Sequence[Any]) -> Any:
    """The states at the parts ``x`` of steps, for each one row."""
    x = np.reshape(x, (-1, 1))
    dense = isinstance(method.P, np.ndarray)
    found = terms[-1]
    for number, term in enumerate(terms[-2::-1]):
        found = term + found * (x if dense or not number % 2 else 1.0 - x)
    return found * x + y


def _error(method: Any, slopes: Sequence[Any], h: Any, scale: Any) -> Any:
    """The estimate of the error of a step, in units of the tolerances."""
    size = scale.shape[0]
    if isinstance(method.P, np.ndarray):
        rows = _total(method.E, slopes) * h / scale
        return np.sqrt(np.sum(rows * rows)) / size**0.5
    five, three = (_total(weights, slopes) / scale for weights in (method.E5, method.E3))
    square = np.sum(five * five)
    both = square + 0.01 * np.sum(three * three)
    return np.where(both == 0, 0.0, np.abs(h) * square / np.sqrt(np.where(both == 0, 1.0, both) * size))


def _trial(
    method: Any, rate: Callable[..., Any], t: Any, y: Any, f: Any, length: Any, accepted: Any, fixed: Sequence[Any]
) -> tuple[Any, ...]:
    """One trial of a step: what the next one begins with, and what is kept of it. See SciPy's `RungeKutta._step_impl`.

    accepted: whether the last trial was.
    fixed: the last time, the direction, the tolerances and the largest step.
    """
    last, direction, rtol, atol, largest = fixed
    after = t + np.minimum(length, largest) * direction
    after = np.where(direction * (after - last) > 0, last, after)
    h = after - t
    moved, slopes = _step(method, rate, t, y, f, h)
    error = _error(method, slopes, h, atol + np.maximum(np.abs(y), np.abs(moved)) * rtol)
    fits = error < 1
    factor = 0.9 * np.where(error == 0, 1.0, error) ** (-1 / (method.error_estimator_order + 1))
    longer = np.where(error == 0, 10.0, np.where(factor < 10.0, factor, 10.0))
    longer = np.where(accepted, longer, np.where(longer < 1.0, longer, 1.0))
    shorter = np.where(factor > 0.2, factor, 0.2)
    taken = [np.where(fits, *pair) for pair in ((after, t), (moved, y), (slopes[-1], f), (longer, shorter))]
    rows = _terms(method, rate, t, y, h, moved, slopes)
    return *taken[:3], np.abs(h) * taken[3], fits, np.where(fits, 1.0, -1.0), t, after, y, *rows


class RungeKutta(Scheme):
    """The steps of a Runge-Kutta method as a loop on a tape."""

    def run(self) -> tuple[int, int]:
        """What the steps lead to, as the result has it; and at which times."""
        room, method, count, start, ends = self.room, self.host.method, self.count, self.start(), self.ends()
        first = [ends, start, *self.read]
        begin, lengths, slope = self.inlined(
            lambda ends, y, *read: (ends[:-1], ends[1:] - ends[:-1], self.rate(read)(ends[0], y)), first
        )
        wanted = self.host.operands["t_eval"] is not None
        region = Region(self._body(wanted), 2, 2, room, counted=True, seen=room)
        operands = (self.kept(2), start, slope, begin, lengths, *self.read)
        loop = self.builder.emit(LOOP, operands, {"region": region})
        rows = [item_of(self.builder, loop, number) for number in range(2, len(region.body.outputs))]
        if not wanted:
            states, times = self.inlined(
                lambda ends, y, rows: (np.concatenate([y[None], rows[: count - 1]]), ends[:count]), [*first[:2], *rows]
            )
            return states, times

        def between(times: Any, at: Any, begin: Any, lengths: Any, y: Any, *terms: Any) -> Any:
            return _within(method, (times - begin[at]) / lengths[at], y[at], [each[at] for each in terms])

        times = self.times()
        return self.inlined(between, [times, self.kept(3), begin, lengths, *rows])[0], times

    def _body(self, wanted: bool) -> Tape:
        """One step: the place and the slope after it; and what lies between if that is ``wanted``."""
        method = self.host.method

        def step(_: Any, y: Any, f: Any, t: Any, h: Any, *read: Any) -> Any:
            rate = self.rate(read)
            after, slopes = _step(method, rate, t, y, f, h)
            kept = [y, *_terms(method, rate, t, y, h, after, slopes)] if wanted else [after]
            return after, slopes[method.n_stages], *kept

        types = [type_of(0), self.type, self.type, _NUMBER, _NUMBER, *(self.builder.types[each] for each in self.read)]
        return taped(step, types, self.host.registry)


class ExplicitSteps(Steps):
    """A call of a solver with an explicit method; see `Steps`.

    target: of the code that takes the steps; None if SciPy does.
    """

    scheme, dense = RungeKutta, False
    target: Target | None = None
    _source: Any = None
    _steps: Callable[..., Any] | None = None

    def on(self, target: Any) -> ExplicitSteps:
        """See `Host.on`."""
        module = importlib.import_module("scipy.integrate")
        known = self.method in (module.RK23, module.RK45, module.DOP853)
        branches = self._inner.functions[0].branches
        needs_scipy = target.strict or self.keeps or self.parent is not None or self.operands["t_eval"] is None
        if needs_scipy or not known or len(branches) != 1 or branches[0].tape.guards:
            return self
        type = branches[0].tape.types[branches[0].tape.inputs[1].variable]
        if type.dtype != float or self.room * _TRIALS * (self.method.n_stages + 4) * type.size > _MOST:
            return self
        made: ExplicitSteps = object.__new__(ExplicitSteps)
        made.__dict__.update(vars(self), target=target)
        return made

    def state(self) -> dict[str, Any]:
        """See `Carried.state`: with the code that takes the steps."""
        found = {**super().state(), "_steps": None, "_source": None, "target": None}
        if self.target is not None and self._made():
            found.update(_source=parts_of(self._source), target=astuple(self.target))
        return found

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        made = super().restored(state)
        if made.target is not None:
            made.target, made._source = Target(*made.target), SimpleNamespace(**made._source)
        return made

    def _made(self) -> bool:
        """Whether there is code that takes the steps."""
        if self._source is None and self.target is not None:
            self._source = self._generated()
            if self._source is None:
                self.target = None
        return self._source is not None

    def solve(self, values: Sequence[Any] | None, others: Sequence[Any]) -> Stepped:
        """See `Host.solve`."""
        if values is not None and self.target is not None:
            with paused(), np.errstate(all="ignore"):
                found = self._taken(values, others)
            if found is not None:
                return found
        return super().solve(values, others)

    def _taken(self, values: Sequence[Any], others: Sequence[Any]) -> Stepped | None:
        """What generated steps lead to; None if SciPy has to take them: it may refuse, warn or fail."""
        functions = [self._inner.functions[0].at(values)]
        names = ("t_span", "y0", "t_eval", "vectorized", "options")
        span, y, times, vectorized, options = (self.call.value(name, functions, others) for name in names)
        times, (t, last) = np.asarray(times, float), map(float, span)
        path = np.sign(last - t) * np.array([t, *times, last])
        if t == last or not len(times) or np.any(np.diff(path) < 0) or not np.all(np.diff(path[1:-1])):
            return None
        solver = self.method(at_numbers(functions[0]), t, y, last, vectorized=vectorized, **options)
        (branch,) = self._inner.functions[0].branches
        slope = np.broadcast_to(solver.f, solver.y.shape)
        given = [np.float64(t), solver.y, slope, np.float64(solver.h_abs), np.True_]
        fixed = (last, solver.direction, solver.rtol, solver.atol, solver.max_step)
        given += [*(np.asarray(each, float)[()] for each in fixed), *(values[place] for place in branch.places)]
        if not self._made():
            return None
        if self._steps is None:
            self._steps = loaded(self._source)
        accepted, begin, ends, starts, *terms = self._steps(*given)
        at = np.flatnonzero(accepted > 0)
        begin, ends = begin[at], ends[at]
        if not len(at) or ends[-1] != last:
            return None
        track = Track()
        track.knots, track.times, track.wanted = [*begin.tolist(), last], times, True
        place = self.kept(track)[1]
        parts, at = (times - begin[place]) / (ends - begin)[place], at[place]
        whole = _within(self.method, parts, starts[at], [each[at] for each in terms])
        count = solver.nfev + self.method.n_stages * np.count_nonzero(accepted)
        if not isinstance(self.method.P, np.ndarray):
            count += len(self.method.A_EXTRA) * len(np.unique(place))
        ivp = importlib.import_module("scipy.integrate")._ivp.ivp
        found = ivp.OdeResult(
            t=times, y=whole.T, sol=None, t_events=None, y_events=None, nfev=int(count), njev=0, nlu=0
        )
        found.update(status=0, message=ivp.MESSAGES[0], success=True)
        return self.solution(track, found)

    def _types(self) -> list[TensorType]:
        """The types of what a trial begins with, of what is fixed, and of what the right-hand side reads."""
        (branch,) = self._inner.functions[0].branches
        state = TensorType(np.dtype(float), self.types[self.numbers[self.place]].shape[:1])
        tolerances = [TensorType(np.dtype(float), self._shape(name)) for name in ("rtol", "atol")]
        return [
            *(_NUMBER, state, state, _NUMBER, type_of(np.True_)),
            *(_NUMBER, _NUMBER, *tolerances, _NUMBER),
            *(self.given[place] for place in branch.places),
        ]

    def _shape(self, option: str) -> tuple[int, ...]:
        """The shape of a tolerance."""
        value = self.call.arguments["options"].get(option, 0.0)
        is_given = isinstance(value, Operand)
        return self.given[len(self._inner.read) + value.number].shape if is_given else np.shape(value)

    def _generated(self) -> Any:
        """Code that takes the steps: the times at which trials begin and end, and what is kept of them.

        None if NumPy would do that on arrays, which takes as long as SciPy's steps.
        """
        (branch,), method, target, types = self._inner.functions[0].branches, self.method, self.target, self._types()
        assert target is not None
        carried = types[:5]

        def trial(_: Any, t: Any, y: Any, f: Any, length: Any, accepted: Any, *rest: Any) -> Any:
            rate = rate_of(branch.tape, carried[1], rest[5:])
            return _trial(method, rate, t, y, f, length, accepted, rest[:5])

        def goes_on(_: Any, t: Any, y: Any, f: Any, length: Any, accepted: Any, *rest: Any) -> Any:
            return np.where(length > _SHORTEST * np.abs(t), rest[1] * (rest[0] - t), 0.0) > 0

        body, condition = (taped(each, [type_of(0), *types], self.registry) for each in (trial, goes_on))
        region = Region(body, len(carried), 0, _TRIALS * self.room, condition, seen=self.room)
        builder = TapeBuilder("steps")
        given = [builder.input(each, number, f"c{number}") for number, each in enumerate(types)]
        loop = builder.emit(LOOP, given, {"region": region})
        tape = builder.finish([item_of(builder, loop, number) for number in range(5, len(body.outputs))])
        tape = simplified(tape, target.first)
        if not is_in_c(target.first) and not any(is_plain(op.keyword("region")) for op in tape.ops if op.regions):
            return None
        return source_of(tape, target.first, 0)

    def kept(self, track: Track) -> list[Any]:
        """See `Steps.kept`: how many steps there are, and in which of them the times of the result are."""
        ends = np.array(track.knots)
        count = len(ends) - 1
        sign = -1.0 if ends[-1] < ends[0] else 1.0
        at = np.searchsorted(sign * ends[1:], sign * track.times)
        return [count, np.clip(at, 0, max(count - 1, 0)).astype(np.int64)]
