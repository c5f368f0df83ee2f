"""Loops of the user's, each recorded by one trip: while a traced condition holds, or for the numbers of a range."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.ir.tape import Op
from yota.tracing.conversions import FirstRun
from yota.tracing.current import current
from yota.tracing.indices import affine, only_counts
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT
from yota.tracing.rewriting.items import Items, items_of
from yota.tracing.rewriting.operator_rules import iterate
from yota.tracing.rewriting.rewritten import RULES
from yota.tracing.trace import Trace

_TRIED = 2
"""Number of trips before which a loop may begin: what is tested, or carried, may be a constant in the first one."""
MANY = 64
"""Trips that are left from which on a loop that does not depend on values is recorded as one."""
_WHOLE = ("absolute", "add", "floor_divide", "multiply", "negative", "positive", "remainder", "subtract", "where")
"""Primitives of whole numbers that do not outgrow 64 bits by a few trips."""
_MODEST = 8
"""Exponents up to which powers of Python's numbers are taken not to overflow."""
_PLAIN = (bool, int, str)
FORMS: dict[str, Callable[..., Any]] = {}
"""What records loops; see `follows`."""


def follows(**forms: Callable[..., Any]) -> None:
    """Have functions record loops.

    They are ``conditional(condition, body, carried, moved)``, ``counted(count, body, carried, moved)`` and
    ``mapped(count, body)``; for ``moved`` see `CarriedValues`.
    """
    FORMS.update(forms)


class _OneTrip(FirstRun):
    """A trip that stands for all: it may do nothing outside of itself, be it printing."""

    skips_output = may_draw = False
    selects = True

    def is_over(self, trace: Trace) -> bool:
        return False

    def arrives(self, trace: Trace) -> bool:
        return False

    def block(self, trace: Trace) -> TracingError:
        return TracingError("a trip does something besides computing")


