"""Boundary value problems by scipy.integrate: the derivative is that of the collocation equations on SciPy's mesh."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from yota.errors import DifferentiationError
from yota.solvers.implicit import Solution
from yota.solvers.roots import Root
from yota.solvers.solver_calls import Call
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.transform.reverse.tape_parts import Reversal

_FEW_NODES = 1
"""How a search ends that has no room for more nodes; its result may be as good as was asked for, or nearly so."""
_ROUGH = 1e-3
"""The largest residual of such a result that has a derivative: the tolerance that is SciPy's default."""


class BoundaryValues(Root):
    """A call of ``solve_bvp``; see `Host`.

    The results are the states at all nodes with the unknown parameters, and the places of nodes in the mesh that the
    call was given.

    failure: why the result has no derivative.
    """

    beside = zero = (1,)
    failure = ""

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any) -> Solution:
        """See `Host.run`."""
        found = self.call.run(functions, *others)
        is_right = found.success or (found.status == _FEW_NODES and np.max(found.rms_residuals) <= _ROUGH)
        self.failure = self.failure if is_right else found.message
        start = self.call.value("x", functions, others)
        unknowns = np.concatenate([np.ravel(found.y), [] if found.p is None else found.p])
        places = np.interp(found.x, start, np.arange(len(start)))
        return Solution([unknowns, places, found.rms_residuals, found.niter], [found.status, int(is_right)], found)

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        if self.failure:
            raise DifferentiationError(
                f"{at.called(self.name)} failed, and its result has no derivative: {self.failure}"
            )
        return super().adjoints(at)


@calls_back("scipy.integrate", "solve_bvp")
def _solve_bvp(trace: Trace, *args: Any, **keywords: Any) -> Any:
    module = sys.modules["scipy.integrate"]
    problem: _Problem | None = None

    def residuals(unknowns: Any, places: Any) -> Any:
        assert problem is not None
        return problem.residuals(unknowns, places)

    call = Call(trace, module.solve_bvp, args, keywords, ["fun", "bc", "fun_jac", "bc_jac"], before=residuals)
    problem = _Problem(module._bvp, call.given)
    host = BoundaryValues(call)
    host.called = [("y",), ("x",), ("rms_residuals",), ("niter",)]
    solution, (unknowns, places, *measures) = host.recorded(call.others)
    found = solution.whole
    x, y, p = problem.parts(unknowns, places)
    yp = problem.slope(x, y, p)
    spline = module._bvp.create_spline(y, yp, x, np.diff(x))
    found.update(x=x, y=y, yp=yp, sol=spline, rms_residuals=measures[0], niter=measures[1])
    if found.p is not None:
        found.p = p
    return found


class _Problem:
    """The equations of a call, as SciPy writes them."""

    def __init__(self, module: Any, given: dict[str, Any]) -> None:
        self._collocated = module.collocation_fun
        self._mesh, self._rows, singular = given["x"], np.shape(given["y"])[0], given["S"]
        start = None if singular is None else np.linalg.pinv(np.eye(self._rows) - singular)
        count = 0 if given["p"] is None else len(given["p"])
        kind = complex if np.iscomplexobj(given["y"]) else float
        self.slope, self._ends, _, _ = module.wrap_functions(
            given["fun"], given["bc"], None, None, count, self._mesh[0], singular, start, kind
        )

    def parts(self, unknowns: Any, places: Any) -> tuple[Any, Any, Any]:
        """Nodes, the states there, and the unknown parameters."""
        x, size = np.interp(places, np.arange(len(self._mesh)), self._mesh), self._rows * len(places)
        return x, np.reshape(unknowns[:size], (self._rows, len(places))), unknowns[size:]

    def residuals(self, unknowns: Any, places: Any) -> Any:
        """What is zero at the solution."""
        x, y, p = self.parts(unknowns, places)
        inside = self._collocated(self.slope, y, p, x, np.diff(x))[0]
        return np.concatenate([np.ravel(inside), self._ends(y[:, 0], y[:, -1], p)])
