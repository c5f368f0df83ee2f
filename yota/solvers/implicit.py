"""What a solver finds as an op of the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import ArgumentError, DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.infer import sample
from yota.ir.serialised import Carried
from yota.ir.tape import Tape
from yota.ir.types import TensorType, type_of
from yota.rules.registry import Registry, registry
from yota.solvers.inner import Inner, Missing
from yota.tracing.current import current, paused
from yota.transform.reverse.tape_parts import Reversal, emitted


@dataclass(frozen=True, eq=False)
class Solution:
    """What one run of a solver gave.

    ended: how it ended, as whole numbers that code may decide by.
    """

    arrays: Sequence[Any]
    ended: Sequence[int]
    whole: Any


class Host(Carried):
    """A call of a solver, at each run of the tape.

    types, given: of the results and of the operands.
    chosen: which branch holds at the solution.
    """

    chosen = 0
    _numbers: tuple[type, ...] | None = None
    """The types of the results, if all are Python's numbers."""
    registry: Registry | None = None

    def __init__(self, name: str, inner: Inner) -> None:
        self.name = self.__name__ = name
        self._inner = inner
        if inner.trace is not None:
            self.registry = inner.trace.registry
        self.types: tuple[TensorType, ...] = ()
        self.given: tuple[TensorType, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any) -> Solution:
        """Call the solver, with the functions, their slopes and the values of further operands."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """See `Carried.state`; another process has the same rules."""
        return {name: each for name, each in vars(self).items() if name != "registry"}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        return super().restored({**state, "registry": registry()})

    def __reduce__(self) -> Any:
        """Refuse to be pickled, as part of a tape or of what was compiled.

        Raises
        ------
        ArgumentError
            In any case.
        """
        raise ArgumentError(
            f"{self.name} is on this tape, with functions of this process; pickle the derivative, such as "
            "yota.value_and_grad(f), which another process traces anew, or freeze it"
        )

    def on(self, target: Any) -> Host:
        """The call as it is in code for a target."""
        return self

    def solve(self, values: Sequence[Any] | None, others: Sequence[Any]) -> Solution:
        """Call the solver, where what its functions read has these values."""
        with paused():
            inner = self._inner
            called = [each.at(values) for each in inner.functions] + [each.at(values) for each in inner.slopes]
            return self.run(called, *others)

    def branch(self, solution: Solution, values: Sequence[Any]) -> int:
        """Which branch of the first function holds at the solution."""
        return 0

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The arrays, how it ended, and which branch holds at the solution: -1 for one that was not recorded."""
        count = len(self._inner.read)
        values, others = operands[:count], operands[count:]
        try:
            found = self.solve(values, others)
            results = (*found.arrays, *found.ended, self.branch(found, values))
        except Missing:
            results = ()
        if tuple(map(type, results)) == self._numbers:
            return results
        # SciPy's first guess of a matrix holds whole numbers, what a search makes of it does not.
        if [np.shape(each) for each in results] != [type.shape for type in self.types] or not all(
            np.can_cast(np.asarray(each).dtype, type.dtype, "same_kind")
            for each, type in zip(results, self.types, strict=True)
        ):
            return *(np.zeros(each.shape, each.dtype) for each in self.types[:-1]), -1
        return tuple(_cast(each, type) for each, type in zip(results, self.types, strict=True))

    def recorded(self, others: Sequence[Any]) -> tuple[Solution, list[Any]]:
        """Call the solver, and record that; what it gave, and the arrays as traced values."""
        trace = self._inner.trace
        assert trace is not None
        variables = [trace.lift(each) for each in others]
        found = self.solve(None, [trace.values[each] for each in variables])
        last = [*map(int, found.ended), self.branch(found, self._inner.values())]
        self.chosen = last[-1]
        results = (*(np.array(each) if np.ndim(each) else each for each in found.arrays), *last)
        self.types = tuple(map(type_of, results))
        self._numbers = tuple(map(type, results)) if all(type(each) in (float, int) for each in results) else None
        operands = (*map(trace.lift, self._inner.read), *variables)
        self.given = tuple(trace.builder.types[each] for each in operands)
        traced = trace.record(primitive("solved"), operands, {"host": self}, results)
        for each, value in zip(traced[len(found.arrays) :], last, strict=True):
            trace.decide(trace.lift(each), "solver", value)
        self._inner.trace = None
        return found, list(traced[: len(found.arrays)])

    def adjoints(self, at: Reversal) -> list[tuple[int, int]]:
        """Operands of the op with their adjoints, appended to its builder."""
        raise DifferentiationError(f"{self.name} has no derivative")


def played(tape: Tape, given: Sequence[Any]) -> list[Any]:
    """The outputs of ``tape`` for traced values of `taped`."""
    trace = current()
    assert trace is not None
    found = emitted(trace.builder, tape, [trace.lift(each) for each in given])
    return [trace.wrap(each, sample(found.types[each])) for each in found.outputs]


def _cast(value: Any, type: TensorType) -> Any:
    if type.weak:
        return type.dtype.type(value).item()
    return np.array(value, type.dtype) if type.shape else type.dtype.type(value)