class TracedLoop:
    """A loop of the user's, which may be recorded as one for every number of trips.

    test: whether another trip follows; of a ``for`` and of ``while True``, whether this is the last. None if no test
        ends the loop.
    body: gives the variables after a trip from those before, and the step of a ``for``.
    needed: the variables that must have a value before the first trip.
    lines: the first and last line of the loop.
    """

    __slots__ = (
        *("_body", "_done", "_is_over", "_items", "_leaves", "_lines", "_names", "_needed", "_number", "_test"),
        *("_tried", "_waited"),
    )

    def __init__(
        self,
        test: Callable[[Any, Any], Any] | None,
        body: Callable[[Any, Any], Any],
        names: Sequence[str],
        needed: Collection[str],
        number: str,
        leaves: bool,
        lines: tuple[int, int],
    ) -> None:
        self._test, self._body, self._names, self._needed = test, body, names, needed
        self._number, self._leaves, self._lines = number, leaves, lines
        self._items: Items | None = None
        self._tried = self._waited = self._done = 0
        self._is_over = False

    def over(self, values: Any) -> Iterator[Any]:
        """The values that a ``for`` runs over, until it is stopped."""
        found = items_of(values)
        self._items = found if found is not None and found.count > 1 else None
        trace = current()
        around = None if trace is None else trace.loop
        if trace is not None and around is None:
            trace.loop = self
        try:
            for value in iterate(values if found is None else found.values):
                yield value
                if self._is_over:
                    return
                self._done += 1
        finally:
            if trace is not None:
                trace.loop = around

    def stop(self) -> None:
        """End the ``for`` after this trip."""
        self._is_over = True

    def recorded(self) -> list[Any] | None:
        """The variables after the last trip, up to its test, if the rest was recorded as a loop; None if it was not.

        A condition must be traced, and trips may do nothing but compute numbers and arrays for names.
        """
        self._tried += 1
        trace = current()
        if self._tried > _TRIED or trace is None or not trace.rolls or trace.sizes is not None:
            return None
        if not FORMS or (self._number and self._items is None):
            return None
        user = sys._getframe(1)
        variables = user.f_locals
        given = [variables.get(name, ABSENT) for name in self._names]
        if any(each is ABSENT and name in self._needed for name, each in zip(self._names, given, strict=True)):
            # A later trip may give it a value.
            self._waited, self._tried = self._waited + 1, self._tried - (self._waited < MANY)
            return None
        if self._number and self._test is not None and self._range is None:
            return None
        if self._test is None:
            return self._counted(trace, given, user.f_code.co_filename)
        if isinstance(trace.first_run, _OneTrip) or (trace.deep and trace.first_run is not None):
            return None
        if not all(each is ABSENT or _is_number(each) for each in given):
            return None
        if not self._is_traced(trace, given, self._test):
            return None
        found = self._conditional(trace, given, self._test)
        if found is not None or trace.loop is self:
            trace.loop_ends(user.f_code.co_filename, self._lines, found is not None)
        return found

    def _is_traced(self, trace: Trace, given: list[Any], test: Callable[[Any, Any], Any]) -> bool:
        """Whether the condition depends on inputs, and does nothing but compute."""
        first_run, trace.first_run = trace.first_run, _OneTrip(trace, ())
        try:
            return trace.varies(test(given, self._step))
        except Exception:  # noqa: BLE001  (it comes again)
            return False
        finally:
            trace.first_run = first_run

    @property
    def _range(self) -> range | None:
        values = None if self._items is None else self._items.values
        return values if type(values) is range else None

    @property
    def _step(self) -> int:
        return 0 if self._range is None else self._range.step

    def _conditional(self, trace: Trace, given: list[Any], test: Callable[[Any, Any], Any]) -> list[Any] | None:
        carried = CarriedValues(given, whole=True)

        def condition(values: Any) -> Any:
            every = carried.entered(trace, values)
            found = test(every, self._step)
            if not self._leaves:
                return found
            stays = np.logical_not(found)
            if self._range is None:
                return stays
            return np.logical_and(stays, every[self._names.index(self._number)] != self._range[-1])

        def body(values: Any) -> Any:
            return carried.after(values, self._body(carried.entered(trace, values), self._step))

        return carried.recorded(trace, lambda first: FORMS["conditional"](condition, body, first, carried.moved))

    def _counted(self, trace: Trace, given: list[Any], filename: str) -> list[Any] | None:
        """The variables after the last trip of a ``for`` that nothing ends but its values."""
        assert self._items is not None
        place = self._names.index(self._number)
        left = self._items.count - self._done
        if self._tried < _TRIED or left < MANY or not trace.varies([*_parts(given)]):
            return None
        given[place] = ABSENT
        found = None
        for whole in (False, True) if int in map(type, given) else (False,):
            found = found or self._counted_by(trace, given, place, left, whole)
        if found is not None:
            found[place] = self._items.at(self._items.count - 1)
        if found is not None or trace.loop is self:
            trace.loop_ends(filename, self._lines, found is not None)
        return found

    def _counted_by(self, trace: Trace, given: list[Any], place: int, left: int, whole: bool) -> list[Any] | None:
        carried = CarriedValues(given, whole=whole)

        def body(trip: Any, values: Any) -> Any:
            assert self._items is not None
            every = carried.entered(trace, values)
            every[place] = self._items.at(trip + self._done)
            return carried.after(values, self._body(every, self._step))

        return carried.recorded(trace, lambda first: FORMS["counted"](left, body, first, carried.moved))


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
        if inner is not None and inner is not trace and not isinstance(inner.first_run, _OneTrip):
            inner.first_run = _OneTrip(inner, ())
        every = [*self.given]
        for place, value in zip(self.places, values, strict=True):
            every[place] = value
        self._before = [(each, each._variable) for value in values for each in _parts(value)]
        return every

    def moved(self) -> dict[int, int]:
        """The moves of arrays into which trips write, by their numbers among all that is carried."""
        parts = [place for place in self.places for _ in _parts(self.given[place])]
        return {parts.index(place): parts.index(after) for place, after in self.moves.items()}

    def after(self, values: Sequence[Any], found: Sequence[Any]) -> tuple[Any, ...]:
        """What is carried to the next trip."""
        self._follow_written(values, found)
        for place, (before, value) in enumerate(zip(self.given, found, strict=True)):
            if place not in self.places and before is not ABSENT and not _is_same(before, value):
                raise TracingError("a trip changes something that is no number and no array of them")
        carried = tuple([found[place] for place in self.places])
        _refuse_growth(_parts(values), _parts(carried))
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
        if not all(is_tracer(each) and np.all(np.isfinite(each._value())) for each in _parts(after)):
            return None  # Python's numbers may have raised an error on the way
        return after


RULES["loop"] = TracedLoop


def _is_number(value: Any) -> bool:
    return is_tracer(value) or type(value) in (int, float) or isinstance(value, (np.floating, np.ndarray))


def _is_carried(value: Any, whole: bool) -> bool:
    if type(value) in (tuple, list):
        return bool(value) and all(_is_carried(each, whole) for each in value)
    return _is_number(value) and (whole or type(value) is not int)


def _parts(value: Any) -> Iterator[Any]:
    """What tuples and lists in each other hold."""
    if type(value) in (tuple, list):
        for each in value:
            yield from _parts(each)
    else:
        yield value


def _is_same(before: Any, after: Any) -> bool:
    return before is after or (type(before) is type(after) and type(before) in _PLAIN and before == after)


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
