"""Sums, and arrays, of an expression for each number of a range, recorded by one of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.rewriting.call_rules import call
from yota.tracing.rewriting.carried_values import CarriedValues
from yota.tracing.rewriting.effects import made
from yota.tracing.rewriting.rewritten import rule
from yota.tracing.rewriting.traced_loops import FORMS, MANY
from yota.tracing.trace import Trace

_ARRAY: tuple[Any, ...] = (inspect.unwrap(np.array), inspect.unwrap(np.asarray))


@rule("of_all")
def of_all(
    function: Any,
    values: Any,
    term: FunctionType,
    terms: Callable[[Any], Iterator[Any]],
    is_list: bool,
    *lines: int,
) -> Any:
    """``function(term(each) for each in values)``, or of a list of these; ``terms`` makes the generator."""
    trace = current()
    if type(values) is range and len(values) > MANY and trace is not None and trace.rolls and trace.sizes is None:
        if function is sum:
            return _sum(trace, values, term, terms, lines)
        if any(getattr(function, "__wrapped__", function) is each for each in _ARRAY):
            found = _map(trace, values, term, lines)
            if found is not None:
                return call(function, (found,), {})
    every = terms(values)
    return call(function, (made([*every]) if is_list else every,), {})


def _sum(
    trace: Trace,
    values: range,
    term: FunctionType,
    terms: Callable[[Any], Iterator[Any]],
    lines: Sequence[int],
) -> Any:
    total = 0 + next(terms(values))
    left = values[1:]
    if trace.varies(total):
        carried = CarriedValues([total], whole=False)

        def body(trip: Any, given: Any) -> Any:
            (before,) = carried.entered(trace, given)
            return carried.after(given, (before + term(trip * left.step + left.start),))

        found = carried.recorded(trace, lambda first: FORMS["counted"](len(left), body, first))
        trace.loop_ends(None, term.__code__.co_filename, lines, found is not None)
        if found is not None:
            return found[0]
    for each in terms(left):
        total = total + each
    return total


def _map(trace: Trace, values: range, term: FunctionType, lines: Sequence[int]) -> Any:
    carried = CarriedValues([], whole=False)

    def body(trip: Any) -> Any:
        carried.entered(trace, ())
        found = term(trip * values.step + values.start)
        carried.after((), ())
        return found

    found = carried.attempted(trace, lambda first: FORMS["mapped"](len(values), body))
    found = found if is_tracer(found) else None
    trace.loop_ends(None, term.__code__.co_filename, lines, found is not None)
    return found
