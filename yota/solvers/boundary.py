"""Boundary value problems by scipy.integrate.solve_bvp: SciPy's own steps are recorded, unless they fail."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from yota.errors import DifferentiationError
from yota.ir.callables import original
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Inner
from yota.tracing.implementations import calls_back, records
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_FEW_NODES = 1
"""How a search ends that has no room for more nodes; its result may be as good as was asked for, or nearly so."""
_ROUGH = 1e-3
"""The largest residual of such a result that has a derivative: the tolerance that is SciPy's default."""


class Failure(Host):
    """What a solver gave that failed: it has no derivative."""

    message = ""

    def adjoints(self, *args: Any) -> Any:
        """See `Host.adjoints`."""
        raise DifferentiationError(f"{self.name} failed, and its result has no derivative: {self.message}")


@records("scipy.integrate._bvp", "modify_mesh")
def _modify_mesh(trace: Trace, x: Any, insert_1: Any, insert_2: Any) -> Any:
    """The mesh with more nodes: a decision where they are put in, since their places are no function of numbers."""
    places = []
    for each in (insert_1, insert_2):
        places.append(np.array(each._value()) if is_tracer(each) else each)
        if is_tracer(each) and places[-1].size:
            bool(np.all(each == places[-1]))
    return original(sys.modules["scipy.integrate._bvp"].modify_mesh)(x, *places)


@calls_back("scipy.integrate", "solve_bvp")
def _solve_bvp(trace: Trace, fun: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    found = inspect.unwrap(sys.modules["scipy.integrate"].solve_bvp)(fun, *args, **keywords)
    if found.success or (found.status == _FEW_NODES and bool(np.max(found.rms_residuals) <= _ROUGH)):
        return found
    host = Failure("scipy.integrate.solve_bvp", Inner(trace), lambda _, *values: Solution(values, [], None))
    host.message = found.message
    names = [name for name in ("y", "p", "yp", "x") if found[name] is not None]
    _, held = host.recorded([*(found[name] for name in names), found.sol.c])
    found.update(zip(names, held, strict=False))
    found.sol.c = held[-1]
    return found
