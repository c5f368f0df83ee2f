"""Integrals; SciPy computes those that no sum over nodes resolves, without a derivative."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from yota.errors import DifferentiationError
from yota.solvers.solver_calls import Call, Calling, Path, Unavailable, recorded
from yota.tracing.implementations import calls_back
from yota.tracing.scipy import quadrature, tanh_sinh
from yota.tracing.scipy.sampled import number_of
from yota.tracing.trace import Trace
from yota.transform.reverse.tape_parts import Reversal


class Unresolved(Calling):
    """An integral for which no nodes are enough; see `Host`."""

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        cure = quadrature.UNRESOLVED
        raise DifferentiationError(f"{at.called(self.name)} does not converge, and has no derivative. {cure}")


def _integral(module: str, integrand: str, record: Callable[..., Any], place: Path) -> None:
    """Have calls recorded by ``record``, and by SciPy, whose result is at ``place``, if they do not converge."""

    def call(trace: Trace, *args: Any, **keywords: Any) -> Any:
        try:
            return record(trace, *args, **keywords)
        except quadrature.Divergent:
            if quadrature.is_nested():
                raise  # the outermost one is SciPy's
            original = getattr(sys.modules[module], record.__name__)
            made = Call(trace, original, args, keywords, [integrand])
            found = recorded(made, Unresolved(made, place), place)[0]
            # SciPy's `nquad` keeps the errors of all integrals within it.
            return (found[0], number_of(found[1]), *found[2:]) if place == (0,) else found

    calls_back(module, record.__name__)(call)


def quad(
    trace: Trace, func: Any, a: Any, b: Any, args: Any = (), full_output: int = 0, *rest: Any, **others: Any
) -> Any:
    """See `quadrature.quad`; the evaluations that SciPy tells of are its own, and not recorded."""
    found = quadrature.quad(trace, func, a, b, args, *rest, **others)
    return (*found, Unavailable(trace, "infodict of scipy.integrate.quad")) if full_output else found


_integral("scipy.integrate", "func", quad, (0,))
_integral("scipy.integrate._tanhsinh", "f", tanh_sinh.tanhsinh, ("integral",))
