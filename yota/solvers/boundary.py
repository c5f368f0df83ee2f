"""Boundary value problems by scipy.integrate.solve_bvp: SciPy's own steps are recorded, unless they fail."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from yota.errors import DifferentiationError
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Inner
from yota.tracing.implementations import calls_back
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
