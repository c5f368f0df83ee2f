"""Roots of traced functions of one variable by scipy.optimize, recorded as Newton steps from the root at hand."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from yota.tracing.functions.scipy.callbacks import concrete_function
from yota.tracing.implementations import calls_back
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_STEPS = 4
"""Newton steps whose derivative is not recorded."""
_DIGITS = 40
"""Binary digits that are kept of the root before the steps whose derivative is recorded."""
_CLOSE = 1e-9


def _bracketing(name: str) -> Callable[..., Any]:
    def form(trace: Trace, f: Callable[..., Any], a: Any, b: Any, args: Any = (), **keywords: Any) -> Any:
        if keywords.pop("full_output", False):
            raise trace.refuse(f"scipy.optimize.{name} with full_output is not recorded.", "Leave it out.")
        args = args if isinstance(args, tuple) else (args,)
        plain = concrete_function(trace, lambda x: f(x, *args))
        ends = [float(each._value() if is_tracer(each) else each) for each in (a, b)]
        # As far as digits go, so that the derivative is that of the root and not of where a search ended.
        root = inspect.unwrap(getattr(sys.modules["scipy.optimize._zeros_py"], name))(
            lambda x: float(plain(x)), *ends, xtol=1e-300, rtol=1e-15
        )
        return _root(trace, lambda x: f(x, *args), plain, root, abs(ends[1] - ends[0]))

    return form


for _name in ("brentq", "brenth", "ridder", "bisect"):
    calls_back("scipy.optimize", _name)(_bracketing(_name))


def _root(trace: Trace, function: Callable[[Any], Any], plain: Callable[[Any], Any], root: float, width: float) -> Any:
    """The root as a function of what the function depends on.

    Steps from the root at hand lead to the one of other values; they are cut to a fixed number of digits, which takes
    their derivative away. Two more steps with a fixed slope give it back: the first and the second one of the implicit
    function.
    """
    size = max(abs(root), 1e-3 * min(width, 1.0))
    step = size * _step(plain, root, size)
    grid = 2.0 ** (_DIGITS - math.frexp(size)[1])
    x: Any = root
    for _ in range(_STEPS):
        x = np.rint((x - function(x) / _slope(function, x, step)) * grid) / grid
    slope = _slope(function, x, step)
    for _ in range(2):
        x = x - function(x) / slope
    if not bool(np.abs(function(x)) <= _CLOSE * size * np.abs(slope)):
        raise trace.refuse(
            "the root that scipy.optimize finds is no simple one, and has no derivative.",
            "Give the function that finds it a rule.",
        )
    return x


def _slope(function: Callable[[Any], Any], x: Any, step: float) -> Any:
    return (function(x + step) - function(x - step)) / (2 * step)


def _step(plain: Callable[[Any], Any], root: float, size: float) -> float:
    """Part of the size by which a difference gives the slope: the longest with which half of it agrees."""
    for power in (12, 15, 18, 21, 24):
        step = 2.0**-power
        slopes = [float(_slope(plain, root, part * step * size)) for part in (1.0, 0.5)]
        if abs(slopes[0] - slopes[1]) <= 1e-5 * abs(slopes[1]):
            return step
    return 2.0**-18
