"""What a traced function may return: numbers and arrays; anything else is refused with what to return instead."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from yota.errors import TracingError
from yota.tracing.methods import is_traced

if TYPE_CHECKING:
    from yota.tracing.trace import Trace

__all__ = ["outputs"]


def outputs(trace: Trace, result: Any) -> list[int]:
    """The variables of what the traced function returned.

    Raises
    ------
    TracingError
        If it returned something else than a number, an array, or a tuple or list of them.
    """
    items = result if isinstance(result, (tuple, list)) else [result]
    for item in items:
        if not (is_traced(item) or isinstance(item, (bool, int, float, complex, np.ndarray, np.generic))):
            raise _refusal(trace.builder.name, item)
        leak = trace.leaks.get(id(item))
        if leak is not None and leak.guard is not None:
            trace.builder.guards.remove(leak.guard)
            leak.guard = None
    return [_variable(trace, item) for item in items]


def _variable(trace: Trace, item: Any) -> int:
    leak = trace.leaks.get(id(item))
    if leak is None:
        return trace.lift(item)
    # A Python number, as the function returned it, and not the NumPy scalar that it was made of.
    number = trace.wrap(leak.variable, trace.values[leak.variable]).item()
    return int(number._variable)


def _refusal(name: str, item: Any) -> TracingError:
    if inspect.iscoroutine(item):
        item.close()  # or Python would warn that nobody awaited it
        return TracingError(f"{name} is an async function; pass a plain one, and await what it needs before")
    if inspect.isgenerator(item) or inspect.isasyncgen(item):
        return TracingError(f"{name} returned a generator, which computes nothing yet; return a number or an array")
    what = "nothing (None)" if item is None else f"a {type(item).__name__}"
    return TracingError(
        f"{name} returned {what}; a function to be traced returns a number, an array, or a tuple of them."
    )
