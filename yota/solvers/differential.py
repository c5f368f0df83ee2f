"""Calls of scipy.integrate's solvers of initial value problems, states at any time, and times of events."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from yota.ir.tape import Tape
from yota.solvers.collocation import MERGED, ImplicitSteps, Odeint
from yota.solvers.explicit import ExplicitSteps
from yota.solvers.implicit import Host, Solution
from yota.solvers.inner import Function, Inner
from yota.solvers.integration_steps import Steps
from yota.solvers.roots import Root
from yota.solvers.solver_calls import Call, Callback, Unavailable, recorded
from yota.tracing.current import current
from yota.tracing.implementations import calls_back
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

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
    host = kind(call)
    host.method, host.others, host.events = method, call.others, events_of(call)
    host.every = MERGED if issubclass(method, module.BDF) else 1
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
    host = Odeint(call, (0,) if call.arguments["full_output"] else ())
    host.method = module.LSODA
    host.give_slopes(trace.registry)
    found, host.numbers = recorded(call, host, host.place)
    host.operands = {"y0": call.operand("y0"), "t_eval": call.operand("t")}
    return found


def _turned(function: Any) -> Any:
    """A function of a state and a time as one of a time and a state."""
    return function and functools.wraps(function)(lambda t, y, *rest: function(y, t, *rest))


class DenseOutput(Unavailable):
    """The solution as a function of time, in the place of SciPy's."""

    def __init__(self, trace: Trace, host: Steps) -> None:
        super().__init__(trace, f"sol of {host.name}")
        self.__dict__["_host"] = host

    def __call__(self, t: Any) -> Any:
        """The state at a time, or in columns those at several."""
        trace = current()
        if trace is None:
            raise self._refuse()
        times = trace.traced(t)
        found = self.at(np.reshape(times, (1,)) if np.ndim(times) == 0 else times, single=np.ndim(times) == 0)
        return found[:, 0] if np.ndim(times) == 0 else found

    def at(self, times: Any, *known: Any, single: bool = False) -> Any:
        """The states at several times, whose values may be ``known``."""
        trace, parent = current(), self._host
        assert trace is not None
        inner, call = copy.copy(parent._inner), copy.copy(parent.call)
        inner.trace, call.inner, call.name = trace, inner, f"sol of {parent.name}"
        host = type(parent)(call, ())
        host.parent, host.single, host.method, host.numbers = parent, single, parent.method, {(): 0}
        host.operands = {**parent.operands, "t_eval": len(inner.read) + len(parent.others)}
        _, (found, *_) = host.recorded([*parent.others, times, *known])
        return found


class Crossing(Root):
    """Times of events: each is a zero of a function of its own."""

    def __init__(self, name: str, inner: Inner) -> None:
        Host.__init__(self, name, inner)

    def run(self, functions: Any, *others: Any) -> Solution:
        """See `Host.run`."""
        return Solution(others, [], None)

    def is_elementwise(self, equation: Tape) -> bool:
        """See `Root.is_elementwise`."""
        return True


def events_of(call: Call) -> dict[int, dict[str, Any]]:
    """Attributes of the functions whose zeros SciPy looks for, by the number of the function."""
    events = call.arguments["events"]
    several = events if isinstance(events, list) else [events]
    return {
        each.number: {name: getattr(function, name) for name in ("terminal", "direction") if hasattr(function, name)}
        for each in several
        if isinstance(each, Callback)
        for function in [call.inner.functions[each.number].function]
    }


def with_events(trace: Trace, call: Call, host: Steps, found: Any) -> Any:
    """The result of a call, with derivatives of the times of events, and of states there."""
    sol, end, moved_end = DenseOutput(trace, host), found.t[-1:], False
    if call.arguments["dense_output"]:
        found.sol = sol
    for place, (number, attributes) in enumerate(host.events.items()):
        times, states = found.t_events[place], found.y_events[place]
        if not len(times):
            continue
        inner = Inner(trace)
        Function(inner, _equation(call.inner.functions[number].function, sol, len(times)))
        root = Crossing(f"an event of {call.name}", inner)
        _, (moved,) = root.recorded([times])
        reached = sol.at(moved, np.transpose(states))
        found.t_events[place], found.y_events[place] = moved, np.transpose(reached)
        ends = found.status == 1 and attributes.get("terminal") and times[-1]._value() == end._value()[0]
        if ends and not moved_end and call.arguments["t_eval"] is None:
            moved_end = True
            found.t = np.concatenate([found.t[:-1], moved[-1:]])
            found.y = np.concatenate([found.y[:, :-1], reached[:, -1:]], axis=1)
    return found


def _equation(event: Callable[..., Any], sol: DenseOutput, count: int) -> Callable[[Any], Any]:
    def equation(times: Any) -> Any:
        states = sol(times)
        return np.stack([np.reshape(event(times[k], states[:, k]), ()) for k in range(count)])

    return equation
