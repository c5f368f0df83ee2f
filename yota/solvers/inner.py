"""Functions that a solver calls: recorded once for each branch that it meets, and compiled."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from yota.errors import DifferentiationError, StaleTapeError, TracingError
from yota.ir.callables import name_of
from yota.ir.inputs import Input, Leaf
from yota.ir.serialised import Carried, Unwritable
from yota.ir.tape import Tape
from yota.run.machine.signals import StaleTape
from yota.run.specialise import Target, loaded, parts_of, simplified, source_of
from yota.tracing.current import current, entered, is_tracing
from yota.tracing.record import record
from yota.tracing.replay import evaluate
from yota.tracing.trace import Trace

MOST = 64
"""Branches of one function."""


class Missing(Exception):
    """A solver met a branch of its function that was not recorded."""


class Branch(Carried):
    """One way through a function.

    tape: takes what the solver gives, and what the function reads of the trace around it.
    places: which of the values that are read are the further inputs.
    sources: generated code for each result; generated when it is first asked for.
    """

    def __init__(
        self, tape: Tape, kinds: tuple[Any, ...], places: tuple[int, ...], sources: Sequence[Any] = ()
    ) -> None:
        self.tape, self.kinds, self.places = tape, kinds, places
        self._sources = sources
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *given: Any) -> Any:
        """The result.

        Raises StaleTape, StaleTapeError if the function takes another branch.
        """
        return self.code()(*given)

    def code(self) -> Callable[..., Any]:
        """What computes the result: compiled, unless a trace runs, whose functions compiled code would call."""
        if self._compiled is None:
            if is_tracing():
                return self._played
            codes = list(map(loaded, self.sources))
            self._compiled = codes[0] if len(codes) == 1 else lambda *given: tuple([code(*given) for code in codes])
        return self._compiled

    @property
    def sources(self) -> Sequence[Any]:
        """See the class."""
        if not self._sources:
            # Only the first result of compiled code has NumPy's bits.
            self._sources = [_source(replace(self.tape, outputs=(each,))) for each in self.tape.outputs]
        return self._sources

    def state(self) -> dict[str, Any]:
        """See `Carried.state`."""
        kinds = [
            np.dtype(each) if isinstance(each, type) and issubclass(each, np.generic) else each for each in self.kinds
        ]
        return {"tape": self.tape, "kinds": kinds, "places": self.places, "sources": list(map(parts_of, self.sources))}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Branch:
        """See `Carried.restored`."""
        kinds = tuple(each.type if isinstance(each, np.dtype) else each for each in state["kinds"])
        return cls(state["tape"], kinds, state["places"], [SimpleNamespace(**each) for each in state["sources"]])

    def _played(self, *given: Any) -> Any:
        inputs = (entry.variable for entry in self.tape.inputs)
        found = evaluate(self.tape, dict(zip(inputs, given, strict=True)))
        return found[0] if len(found) == 1 else tuple(found)


def _source(tape: Tape) -> Any:
    target = Target.wanted("numpy", strict=True)
    return source_of(simplified(tape, target), target, 1)


class Inner(Carried):
    """Functions that one call of a solver calls, and what they read of the trace around it.

    read: traced values that the functions read; no more than their number in another process.
    """

    def __init__(self, trace: Trace | None) -> None:
        self.trace = trace
        self.read: list[Any] = []
        self.functions: list[Function] = []
        self.slopes: list[Slopes] = []

    def state(self) -> dict[str, Any]:
        """See `Carried.state`."""
        return {"read": len(self.read), "functions": self.functions, "slopes": self.slopes}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Inner:
        """See `Carried.restored`."""
        made = cls(None)
        made.read, made.functions, made.slopes = [None] * state["read"], state["functions"], state["slopes"]
        for each in made.functions:
            each.inner = made
        return made

    def place(self, value: Any) -> int:
        """The position of a traced value among those that are read."""
        for number, known in enumerate(self.read):
            if known._variable == value._variable:
                return number
        self.read.append(value)
        return len(self.read) - 1

    def values(self) -> list[Any]:
        """What is read, as it is while the trace runs."""
        return [each._value() for each in self.read]


class Function(Carried):
    """One function that a solver calls; it takes numbers and arrays, and gives one array or several.

    function: the user's function, which may give traced values; None in another process.
    several: whether it gives a tuple of arrays, and not one that may be written as a tuple.
    """

    inner: Inner
    _matrix = ""
    """The class of scipy.sparse that it gives; it is recorded as an array."""

    def __init__(self, inner: Inner, function: Callable[..., Any], *, several: bool = False) -> None:
        self.inner, self.function, self._several = inner, function, several
        self.branches: list[Branch] = []
        self._name = name_of(function)
        self._signature: inspect.Signature | None = None
        with contextlib.suppress(TypeError, ValueError):
            self._signature = inspect.signature(function)
        inner.functions.append(self)

    def state(self) -> dict[str, Any]:
        """See `Carried.state`."""
        parameters = None if self._signature is None else self._signature.parameters.values()
        named = parameters and [(each.name, int(each.kind)) for each in parameters]
        return {"branches": self.branches, "_name": self._name, "_signature": named, "_matrix": self._matrix}

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Any:
        """See `Carried.restored`."""
        known, named = inspect._ParameterKind, state["_signature"]
        if named is not None:
            named = inspect.Signature([inspect.Parameter(name, known(kind)) for name, kind in named])
        return super().restored({**state, "_signature": named, "function": None})

    def at(self, values: Sequence[Any] | None = None) -> Callable[..., Any]:
        """The function, where what it reads has these values; those of the trace that runs, for None."""

        def call(*given: Any) -> Any:
            result = self.found(given, self.inner.values() if values is None else values)[1]
            return getattr(importlib.import_module("scipy.sparse"), self._matrix)(result) if self._matrix else result

        # `curve_fit` counts the parameters.
        call.__name__, call.__signature__ = self._name, self._signature  # type: ignore[attr-defined]
        if values is None or len(self.branches) != 1 or self._matrix:
            return call
        (branch,) = self.branches
        known, code, kinds = [values[place] for place in branch.places], branch.code(), branch.kinds

        def fast(*given: Any) -> Any:
            try:
                return code(*given, *known) if tuple(map(_kind, given)) == kinds else call(*given)
            except (StaleTape, StaleTapeError):
                raise Missing from None

        fast.__name__, fast.__signature__ = call.__name__, self._signature  # type: ignore[attr-defined]
        return fast

    def number(self, given: Sequence[Any], values: Sequence[Any]) -> int:
        """The number of the branch; see `found`."""
        is_straight = len(self.branches) == 1 and not self.branches[0].tape.guards
        if is_straight and tuple(map(_kind, _as_scalars(given))) == self.branches[0].kinds:
            return 0
        return self.found(given, values)[0]

    def found(self, given: Sequence[Any], values: Sequence[Any]) -> tuple[int, Any]:
        """The number of the branch, and the result.

        Raises Missing if the branch was not recorded, and no trace runs.
        """
        given = _as_scalars(given)
        kinds = tuple(map(_kind, given))
        for number, branch in enumerate(self.branches):
            if branch.kinds == kinds:
                try:
                    return number, branch(*given, *[values[place] for place in branch.places])
                except (StaleTape, StaleTapeError):
                    continue
        if self.inner.trace is None:
            raise Missing
        if len(self.branches) == MOST:
            raise TracingError(
                f"{self._name} decides by traced values in {MOST} ways and more while a solver calls it; "
                "write the choice with np.where"
            )
        self.branches.append(self._recorded(self.inner.trace, given, kinds))
        return self.found(given, self.inner.values())

    def _recorded(self, trace: Trace, given: Sequence[Any], kinds: tuple[Any, ...]) -> Branch:
        def flat(*values: Any) -> Any:
            found = self.function(*values)
            if hasattr(found, "toarray"):
                self._matrix, found = type(found).__name__, found.toarray()
            inner = current()
            assert inner is not None
            return tuple(map(inner.traced, found)) if self._several else inner.traced(found)

        flat.__name__ = self._name
        leaves = [Leaf(each, number, f"y{number or ''}") for number, each in enumerate(given)]
        with entered(trace):
            found = record(flat, leaves, tuple, registry=trace.registry, reads=trace.reads)
        inputs = tuple(Input(each.variable, number, each.name) for number, each in enumerate(found.tape.inputs))
        tape = replace(found.tape, inputs=inputs, statics=())
        places = tuple(self.inner.place(found.outer[each.variable]) for each in inputs[len(given) :])
        return Branch(tape, kinds, places)


class Slopes(Carried):
    """The derivative by an argument of a function that a solver calls, generated for each of its branches."""

    def __init__(self, function: Function, derived: Callable[[Tape], Tape]) -> None:
        self._function, self._derived = function, derived
        self._branches: dict[int, Branch] = {}
        function.inner.slopes.append(self)

    def at(self, values: Sequence[Any] | None = None) -> Callable[..., Any]:
        """See `Function.at`."""

        def call(*given: Any) -> Any:
            known = self._function.inner.values() if values is None else values
            number, _ = self._function.found(given, known)
            branch = self._branch(number)
            return branch(*given, *[known[place] for place in branch.places])

        return call

    def _branch(self, number: int) -> Branch:
        if number not in self._branches:
            branch = self._function.branches[number]
            self._branches[number] = Branch(self._derived(branch.tape), branch.kinds, branch.places)
        return self._branches[number]

    def state(self) -> dict[str, Any]:
        """See `Carried.state`: those of all branches that were recorded."""
        try:
            branches = [self._branch(number) for number in range(len(self._function.branches))]
        except DifferentiationError as reason:
            raise Unwritable(str(reason)) from None
        return {"_function": self._function, "_branches": dict(enumerate(branches))}


def _as_scalars(given: Sequence[Any]) -> list[Any]:
    """Arguments as code takes them: arrays without axes as scalars."""
    return [each if type(each) in (float, complex) else np.asarray(each)[()] for each in given]


def _kind(value: Any) -> Any:
    kind = type(value)
    return (value.dtype, value.shape) if kind is np.ndarray else kind
