"""Calls of scipy.integrate's solvers of differential equations."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np

from yota.solvers.collocation import MERGED, ImplicitSteps, Odeint
from yota.solvers.events import events_of, with_events
from yota.solvers.explicit import ExplicitSteps
from yota.solvers.solver_calls import Call, recorded
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace

_EXPLICIT = ("RK23", "RK45", "DOP853")
_IMPLICIT = ("Radau", "BDF", "LSODA")


@calls_back("scipy.integrate", "solve_ivp")
def _solve_ivp(trace: Trace, *args: Any, **keywords: Any) -> Any:
    module = sys.modules["scipy.integrate"]
    call = Call(trace, module.solve_ivp, args, keywords, ["fun", "jac", "events"], lifted=["y0", "t_eval"])
    method = call.arguments["method"]
    method = getattr(module, method) if method in (*_EXPLICIT, *_IMPLICIT) else method
    implicit = tuple(getattr(module, each) for each in _IMPLICIT)
    if not (inspect.isclass(method) and issubclass(method, (module._ivp.rk.RungeKutta, *implicit))):
        raise trace.unrecorded(f"{call.name} with method={method!r}", f"Use one of {', '.join(_EXPLICIT + _IMPLICIT)}.")
    times = call.arguments["t_eval"]
    if isinstance(times, (list, tuple, np.ndarray)) and not len(times):
        raise trace.unrecorded(f"{call.name} with an empty t_eval", "Leave it out.")
    kind = ImplicitSteps if issubclass(method, implicit) else ExplicitSteps
    host = kind(call.name, call.inner, lambda functions, *others: host.taken(call, functions, others))
    host.method, host.others, host.events = method, call.others, events_of(call)
    host.every = MERGED if issubclass(method, module.BDF) else 1
    if isinstance(host, ExplicitSteps):
        host.call = call
    host.keeps = bool(host.events or call.arguments["dense_output"])
    options = call.arguments["options"]
    given = any(options.get(name) is not None for name in ("jac", "jac_sparsity", "lband", "uband"))
    if isinstance(host, ImplicitSteps) and not given:
        host.give_slopes(trace.registry)
    found, host.numbers = recorded(call, host, ("y",))
    host.operands = {name: call.operand(name) for name in ("y0", "t_span", "t_eval")}
    return with_events(trace, call, host, found) if host.keeps else found


@calls_back("scipy.integrate", "odeint")
def _odeint(trace: Trace, func: Any, *args: Any, **keywords: Any) -> Any:
    module = sys.modules["scipy.integrate"]
    given = inspect.signature(module.odeint).bind(func, *args, **keywords)
    given.apply_defaults()
    if given.arguments["tcrit"] is not None:
        raise trace.unrecorded("scipy.integrate.odeint with tcrit", "Integrate from one critical time to the next.")
    if not given.arguments["tfirst"]:
        given.arguments.update({name: _turned(given.arguments[name]) for name in ("func", "Dfun")}, tfirst=True)
    call = Call(trace, module.odeint, given.args, given.kwargs, ["func", "Dfun"], lifted=["y0", "t"])
    host = Odeint(call.name, call.inner, lambda functions, *others: host.taken(call, functions, others))
    host.method, host.place = module.LSODA, (0,) if call.arguments["full_output"] else ()
    host.give_slopes(trace.registry)
    found, host.numbers = recorded(call, host, host.place)
    host.operands = {"y0": call.operand("y0"), "t_eval": call.operand("t")}
    return found


def _turned(function: Any) -> Any:
    """A function of a state and a time as one of a time and a state."""
    return function and functools.wraps(function)(lambda t, y, *rest: function(y, t, *rest))
