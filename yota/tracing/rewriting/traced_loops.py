"""A loop whose end depends on traced values as one loop of the tape, for every number of trips."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from yota.errors import TracingError
from yota.tracing.conversions import FirstRun
from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.patching import ABSENT
from yota.tracing.rewriting.operator_rules import iterate
from yota.tracing.rewriting.rewritten import RULES
from yota.tracing.trace import Trace

_TRIED = 2
"""Number of trips before which a loop by values may begin: what is tested may be a constant in the first one."""
_WHOLE = ("absolute", "add", "floor_divide", "multiply", "negative", "positive", "remainder", "subtract")
"""Primitives of whole numbers that do not outgrow 64 bits by a few trips."""
_forms: list[Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]] = []


def follows(form: Callable[[Callable[[Any], Any], Callable[[Any], Any], Any], Any]) -> None:
    """Have ``form(condition, body, carried)`` record a loop."""
    _forms[:] = [form]


class _OneTrip(FirstRun):
    """A trip that stands for all: it may do nothing outside of itself, be it printing."""

    skips_output = False

    def is_over(self, trace: Trace) -> bool:
        return False

    def arrives(self, trace: Trace) -> bool:
        return False

    def block(self, trace: Trace) -> TracingError:
        return TracingError("a trip does something besides computing")


class TracedLoop:
    """A loop of the user's, which may be recorded as one for every number of trips.

    test: whether another trip follows; of a ``for`` and of ``while True``, whether this is the last.
    body: gives the variables after a trip from those before, and the step of a ``for``.
    needed: the variables that must have a value before the first trip.
    """

    __slots__ = ("_body", "_is_over", "_leaves", "_names", "_needed", "_number", "_range", "_test", "_tried")

    def __init__(
        self,
        test: Callable[[Any, Any], Any],
        body: Callable[[Any, Any], Any],
        names: Sequence[str],
        needed: Collection[str],
        number: str,
        leaves: bool,
    ) -> None:
        self._test, self._body, self._names, self._needed = test, body, names, needed
        self._number, self._leaves = number, leaves
        self._range: range | None = None
        self._tried, self._is_over = 0, False

    def over(self, values: Any) -> Iterator[Any]:
        """The values that a ``for`` runs over, until it is stopped."""
        self._range = values if type(values) is range and len(values) > 1 else None
        for value in iterate(values):
            yield value
            if self._is_over:
                return

    def stop(self) -> None:
        """End the ``for`` after this trip."""
        self._is_over = True

    def recorded(self) -> list[Any] | None:
        """The variables after the last trip, up to its test, if the rest was recorded as a loop; None if it was not."""
        self._tried += 1
        trace = current()
        if self._tried > _TRIED or trace is None or not trace.rolls or not _forms:
            return None
        if trace.sizes is not None or trace.first_run is not None or (self._number and self._range is None):
            return None
        variables = sys._getframe(1).f_locals
        given = [variables.get(name, ABSENT) for name in self._names]
        if not all(
            _is_number(each) or (each is ABSENT and name not in self._needed)
            for name, each in zip(self._names, given, strict=True)
        ):
            return None
        return self._record(trace, given) if self._is_traced(trace, given) else None

    def _is_traced(self, trace: Trace, given: list[Any]) -> bool:
        """Whether the condition depends on inputs, and does nothing but compute."""
        trace.first_run = _OneTrip(trace, ())
        try:
            return trace.varies(self._test(given, self._step))
        except Exception:  # noqa: BLE001  (it comes again)
            return False
        finally:
            trace.first_run = None

    @property
    def _step(self) -> int:
        return 0 if self._range is None else self._range.step

    def _record(self, trace: Trace, given: list[Any]) -> list[Any] | None:
        places = [place for place, value in enumerate(given) if value is not ABSENT]
        refused = trace.refused

        def entered(carried: tuple[Any, ...]) -> list[Any]:
            inner = current()
            if inner is not None and inner is not trace and not isinstance(inner.first_run, _OneTrip):
                inner.first_run = _OneTrip(inner, ())
            every = [ABSENT] * len(given)
            for place, value in zip(places, carried, strict=True):
                every[place] = value
            return every

        def condition(carried: tuple[Any, ...]) -> Any:
            every = entered(carried)
            found = self._test(every, self._step)
            if not self._leaves:
                return found
            stays = np.logical_not(found)
            if self._range is None:
                return stays
            return np.logical_and(stays, every[self._names.index(self._number)] != self._range[-1])

        def body(carried: tuple[Any, ...]) -> tuple[Any, ...]:
            every = entered(carried)
            variables = [each._variable for each in carried]
            after = self._body(every, self._step)
            if any(each._variable != variable for each, variable in zip(carried, variables, strict=True)):
                # Under another name the array would have to change too.
                raise TracingError("a trip writes into an array that it was given")
            found = [after[place] for place in places]
            _refuse_growth(carried, found)
            return tuple(found)

        try:
            after = _forms[0](condition, body, tuple(given[place] for place in places))
        except Exception:  # noqa: BLE001
            # Step by step it may be recorded all the same, or end with an error of its own.
            trace.refused = refused
            return None
        for place, value in zip(places, after, strict=True):
            given[place] = value
        return given


RULES["loop"] = TracedLoop


def _is_number(value: Any) -> bool:
    return is_tracer(value) or type(value) in (int, float) or isinstance(value, (np.floating, np.ndarray))


def _refuse_growth(carried: tuple[Any, ...], after: list[Any]) -> None:
    """Refuse trips in which a number of Python's, of any size there, may outgrow 64 bits."""
    trace = current()
    assert trace is not None
    types, builder = trace.builder.types, trace.builder
    for op in builder.ops:
        type, exponent = types[op.result], op.operands[-1]
        if op.name == "power" and type.shape and types[exponent].weak and not trace.is_constant(exponent):
            raise TracingError("NumPy rounds the square of an array otherwise than another power")
        if type.weak and type.dtype.kind == "i":
            moved = [each for each in op.operands if not trace.is_constant(each)]
            if op.name not in _WHOLE or (op.name == "multiply" and len(moved) > 1):
                raise TracingError("a whole number may outgrow 64 bits")
    for one, other in zip(carried, after, strict=True):
        first, last = one._variable, trace.lift(other)
        if types[first].weak and types[first].dtype.kind == "i":
            while (op := builder.definition(last)) and op.name in ("add", "subtract"):
                if not trace.is_constant(op.operands[1]):
                    break
                last = op.operands[0]
            if first != last and not trace.is_constant(last):
                raise TracingError("a whole number may outgrow 64 bits")
