"""Python's `min` and `max` of traced numbers: a `where` selects, in the place of a decision by the values."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from types import GeneratorType
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.tracing.current import current
from yota.tracing.methods import is_tracer
from yota.tracing.patching import Patch
from yota.tracing.trace import Trace


def extreme(function: Callable[..., Any], beats: Callable[[Any, Any], Any], *args: Any, **keywords: Any) -> Any:
    """``function(*args)``: the first of the values that no other one beats."""
    trace = current()
    if trace is None or keywords or not args:
        return function(*args, **keywords)
    if len(args) == 1 and type(args[0]) is GeneratorType:
        args = ([*args[0]],)
    values = args if len(args) > 1 else args[0]
    if type(values) not in (list, tuple) or not any(map(is_tracer, values)) or not _are_alike(values):
        return function(*args)
    best, *others = values
    for each in others:
        wins = beats(each, best)
        if is_tracer(wins) and trace.varies(wins):
            best = selected(trace, wins, each, best)
        elif wins:
            best = each
    return best


def selected(trace: Trace, test: Any, one: Any, other: Any) -> Any:
    """``one if test else other``, of two numbers or arrays of one type."""
    left, right = (trace.builder.types[trace.lift(each)] for each in (one, other))
    kind, is_weak = np.result_type(left.dtype, right.dtype).type, left.weak and right.weak

    def number(holds: Any, x: Any, y: Any) -> Any:
        found = kind(x if holds else y)
        return found.item() if is_weak else found

    return trace.apply(primitive("where"), (test, one, other), python=None if left.shape else number)


def _are_alike(values: Sequence[Any]) -> bool:
    """Whether all values are real numbers of one class, of which Python's may raise errors that NumPy's do not."""
    kinds = {type(each._value()) if is_tracer(each) else type(each) for each in values}
    return len(kinds) == 1 and issubclass(kinds.pop(), (float, np.floating))


def _patch(function: Callable[..., Any], beats: Callable[[Any, Any], Any]) -> Patch:
    def form(*args: Any, **keywords: Any) -> Any:
        return extreme(function, beats, *args, **keywords)

    return Patch(vars(builtins), function.__name__, function, form)


EXTREMES = tuple((_patch(function, beats), beats) for function, beats in ((min, operator.lt), (max, operator.gt)))
"""Where both functions stand, and by what one value beats another."""
