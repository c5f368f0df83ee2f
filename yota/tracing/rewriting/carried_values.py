"""What the trips of a loop carry, and what they may not do where one of them is recorded for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.ir.tape import Op
from yota.marks import mark_of
from yota.tracing.conversions import FirstRun
from yota.tracing.current import current
from yota.tracing.indices import affine, only_counts
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT
from yota.tracing.trace import Trace

_WHOLE = ("absolute", "add", "floor_divide", "multiply", "negative", "positive", "remainder", "subtract", "where")
"""Primitives of whole numbers that do not outgrow 64 bits by a few trips."""
_MODEST = 8
"""Exponents up to which powers of Python's numbers are taken not to overflow."""


class OneTrip(FirstRun):
    """A trip that stands for all: it may do nothing outside of itself, be it printing."""

    skips_output = may_draw = False
    selects = True

    def is_over(self, trace: Trace) -> bool:
        """Never: nothing may be done outside of it."""
        return False

    def arrives(self, trace: Trace) -> bool:
        """Never: there was no run that ended."""
        return False

    def block(self, trace: Trace) -> TracingError:
        """The error with which the attempt ends."""
        return TracingError("a trip does something besides computing")


class CarriedValues:
    """What the trips of a loop carry: numbers, arrays, and tuples and lists of them.

    Other variables must be after a trip what they were before.

    whole: whether whole numbers of Python's are carried.
    moves: of each array into which a trip writes, by its place before the trip, the place after it.
    """

    def __init__(self, given: list[Any], *, whole: bool) -> None:
        self.given, self.moves = given, dict[int, int]()
        self.places = [place for place, value in enumerate(given) if _is_carried(value, whole)]

    def entered(self, trace: Trace, values: Sequence[Any]) -> list[Any]:
        """All variables at the beginning of a trip."""
        inner = current()
        if inner is not None and inner is not trace and not isinstance(inner.first_run, OneTrip):
            inner.first_run = OneTrip(inner, ())
        every = [*self.given]
        for place, value in zip(self.places, values, strict=True):
            every[place] = value
        self._before = [(each, each._variable) for value in values for each in parts_of(value)]
        return every

    def moved(self) -> dict[int, int]:
        """The moves of arrays into which trips write, by their numbers among all that is carried."""
        parts = [place for place in self.places for _ in parts_of(self.given[place])]
        return {parts.index(place): parts.index(after) for place, after in self.moves.items()}

    def after(self, values: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
        """What is carried to the next trip."""
        self._follow_written(values, found)
        for place, (before, value) in enumerate(zip(self.given, found, strict=True)):
            if place not in self.places and before is not ABSENT and not is_same(before, value):
                raise TracingError("a trip changes something that is no number and no array of them")
        carried = tuple([found[place] for place in self.places])
        _refuse_growth(parts_of(values), parts_of(carried))
        return carried

    def _follow_written(self, values: Sequence[Any], found: Sequence[Any]) -> None:
        """Find the arrays into which a trip writes, and where they are after it: trips may exchange them.

        What is written must go on to be carried, for under other names it would have to change too.
        """
        at = {id(each): place for place, each in zip(self.places, values, strict=True)}
        moves = {at[id(found[place])]: place for place in self.places if id(found[place]) in at}
        kept = [place for place in self.places if id(found[place]) in at]
        written = [at.get(id(each)) for each, variable in self._before if each._variable != variable]
        self.moves.clear()
        for start in written:
            place = start
            while place not in self.moves:
                if place is None or place not in moves or len(set(moves.values())) != len(kept):
                    raise TracingError("a trip writes into an array that it was given")
                self.moves[place] = place = moves[place]

    def recorded(self, trace: Trace, record: Callable[[tuple[Any, ...]], Any]) -> list[Any] | None:
        """The variables after the loop that ``record`` records; None if it cannot be recorded."""
        after = self.attempted(trace, record)
        if after is None:
            return None
        found = [*self.given]
        for place, value in zip(self.places, after, strict=True):
            found[place] = value
        return found

    def attempted(self, trace: Trace, record: Callable[[tuple[Any, ...]], Any]) -> Any:
        """What ``record`` gives; None if the loop cannot be recorded."""
        refused, conversions, guards = trace.refused, {**trace.conversions}, [*trace.builder.guards]
        try:
            after = record(tuple([self.given[place] for place in self.places]))
        except Exception:  # noqa: BLE001
            # Step by step it may be recorded all the same, or end with an error of its own.
            trace.refused, trace.conversions, trace.builder.guards = refused, conversions, guards
            return None
        if not all(is_tracer(each) and np.all(np.isfinite(each._value())) for each in parts_of(after)):
            return None  # Python's numbers may have raised an error on the way
        return after


def is_number(value: Any) -> bool:
    """Whether a value is a number or an array, traced or not."""
    return is_tracer(value) or type(value) in (int, float) or isinstance(value, (np.floating, np.ndarray))


def _is_carried(value: Any, whole: bool) -> bool:
    if type(value) in (tuple, list):
        return bool(value) and all(_is_carried(each, whole) for each in value)
    return is_number(value) and (whole or type(value) is not int)


def parts_of(value: Any) -> Iterator[Any]:
    """What tuples and lists in each other hold."""
    if type(value) in (tuple, list):
        for each in value:
            yield from parts_of(each)
    else:
        yield value


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are one object, or equal numbers or texts of Python's."""
    plain = (bool, int, float, complex, str)
    return one is other or (type(one) in plain and type(other) in plain and mark_of(one) == mark_of(other))


def _refuse_growth(carried: Iterator[Any], after: Iterator[Any]) -> None:
    """Refuse trips in which a number of Python's, of any size there, may outgrow 64 bits."""
    trace = current()
    assert trace is not None
    types, builder = trace.builder.types, trace.builder
    for op in builder.ops:
        type, exponent = types[op.result], op.operands[-1]
        if op.name == "power" and type.shape and types[exponent].weak and not trace.is_constant(exponent):
            raise TracingError("NumPy rounds the square of an array otherwise than another power")
        if type.weak and not trace.is_constant(op.result):
            _refuse_faults(trace, op)
        if type.weak and type.dtype.kind == "i":
            moved = [each for each in op.operands if not trace.is_constant(each)]
            if op.name not in _WHOLE or (op.name == "multiply" and len(moved) > 1):
                raise TracingError("a whole number may outgrow 64 bits")
    for one, other in zip(carried, after, strict=False):
        first, last = one._variable, trace.lift(other)
        if types[first].weak and types[first].dtype.kind == "i" and not _goes_on(trace, first, last):
            raise TracingError("a whole number may outgrow 64 bits")


def _goes_on(trace: Trace, first: int, last: int) -> bool:
    """Whether a whole number grows by a constant in a trip, or is one after it."""
    op = trace.builder.definition(last)
    if first == last or trace.is_constant(last):
        return True
    adds = op is not None and op.name in ("add", "subtract") and trace.is_constant(op.operands[1])
    if op is None or not (adds or op.semantics.chooses):
        return False
    before = op.operands[1:] if op.semantics.chooses else op.operands[:1]
    return all(_goes_on(trace, first, each) for each in before)


def _refuse_faults(trace: Trace, op: Op) -> None:
    """Refuse what Python raises an error for in some trips, where NumPy gives an infinity: numbers that only count."""
    check = _FAULTS.get(op.name)
    if check is not None:
        check(trace, op)


def _refuse_zero(trace: Trace, op: Op) -> None:
    builder, last = trace.builder, op.operands[-1]
    if only_counts(builder, last):
        scale, shift = affine(builder, last) or (0, builder.constants.get(last, 0))
        zero, rest = divmod(-shift, scale) if scale else (0, bool(shift))
        if not rest and 0 <= zero < trace.trips:
            raise TracingError("a number of Python's may be divided by zero")


def _refuse_large(trace: Trace, op: Op) -> None:
    exponent = trace.builder.constants.get(op.operands[-1])
    is_modest = isinstance(exponent, (int, float)) and 0 <= exponent <= _MODEST
    if not is_modest and all(only_counts(trace.builder, each) for each in op.operands):
        raise TracingError("a power of a number of Python's may be too large")


_FAULTS = {**dict.fromkeys(("divide", "floor_divide", "remainder"), _refuse_zero), "power": _refuse_large}
