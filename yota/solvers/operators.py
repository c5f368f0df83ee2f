"""Iterations of scipy.sparse.linalg whose matrix is an operator, which a function of traced values may be."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.linear_solvers import Iterative, unconverged
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Function, Inner
from yota.tracing.current import paused
from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.scipy.systems import iteration, iterative, system
from yota.tracing.trace import Trace
from yota.transform.reverse import krylov
from yota.transform.reverse.backward import reverse
from yota.transform.reverse.tape_parts import Reversal

_NAMES = ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "tfqmr", "gcrotmk")


@records("scipy.sparse.linalg", *_NAMES, always=True, named=True)
def _iteration(
    name: str, trace: Trace, A: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any
) -> tuple[Any, int]:
    library = sys.modules["scipy.sparse.linalg"]
    # What `aslinearoperator` makes of a matrix holds it.
    A = getattr(A, "A", A) if isinstance(A, library.LinearOperator) else A
    known = isinstance(A, library.LinearOperator)
    # Only its products tell whether an operator has traced values.
    part = A.matvec(np.ones(A.shape[1], A.dtype)) if known else A.data if hasattr(A, "format") else A
    if not is_traced([part, b, x0, M, getattr(M, "data", None), *options.values()]):
        with paused():
            found: tuple[Any, int] = getattr(library, name)(A, b, x0, M=M, **options)
        return found
    if known:
        solver = iterative(name, trace, M, options)
        return _of_products(f"scipy.sparse.linalg.{name}", trace, A, b, solver, starts=x0 is not None)
    b = trace.traced(b)
    data, right, places, form = iteration(trace, A, b)
    solver = iterative(name, trace, M, options, form)
    try:
        return np.reshape(system(trace, solver, data, right, places, False), b.shape), 0
    except DifferentiationError:
        if x0 is not None:
            raise  # what it ends with depends on where it starts
        host = Unconverged(f"scipy.sparse.linalg.{name}", Inner(trace))
        host.solver, host.places = solver, places
        solution, (found,) = host.recorded([data, right])
        return np.reshape(found, b.shape), int(solution.ended[0])


class Unconverged(Host):
    """An iteration on a matrix that ended before it converged; see `Host`."""

    solver: Iterative
    places: tuple[Any, Any]

    def run(self, functions: Any, *others: Any) -> Solution:
        """See `Host.run`."""
        data, b = map(np.asarray, others)
        found, info = self.solver.attempt(self.solver.matrix(data, len(b), *self.places, False), b, False)
        return Solution([found], [info], None)

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        raise unconverged(at.called(self.name))


def _of_products(name: str, trace: Trace, A: Any, b: Any, solver: Iterative, *, starts: bool) -> tuple[Any, int]:
    b = trace.traced(b)
    kind = np.result_type(A.dtype, b.dtype, np.float32)
    if kind.kind == "c":
        raise trace.unrecorded(f"{name} of a complex operator", "Pass a matrix.")
    inner = Inner(trace)
    function = Function(inner, A.matvec)
    function.found([np.ones(A.shape[1], kind)], inner.values())
    (branch,) = function.branches
    if branch.tape.guards:
        raise trace.unrecorded(f"{name} of an operator that decides by numbers", "Write the choice with np.where.")
    host = krylov.Krylov(name, branch.tape, krylov.transposed(branch.tape, trace.registry, reverse, name), solver)
    right = np.ravel(b).astype(kind, copy=False)
    variables = tuple(map(trace.lift, (right, *(inner.read[place] for place in branch.places))))
    values = [trace.values[each] for each in variables]
    try:
        results = (*host(*values), 0)
    except DifferentiationError:
        if starts:
            raise
        host = krylov.Unconverged(name, host.product, host.transposed, solver)
        results = host(*values)
    found, *ended = trace.record(primitive("solved"), variables, {"host": host}, results[: len(host.types)])
    for each in ended:
        trace.decide(trace.lift(each), "solver", results[1])
    return np.reshape(found, b.shape), results[1]
