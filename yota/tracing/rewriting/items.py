"""What loops run over, where each value can be had by its number: ranges, arrays, and several of them side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.tracing.methods import is_tracer
from yota.tracing.rewriting.call_rules import called
from yota.tracing.rewriting.operator_rules import item
from yota.tracing.rewriting.rewritten import rule


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
