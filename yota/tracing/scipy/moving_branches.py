"""Branches of an integrand that move with the arguments: of a sum over nodes, the derivative loses what they add."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from yota.ir.tape import Guard, Op
from yota.tracing.forms import Trace, np


def _odd(function: Callable[..., Any], *operands: Any) -> Any:
    return 2 * function(*operands) + 1


_SIDES: dict[str, Callable[..., Any]] = {
    "absolute": lambda x: np.sign(np.real(x)),
    **dict.fromkeys(("maximum", "minimum", "fmax", "fmin"), lambda x, y: np.sign(np.subtract(x, y))),
    **dict.fromkeys(("sign", "heaviside"), lambda x, *_: np.sign(x)),
    **{name: functools.partial(_odd, getattr(np, name)) for name in ("floor", "ceil", "rint", "trunc", "floor_divide")},
}
"""What differs on the sides of a kink or jump, by the names of functions; 0 is on neither side."""
_ENDS = 2.9
"""Nodes whose new variable is larger lie at an end of the range."""


Sides = dict[Any, set[Any]]


def lie_between(*sides: Sides) -> bool:
    """Whether a branch of an integrand lies between its nodes, or between those of two integrals that meet."""
    return any(len(set().union(*(each.get(key, ()) for each in sides))) > 1 for key in sides[0])


class Branches:
    """The branches that a trace records from here on."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.begin = _position(trace)
        self.calls: list[int] = []
        """The number of guards before each call of a function."""
        self.ranges: list[tuple[tuple[int, int], tuple[int, int], bool]] = []
        """Where integrals within this one begin and end, which do not count, and their integrands, which do."""

    def vary(self) -> bool:
        """Whether ``calls`` of one function go different ways."""
        guards = self._trace.builder.guards
        ways = {
            tuple([(guard.location, guard.expected) for guard in guards[begin:end] if _is_in_source(guard)])
            for begin, end in itertools.pairwise([*self.calls, len(guards)])
        }
        return len(ways - {()}) > 1

    def sides(self, nodes: Any) -> Sides:
        """The sides of each branch of an integrand on which its ``nodes`` lie, if its place depends on an input."""
        inner = np.abs(nodes) < _ENDS
        found = {key: set(ways) for key, ways in self._taken(inner).items()}
        for number, side in enumerate(map(self._side, self._counted(0))):
            if side is not None and len(side) == len(nodes):
                found[number] = set(np.unique(side[inner][side[inner] != 0]).tolist())
        return found

    def _taken(self, inner: Any) -> dict[Any, list[Any]]:
        """The ways of each branch in the source, at the ``inner`` nodes if it is come to once for each."""
        taken: dict[Any, list[Any]] = defaultdict(list)
        for guard in self._counted(1):
            if _is_in_source(guard):
                taken[guard.location, guard.kind].append(guard.expected)
        for key, ways in taken.items():
            if len(ways) == len(inner):
                taken[key] = [way for way, counts in zip(ways, inner, strict=True) if counts]
        return taken

    def _counted(self, kind: int) -> list[Any]:
        """The ops, or the guards, that the integrand has recorded."""
        builder, begin = self._trace.builder, self.begin[kind]
        recorded = (builder.ops, builder.guards)[kind][begin:]
        counts = np.ones(len(recorded), bool)
        for first, last, own in sorted(self.ranges, key=lambda each: (each[0][kind], -each[1][kind], each[2])):
            counts[first[kind] - begin : last[kind] - begin] = own
        return [each for each, counted in zip(recorded, counts, strict=True) if counted]

    def _side(self, op: Op) -> Any:
        """On which side of a kink or jump of an op each element is; None for ops without one, and for numbers."""
        if self._trace.is_constant(op.result):
            return None
        values, side = self._trace.values, _SIDES.get(op.name)
        if side is not None:
            found = side(*(values[operand] for operand in op.operands))
        elif np.asarray(values[op.result]).dtype == bool:
            found = values[op.result] + 1
        else:
            return None
        return found if np.ndim(found) else None


_integrands: contextvars.ContextVar[tuple[Branches, ...]] = contextvars.ContextVar("_integrands", default=())
"""Of the integrands that run now, the innermost last."""


@contextlib.contextmanager
def integral(trace: Trace) -> Iterator[None]:
    """What is recorded here are no branches of the integrands around it."""
    begin = _position(trace)
    try:
        yield
    finally:
        _note(begin, _position(trace), own=False)


@contextlib.contextmanager
def integrand(trace: Trace) -> Iterator[Branches]:
    """The branches that are recorded here, also as those of the integrands around it."""
    found = Branches(trace)
    token = _integrands.set((*_integrands.get(), found))
    try:
        yield found
    finally:
        _integrands.reset(token)
    _note(found.begin, _position(trace), own=True)


def _note(begin: tuple[int, int], end: tuple[int, int], *, own: bool) -> None:
    for each in _integrands.get():
        each.ranges.append((begin, end, own))


def _is_in_source(guard: Guard) -> bool:
    return guard.kind in ("bool", "int") and guard.location is not None


def _position(trace: Trace) -> tuple[int, int]:
    return len(trace.builder.ops), len(trace.builder.guards)
