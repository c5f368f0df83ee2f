"""Roots by elements by scipy.optimize, recorded as Newton steps from the roots at hand."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.dispatch import concrete
from yota.tracing.functions.scipy.callbacks import concrete_function
from yota.tracing.implementations import calls_back
from yota.tracing.methods import is_tracer
from yota.tracing.state import paused
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_STEPS = 4
"""Newton steps whose derivative is not recorded."""
_DIGITS = 40
"""Binary digits that are kept of the root before the steps whose derivative is recorded."""
_CLOSE = 1e-9


@calls_back("scipy.optimize._chandrupatla", "_chandrupatla")
def _chandrupatla(trace: Trace, func: Callable[..., Any], a: Any, b: Any, *, args: Any = (), **options: Any) -> Any:
    """By elements: what SciPy's search ends with is a root of which it may have been told by no argument."""
    args = args if isinstance(args, (tuple, list)) else (args,)
    search = inspect.unwrap(sys.modules["scipy.optimize._chandrupatla"]._chandrupatla)
    ends = [np.asarray(concrete(trace, each)) for each in (a, b)]
    with paused():
        found = search(concrete_function(trace, func), *ends, args=tuple(concrete(trace, list(args))), **options)
    root = np.asarray(found.x)
    if not np.all(found.success):
        return found
    lines = [np.ravel(np.broadcast_to(each, root.shape)) for each in (*ends, *args)]
    given = [each if is_tracer(each) else np.asarray(each) for each in lines[2:]]

    def function(x: Any) -> Any:
        return func(x, *given)

    width = np.abs(lines[1] - lines[0])
    result = np.reshape(_root(trace, function, concrete_function(trace, function), np.ravel(root), width), root.shape)
    found.x = result if root.ndim else result[()]
    return found


def _root(trace: Trace, function: Callable[[Any], Any], plain: Callable[[Any], Any], root: Any, width: Any) -> Any:
    """The root as a function of what the function depends on; for arrays, one for each element.

    Steps from the root at hand lead to the one of other values; they are cut to a fixed number of digits, which takes
    their derivative away. Two more steps with a fixed slope give it back: the first and the second one of the implicit
    function.
    """
    size = np.maximum(np.abs(root), 1e-3 * np.minimum(width, 1.0))
    step = size * _step(plain, root, size)
    grid = 2.0 ** (_DIGITS - np.frexp(size)[1])
    x: Any = root
    for _ in range(_STEPS):
        x = np.rint((x - function(x) / _slope(function, x, step)) * grid) / grid
    slope = _slope(function, x, step)
    for _ in range(2):
        x = x - function(x) / slope
    if not bool(np.all(np.abs(function(x)) <= _CLOSE * size * np.abs(slope))):
        raise trace.refuse(
            "the root that scipy.optimize finds is no simple one, and has no derivative.",
            "Give the function that finds it a rule.",
        )
    return x


def _slope(function: Callable[[Any], Any], x: Any, step: Any) -> Any:
    return (function(x + step) - function(x - step)) / (2 * step)


def _step(plain: Callable[[Any], Any], root: Any, size: Any) -> float:
    """Part of the size by which a difference gives the slope: the longest with which half of it agrees."""
    for power in (12, 15, 18, 21, 24):
        step = 2.0**-power
        slopes = [np.asarray(_slope(plain, root, part * step * size)) for part in (1.0, 0.5)]
        if np.all(np.abs(slopes[0] - slopes[1]) <= 1e-5 * np.abs(slopes[1])):
            return step
    return 2.0**-18
