"""Calls of scipy.integrate's solvers of differential equations."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np

from yota.solvers.calls import Call, recorded
from yota.solvers.collocation import ImplicitSteps
from yota.solvers.explicit import ExplicitSteps
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace

_EXPLICIT = ("RK23", "RK45", "DOP853")
_IMPLICIT = ("Radau", "BDF", "LSODA")


@calls_back("scipy.integrate", "solve_ivp")
def _solve_ivp(trace: Trace, *args: Any, **keywords: Any) -> Any:
    module = sys.modules["scipy.integrate"]
    call = Call(trace, module.solve_ivp, args, keywords, ["fun", "jac"], lifted=["y0", "t_eval"])
    method = call.arguments["method"]
    method = getattr(module, method) if method in (*_EXPLICIT, *_IMPLICIT) else method
    implicit = tuple(getattr(module, each) for each in _IMPLICIT)
    if not (inspect.isclass(method) and issubclass(method, (module._ivp.rk.RungeKutta, *implicit))):
        raise trace.unrecorded(f"{call.name} with method={method!r}", f"Use one of {', '.join(_EXPLICIT + _IMPLICIT)}.")
    if call.arguments["events"] is not None:
        raise trace.unrecorded(f"{call.name} with events", "Leave them out.")
    times = call.arguments["t_eval"]
    if isinstance(times, (list, tuple, np.ndarray)) and not len(times):
        raise trace.unrecorded(f"{call.name} with an empty t_eval", "Leave it out.")
    kind = ImplicitSteps if issubclass(method, implicit) else ExplicitSteps
    host = kind(call.name, call.inner, lambda functions, *others: host.taken(call, functions, others))
    host.method = method
    options = call.arguments["options"]
    given = any(options.get(name) is not None for name in ("jac", "jac_sparsity", "lband", "uband"))
    if isinstance(host, ImplicitSteps) and not given:
        host.give_slopes(trace.registry)
    found, host.numbers = recorded(call, host, ("y",))
    host.operands = {name: call.operand(name) for name in ("y0", "t_span", "t_eval")}
    host.failure = found.message if found.status < 0 else ""
    return found
