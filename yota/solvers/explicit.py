"""Differential equations by scipy.integrate's explicit methods: the derivative is that of the steps that were taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.indexing import GATHER, Slice
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType, type_of
from yota.solvers.implicit import constant
from yota.solvers.steps import Scheme, Steps, Track


class RungeKutta(Scheme):
    """The steps of a Runge-Kutta method as a loop on a tape."""

    def run(self) -> tuple[int, int]:
        """What the steps lead to, as the result has it; and at which times."""
        start, ends, room = self.start(), self.ends(), self.room
        begin, lengths = self.intervals(ends, room)
        zero = self.emit("getitem", ends, index=(0,))
        slope = self.rate(self.builder, zero, start, self.read)
        body = self._body()
        region = Region(body, 2, 2, room, counted=True, seen=room)
        operands = (self.kept(2), start, slope, begin, lengths, *self.read)
        loop = self.builder.emit(LOOP, operands, {"region": region})
        if self.host.operands["t_eval"] is None:
            rows = self.emit(
                "getitem", item_of(self.builder, loop, 2), index=(Slice(0, self.count - 1), *self._whole(1))
            )
            whole = self.emit("concatenate", self.emit("reshape", start, shape=(1, *self.type.shape)), rows, axis=0)
            times = self.emit("getitem", ends, index=(Slice(0, self.count),))
            return whole, times
        times = self.times()
        return self._between(loop, times, begin, lengths), times

    def _whole(self, axes: int) -> tuple[Slice, ...]:
        return tuple(Slice(0, extent) for extent in self.type.shape[:axes])

    def _body(self) -> Tape:
        """One step: the place and the slope after it; and what lies between."""
        method, interpolates = self.host.method, self.host.operands["t_eval"] is not None
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
            return self.rate(inner, at, moved(weights, slopes), read)

        slopes = [f]
        for weights, c in zip(method.A[1:], method.C[1:], strict=False):
            slopes.append(stage(weights[: len(slopes)], c))
        after = moved(method.B, slopes)
        slopes.append(self.rate(inner, emit("add", t, h), after, read))
        rows = [after]
        if interpolates and isinstance(method.P, np.ndarray):
            empty = constant(inner, self.type, np.zeros(self.type.shape))
            sums = [total(column, slopes) for column in method.P.T]
            parts = [empty if each is None else emit("multiply", h, each) for each in sums]
            rows = [y, inner.emit(primitive("stack"), parts, {"axis": 0})]
        elif interpolates:
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
        at = self.kept(3)
        y = self.emit("getitem", starts, at, index=(GATHER, Slice(0, size)))
        terms = self.emit("getitem", terms, at, index=(GATHER, Slice(0, order), Slice(0, size)))
        t, h = (self.emit("getitem", each, at, index=(GATHER,)) for each in (begin, lengths))
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
        return self.emit("add", found, y)


class ExplicitSteps(Steps):
    """A call of a solver with an explicit method; see `Steps`."""

    scheme, dense = RungeKutta, False

    def kept(self, track: Track) -> list[Any]:
        """See `Steps.kept`: how many steps there are, and in which of them the times of the result are."""
        ends = np.array(track.knots)
        count = len(ends) - 1
        sign = -1.0 if ends[-1] < ends[0] else 1.0
        at = np.searchsorted(sign * ends[1:], sign * track.times)
        return [count, np.clip(at, 0, max(count - 1, 0)).astype(np.int64)]
