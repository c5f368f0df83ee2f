"""Differential equations by scipy.integrate's explicit methods: the derivative is that of the steps that were taken."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.autodiff.match import match
from yota.errors import DifferentiationError
from yota.ir.catalog import item_of, primitive
from yota.ir.indexing import GATHER, Slice
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.solvers.calls import Call, Path, recorded, solution_at
from yota.solvers.implicit import Host, Solution, constant, emitted
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace

_FEWEST = 64
"""Steps for which there is room at least; beyond it, for twice as many as were taken."""
_EXPLICIT = ("RK23", "RK45", "DOP853")


class Steps(Host):
    """A call of `scipy.integrate.solve_ivp` with an explicit method; see `Host`.

    method: SciPy's class of the method.
    operands: which operand ``y0``, ``t_span`` and ``t_eval`` are, where they are traced; else their values.
    numbers: which result is what.
    failure: what SciPy says of steps that came to no end.
    """

    method: Any
    failure = ""
    room = 0
    operands: dict[str, Any]
    numbers: dict[Path, int]

    def taken(self, call: Call, functions: Sequence[Callable[..., Any]], others: Sequence[Any]) -> Solution:
        """Call SciPy, and keep where the steps ended."""
        knots: list[float] = []
        rate = functions[0]
        # The first time is a number of Python's, and all others are NumPy's.
        plain = [lambda t, y: rate(np.float64(t), y), *functions[1:]]
        whole = call.run(plain, *others, method=_recording(self.method, knots))
        found = solution_at(("y",))(whole)
        count = len(knots) - 1
        self.room = self.room or max(_FEWEST, 2 * count)
        if count > self.room:
            return Solution([], found.ended, whole)
        ends = np.array(knots + [knots[-1]] * (self.room - count))
        sign = -1.0 if ends[-1] < ends[0] else 1.0
        at = (
            np.searchsorted(sign * ends[1 : count + 1], sign * np.asarray(whole.t)) if count else np.zeros(len(whole.t))
        )
        at = np.clip(at, 0, max(count - 1, 0)).astype(np.int64)
        last = (np.arange(self.room + 1) >= count) & (whole.status == 0)
        return Solution([*found.arrays, ends, count, at, last], found.ended, whole)

    def adjoints(self, builder: Any, registry: Any, op: Op, adjoints: Any, active: Any, reverse: Any) -> Any:
        """See `Host.adjoints`."""
        paths = {number: path for path, number in self.numbers.items()}
        # The lengths of steps are constants.
        adjoints = {number: each for number, each in adjoints.items() if number in paths}
        if not adjoints:
            return []
        if self.failure:
            raise DifferentiationError(f"{self.name} failed, and its result has no derivative: {self.failure}")
        if len(self._inner.functions[0].branches) != 1:
            raise DifferentiationError(
                f"{self.name}: the right-hand side decides by traced values, and takes several branches on the way; "
                "write the choice with np.where"
            )
        first = len(builder.ops)
        places, times = _Scheme(self, builder, op).run()
        tape = Tape(self.name, (), builder.constants, tuple(builder.ops[first:]), (), builder.types)
        seeds: dict[int, int] = {}
        for number, adjoint in adjoints.items():
            variable = places if paths[number] == ("y",) else times
            seeds[variable] = match(builder, adjoint, builder.types[variable])
        wrt = sorted({each for each in op.operands if each in active})
        found = zip(wrt, reverse(tape, builder, seeds, wrt, registry), strict=True)
        return [(each, match(builder, one, builder.types[each])) for each, one in found if one is not None]


def _recording(method: Any, knots: list[float]) -> Any:
    """The method, which adds to ``knots`` where it begins and where each step ends."""

    class Recording(method):  # type: ignore[misc]
        def __init__(self, fun: Any, t0: float, *args: Any, **keywords: Any) -> None:
            super().__init__(fun, t0, *args, **keywords)
            knots.append(float(t0))

        def step(self) -> Any:
            message = super().step()
            if self.status != "failed":
                knots.append(float(self.t))
            return message

    return Recording


class _Scheme:
    """The steps of a Runge-Kutta method as a loop on a tape."""

    def __init__(self, host: Steps, builder: TapeBuilder, op: Op) -> None:
        self.host, self.builder, self.op = host, builder, op
        (branch,) = host._inner.functions[0].branches
        self.rate = branch.tape
        self.read = [op.operands[place] for place in branch.places]
        types: Any = builder.types[op.result]
        self.type = TensorType(types.parts[0].dtype, types.parts[0].shape[:1])
        self.count = types.parts[0].shape[1]
        self.interpolates = host.operands["t_eval"] is not None
        first = max(host.numbers.values()) + 1
        self.knots, self.trips, self.at, self.last = (
            item_of(builder, op.result, first + number) for number in range(4)
        )
        self.room = host.room

    def emit(self, name: str, *operands: int, **static: Any) -> int:
        """Append an op."""
        return self.builder.emit(primitive(name), operands, static)

    def operand(self, name: str) -> int:
        """An argument of the call as a variable."""
        value = self.host.operands[name]
        if isinstance(value, int):
            return self.op.operands[value]
        array = np.array(value)
        array.flags.writeable = False
        return self.builder.constant(array)

    def run(self) -> tuple[int, int]:
        """What the steps lead to, as the result has it; and at which times."""
        start = self.operand("y0")
        if self.builder.types[start].shape != self.type.shape:
            start = self.emit("reshape", start, shape=self.type.shape)
        start = match(self.builder, start, self.type)
        ends = self._ends()
        room = self.room
        begin, after = (self.emit("getitem", ends, index=(Slice(k, room + k),)) for k in (0, 1))
        lengths = self.emit("subtract", after, begin)
        zero = self.emit("getitem", ends, index=(0,))
        slope = self._rate(self.builder, zero, start, self.read)
        body = self._body()
        region = Region(body, 2, 2, room, counted=True, seen=room)
        operands = (self.trips, start, slope, begin, lengths, *self.read)
        loop = self.builder.emit(LOOP, operands, {"region": region})
        if not self.interpolates:
            rows = self.emit(
                "getitem", item_of(self.builder, loop, 2), index=(Slice(0, self.count - 1), *self._whole(1))
            )
            whole = self.emit("concatenate", self.emit("reshape", start, shape=(1, *self.type.shape)), rows, axis=0)
            times = self.emit("getitem", ends, index=(Slice(0, self.count),))
            return self.emit("transpose", whole, axes=(1, 0)), times
        times = match(self.builder, self.operand("t_eval"), TensorType(np.dtype(float), (self.count,)))
        return self._between(loop, times, begin, lengths), times

    def _whole(self, axes: int) -> tuple[Slice, ...]:
        return tuple(Slice(0, extent) for extent in self.type.shape[:axes])

    def _ends(self) -> int:
        """Where steps begin and end: their lengths are constants, but for the last, which ends at the last time."""
        if not isinstance(self.host.operands["t_span"], int):
            return self.knots
        span = match(self.builder, self.operand("t_span"), TensorType(np.dtype(float), (2,)))
        low, high = (self.emit("getitem", span, index=(number,)) for number in (0, 1))
        passed = self.emit("subtract", self.knots, self.emit("getitem", self.knots, index=(0,)))
        return self.emit("where", self.last, high, self.emit("add", low, passed))

    def _rate(self, builder: TapeBuilder, t: int, y: int, read: Sequence[int]) -> int:
        """The right-hand side."""
        wanted = self.rate.types[self.rate.inputs[1].variable].shape
        if builder.types[y].shape != wanted:
            y = builder.emit(primitive("reshape"), (y,), {"shape": wanted})
        found = emitted(builder, self.rate, [t, y, *read]).outputs[0]
        if builder.types[found].shape != self.type.shape:
            found = builder.emit(primitive("reshape"), (found,), {"shape": self.type.shape})
        return match(builder, found, self.type)

    def _body(self) -> Tape:
        """One step: the place and the slope after it; and what lies between."""
        method = self.host.method
        inner = TapeBuilder("step")
        number = TensorType(np.dtype(float))
        inner.input(type_of(0), 0, "i")
        y, f = (inner.input(self.type, k, name) for k, name in ((1, "y"), (2, "f")))
        t, h = (inner.input(number, k, name) for k, name in ((3, "t"), (4, "h")))
        read = [inner.input(self.builder.types[each], 5 + k, f"p{k}") for k, each in enumerate(self.read)]

        def emit(name: str, *operands: int) -> int:
            return inner.emit(primitive(name), operands)

        def total(weights: Sequence[float], rows: Sequence[int]) -> int | None:
            found = None
            for weight, row in zip(weights, rows, strict=False):
                if weight:
                    part = emit("multiply", inner.constant(float(weight)), row)
                    found = part if found is None else emit("add", found, part)
            return found

        def moved(weights: Sequence[float], rows: Sequence[int]) -> int:
            found = total(weights, rows)
            return y if found is None else emit("add", y, emit("multiply", h, found))

        def stage(weights: Sequence[float], c: float) -> int:
            at = emit("add", t, emit("multiply", inner.constant(float(c)), h))
            return self._rate(inner, at, moved(weights, slopes), read)

        slopes = [f]
        for weights, c in zip(method.A[1:], method.C[1:], strict=False):
            slopes.append(stage(weights[: len(slopes)], c))
        after = moved(method.B, slopes)
        slopes.append(self._rate(inner, emit("add", t, h), after, read))
        rows = [after]
        if self.interpolates and isinstance(method.P, np.ndarray):
            empty = constant(inner, self.type, np.zeros(self.type.shape))
            sums = [total(column, slopes) for column in method.P.T]
            parts = [empty if each is None else emit("multiply", h, each) for each in sums]
            rows = [y, inner.emit(primitive("stack"), parts, {"axis": 0})]
        elif self.interpolates:
            last = slopes[-1]
            for weights, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
                slopes.append(stage(weights[: len(slopes)], c))
            step = emit("subtract", after, y)
            first = emit("multiply", h, f)
            parts = [step, emit("subtract", first, step)]
            both = emit("add", emit("multiply", h, last), first)
            parts.append(emit("subtract", emit("multiply", inner.constant(2.0), step), both))
            for weights in method.D:
                found = total(weights, slopes)
                assert found is not None
                parts.append(emit("multiply", h, found))
            rows = [y, inner.emit(primitive("stack"), parts, {"axis": 0})]
        new = slopes[method.n_stages]
        inner.inputs = [Input(each.variable, number, each.name) for number, each in enumerate(inner.inputs)]
        return inner.finish([after, new, *rows])

    def _between(self, loop: int, times: int, begin: int, lengths: int) -> int:
        """The places at ``times`` by the method's own polynomials."""
        starts, terms = (item_of(self.builder, loop, number) for number in (2, 3))
        size = self.type.shape[0]
        order = self.builder.types[terms].shape[1]
        y = self.emit("getitem", starts, self.at, index=(GATHER, Slice(0, size)))
        terms = self.emit("getitem", terms, self.at, index=(GATHER, Slice(0, order), Slice(0, size)))
        t, h = (self.emit("getitem", each, self.at, index=(GATHER,)) for each in (begin, lengths))
        x = self.emit("divide", self.emit("subtract", times, t), h)
        x = self.emit("reshape", x, shape=(self.count, 1))
        term = [
            self.emit("getitem", terms, index=(Slice(0, self.count), number, Slice(0, size))) for number in range(order)
        ]
        if isinstance(self.host.method.P, np.ndarray):
            # Horner's form of x, x**2, ... without a constant.
            found = term[-1]
            for each in term[-2::-1]:
                found = self.emit("add", each, self.emit("multiply", found, x))
            found = self.emit("multiply", found, x)
        else:
            rest = self.emit("subtract", self.builder.constant(1.0), x)
            found = term[-1]
            for number, each in enumerate(term[-2::-1]):
                found = self.emit("add", self.emit("multiply", found, rest if number % 2 else x), each)
            found = self.emit("multiply", found, x)
        return self.emit("transpose", self.emit("add", found, y), axes=(1, 0))


