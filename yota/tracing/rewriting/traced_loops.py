"""Loops of the user's, each recorded by one trip: while a traced condition holds, or for the numbers of a range."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT
from yota.tracing.rewriting.call_rules import called
from yota.tracing.rewriting.carried_values import CarriedValues, OneTrip, is_number, parts_of
from yota.tracing.rewriting.operator_rules import item, iterate
from yota.tracing.rewriting.rewritten import RULES, rule
from yota.tracing.trace import Trace

_TRIED = 2
"""Number of trips before which a loop may begin: what is tested, or carried, may be a constant in the first one."""
MANY = 64
"""Trips that are left from which on a loop that does not depend on values is recorded as one."""
FORMS: dict[str, Callable[..., Any]] = {}
"""What records loops; see `follows`."""


def follows(**forms: Callable[..., Any]) -> None:
    """Have functions record loops.

    They are ``conditional(condition, body, carried, moved)``, ``counted(count, body, carried, moved)`` and
    ``mapped(count, body)``; for ``moved`` see `CarriedValues`.
    """
    FORMS.update(forms)


@dataclass(frozen=True, slots=True)
class Items:
    """Values of which each can be had by its number, which may be traced.

    values: what Python iterates over.
    """

    values: Any
    count: int
    at: Callable[[Any], Any]


@rule("items")
def items(function: Any, *args: Any, **keywords: Any) -> Any:
    """What a function gives that a ``for`` runs over; `Items` if each value can be had by its number."""
    made = called(function, *(each.values if type(each) is Items else each for each in args), **keywords)
    source = items_of(args[0]) if args else None
    if function is enumerate and source is not None:
        start = args[1] if len(args) > 1 else keywords.get("start", 0)
        return Items(made, source.count, lambda number: (number + start, source.at(number)))
    if function is reversed and source is not None:
        return Items(made, source.count, lambda number: source.at(source.count - 1 - number))
    if function is zip and args:
        every = [found for each in args if (found := items_of(each)) is not None]
        counts = {each.count for each in every}
        if len(every) == len(args) and (len(counts) == 1 or not keywords.get("strict")):
            count = min(counts)
            return Items(made, count, lambda number: tuple([each.at(number) for each in every]))
    return made


def items_of(values: Any) -> Items | None:
    """The values of a range or an array by number; None of anything else."""
    if type(values) is Items:
        return values
    if type(values) is range:
        return Items(values, len(values), lambda number: number * values.step + values.start)
    if (type(values) is np.ndarray or is_tracer(values)) and np.ndim(values):
        return Items(values, int(np.shape(values)[0]), lambda number: item(values, number))
    return None


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
        if isinstance(trace.first_run, OneTrip) or (trace.deep and trace.first_run is not None):
            return None
        if not all(each is ABSENT or is_number(each) for each in given):
            return None
        if not self._is_traced(trace, given, self._test):
            return None
        found = self._conditional(trace, given, self._test)
        trace.loop_ends(self, user.f_code.co_filename, self._lines, found is not None)
        return found

    def _is_traced(self, trace: Trace, given: list[Any], test: Callable[[Any, Any], Any]) -> bool:
        """Whether the condition depends on inputs, and does nothing but compute."""
        first_run, trace.first_run = trace.first_run, OneTrip(trace, ())
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
        if self._tried < _TRIED or left < MANY or not trace.varies([*parts_of(given)]):
            return None
        given[place] = ABSENT
        found = None
        for whole in (False, True) if int in map(type, given) else (False,):
            found = found or self._counted_by(trace, given, place, left, whole)
        if found is not None:
            found[place] = self._items.at(self._items.count - 1)
        trace.loop_ends(self, filename, self._lines, found is not None)
        return found

    def _counted_by(self, trace: Trace, given: list[Any], place: int, left: int, whole: bool) -> list[Any] | None:
        carried = CarriedValues(given, whole=whole)

        def body(trip: Any, values: Any) -> Any:
            assert self._items is not None
            every = carried.entered(trace, values)
            every[place] = self._items.at(trip + self._done)
            return carried.after(values, self._body(every, self._step))

        return carried.recorded(trace, lambda first: FORMS["counted"](left, body, first, carried.moved))


RULES["loop"] = TracedLoop
