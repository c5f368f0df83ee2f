"""States at any time, and times of events, of a call that integrated differential equations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from yota.ir.tape import Tape
from yota.solvers.implicit import Solution
from yota.solvers.inner import Function, Inner
from yota.solvers.integration_steps import Steps
from yota.solvers.roots import Root
from yota.solvers.solver_calls import Call, Callback, Unavailable
from yota.tracing.current import current
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


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
        inner = copy.copy(parent._inner)
        inner.trace = trace
        host = type(parent)(f"sol of {parent.name}", inner, parent._run)
        host.parent, host.single, host.method = parent, single, parent.method
        host.place, host.numbers = (), {(): 0}
        host.operands = {**parent.operands, "t_eval": len(inner.read) + len(parent.others)}
        _, (found, *_) = host.recorded([*parent.others, times, *known])
        return found


class Crossing(Root):
    """Times of events: each is a zero of a function of its own."""

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
        root = Crossing(f"an event of {call.name}", inner, lambda functions, t: Solution([t], [], t))
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