@calls_back("scipy.integrate", "solve_ivp")
def _solve_ivp(trace: Trace, *args: Any, **keywords: Any) -> Any:
    module = sys.modules["scipy.integrate"]
    call = Call(trace, module.solve_ivp, args, keywords, ["fun"], lifted=["y0", "t_eval"])
    method = call.arguments["method"]
    method = getattr(module, method) if method in _EXPLICIT else method
    if not (inspect.isclass(method) and issubclass(method, module._ivp.rk.RungeKutta)):
        raise trace.unrecorded(f"scipy.integrate.solve_ivp with method={method!r}", 'Use "RK45", "RK23" or "DOP853".')
    if call.arguments["events"] is not None:
        raise trace.unrecorded("scipy.integrate.solve_ivp with events", "Leave them out.")
    host = Steps(call.name, call.inner, lambda functions, *others: host.taken(call, functions, others))
    host.method = method
    times = call.arguments["t_eval"]
    if isinstance(times, (list, tuple, np.ndarray)) and not len(times):
        raise trace.unrecorded("scipy.integrate.solve_ivp with an empty t_eval", "Leave it out.")
    found, host.numbers = recorded(call, host, ("y",))
    host.failure = found.message if found.status < 0 else ""
    host.operands = {name: call.operand(name) for name in ("y0", "t_span", "t_eval")}
    return found
