"""Roots, minima and brackets by scipy.optimize.elementwise: a search of its own for each element."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from yota.ir.callables import name_of
from yota.solvers.minima import recorded_minimum
from yota.solvers.roots import recorded_root
from yota.solvers.solver_calls import Call, Calling, recorded
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace
from yota.transform.reverse.tape_parts import Reversal


class ElementwiseCall(Call):
    """A call of a search, which gives its function the elements that are still searched for; see `Call`.

    function: of all elements; it takes no arguments beside them.
    shape: of all elements.
    """

    def __init__(
        self, trace: Trace, function: Callable[..., Any], original: Any, bound: inspect.BoundArguments
    ) -> None:
        given = bound.arguments
        more = given.pop("args", ())
        more = more if isinstance(more, (tuple, list)) else (more,)
        starts = [given[name] for name in _STARTS if given.get(name) is not None]
        self.shape = np.broadcast_shapes(*map(np.shape, (*starts, *more)))

        def of_all(x: Any) -> Any:
            return function(x, *(np.broadcast_to(each, self.shape) for each in more))

        of_all.__name__ = name_of(function)
        self.function = of_all
        given["func"] = of_all
        super().__init__(trace, original, bound.args, bound.kwargs, ["func"])
        self.name = _NAMES[self.original.__name__]

    def state(self) -> dict[str, Any]:
        """See `Carried.state`."""
        return {**super().state(), "shape": self.shape, "name": self.name}

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any, **instead: Any) -> Any:
        """See `Call.run`."""
        elements = np.arange(math.prod(self.shape))
        (function,), points = functions, np.zeros(elements.size)

        def of_some(x: Any, elements: Any) -> Any:
            """What the function of all elements gives for some; those left of their starts come before the others."""
            nonlocal points
            found, elements = [], np.ravel(elements)
            ends = np.flatnonzero(np.diff(elements) <= 0) + 1
            for values, places in zip(np.split(np.ravel(x), ends), np.split(elements, ends), strict=True):
                points = points.astype(values.dtype)
                points[places] = values
                result = np.asarray(function(points.reshape(self.shape)[()]))
                if result.shape != self.shape:
                    return result
                found.append(np.ravel(result)[places])
            return np.concatenate(found).reshape(np.shape(x))

        return super().run([of_some], *others, args=(elements.reshape(self.shape),), **instead)


class Bracket(Calling):
    """A search for the ends of a bracket: its steps are constants, and so are the ends; see `Host`."""

    def adjoints(self, at: Reversal) -> list[tuple[int, int]]:
        """See `Host.adjoints`."""
        return []


_STARTS = ("a", "b", "x1", "x2", "x3", "xm0", "xl0", "xr0", "xmin", "xmax", "factor")
"""Parameters with a value for each element."""
_NAMES = {
    "_chandrupatla": "scipy.optimize.elementwise.find_root",
    "_chandrupatla_minimize": "scipy.optimize.elementwise.find_minimum",
    "_bracket_root": "scipy.optimize.elementwise.bracket_root",
    "_bracket_minimum": "scipy.optimize.elementwise.bracket_minimum",
}
"""The public names of SciPy's searches."""


@calls_back("scipy.optimize._chandrupatla", "_chandrupatla", "_chandrupatla_minimize", named=True)
def _search(name: str, trace: Trace, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    original = inspect.unwrap(sys.modules["scipy.optimize._chandrupatla"].__dict__[name])
    call = ElementwiseCall(trace, function, original, _bound(original, function, args, keywords))
    if name == "_chandrupatla":
        return recorded_root(call, ("x",), elementwise=True)
    return recorded_minimum(call, ("x",), elementwise=True)


@calls_back("scipy.optimize._bracket", "_bracket_root", "_bracket_minimum", named=True)
def _bracket(name: str, trace: Trace, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    original = inspect.unwrap(sys.modules["scipy.optimize._bracket"].__dict__[name])
    bound = _bound(original, function, args, keywords)
    if any(map(trace.varies, map(bound.arguments.get, _STARTS))):
        # The ends move with the start; the steps are recorded.
        return original(*bound.args, **bound.kwargs)
    call = ElementwiseCall(trace, function, original, bound)
    found = recorded(call, Bracket(call, ("xl",)), ("xl",))[0]
    for end in ("l", "m", "r"):
        if f"x{end}" in found:
            found[f"f{end}"] = call.function(found[f"x{end}"])
    return found


def _bound(original: Any, function: Callable[..., Any], args: Any, keywords: Any) -> inspect.BoundArguments:
    return inspect.signature(original).bind(function, *args, **keywords)
