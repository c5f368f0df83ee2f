"""Differential equations that a solver integrates step by step: what the derivative takes from a run of the solver."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import item_of
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.solvers.carried_arguments import written
from yota.solvers.implicit import Solution, played
from yota.solvers.solver_calls import Call, Calling, Path, solution_at
from yota.transform.reverse.finite_slopes import checked
from yota.transform.reverse.tape_parts import Reversal, emitted, match, taped

_FEWEST = 64
"""Steps for which there is room at least; beyond it, for twice as many as were taken."""


class Track:
    """Where steps ended, and what lies between: filled while a method of SciPy's runs.

    between: what gives the state within each step, where it is kept.
    times: at which the result is; ``wanted``, if the user chose them.
    finished: whether the steps led to the last time.
    failure: what the solver says of steps that came to no end.
    sol: what gives the state at any time, where it is kept.
    """

    def __init__(self, every: int = 1) -> None:
        self.knots: list[float] = []
        self.every = every
        self.between: list[Any] = []
        self.times: Any = ()
        self.wanted = self.finished = True
        self.failure = ""
        self.sol: Any = None

    @property
    def ends(self) -> list[float]:
        """Where steps of the scheme end: each is as long as ``every`` of SciPy's, if the user chose the times."""
        if self.every == 1 or not self.wanted:
            return self.knots
        return [*self.knots[: -1 : self.every], self.knots[-1]]

    def recording(self, method: Any, *, dense: bool) -> Any:
        """The method, which fills this track."""
        track = self

        class Recording(method):  # type: ignore[misc]
            def __init__(self, fun: Any, t0: float, *args: Any, **keywords: Any) -> None:
                super().__init__(fun, t0, *args, **keywords)
                track.knots.append(float(t0))

            def step(self) -> Any:
                message = super().step()
                if self.status != "failed":
                    track.knots.append(float(self.t))
                    if dense:
                        track.between.append(self.dense_output())
                return message

        return Recording


@dataclass(frozen=True, eq=False)
class Stepped(Solution):
    """What one run gave, and how."""

    track: Track


class Steps(Calling):
    """A call of a solver of differential equations; see `Host`.

    scheme: what puts the steps on a tape.
    dense: whether the states within steps are kept.
    method: SciPy's class of the method.
    operands: which operand ``y0``, ``t_span`` and ``t_eval`` are, where they are traced; else their values.
    numbers: which result is what; the states at ``place``, for each time one row if ``rows``.
    failure: see `Track`, of the run that was recorded.
    every: how many of the solver's steps are one of the scheme's.
    others: the values beside those that functions read.
    events: attributes of functions whose zeros SciPy looks for.
    keeps: whether the last run is kept, for states at other times.
    parent: the call whose states at other times these are; at a ``single`` one.
    """

    scheme: ClassVar[type[Scheme]]
    dense: ClassVar[bool]
    rows = False
    method: Any
    failure = ""
    room = 0
    every = 1
    keeps = single = False
    parent: Steps | None = None
    others: Sequence[Any] = ()
    _latest: tuple[list[Any], Track] | None = None
    operands: dict[str, Any]
    numbers: dict[Path, int]

    def __init__(self, call: Call, place: Path = ("y",)) -> None:
        super().__init__(call, place)
        self.events: dict[int, dict[str, Any]] = {}

    def state(self) -> dict[str, Any]:
        """See `Carried.state`; of the values beside those that functions read, the number counts."""
        known = {"_latest": None, "others": [None] * len(self.others)}
        for name in ("method", "operands"):
            known[name] = written(getattr(self, name), f"{name} of {self.name}")
        return {**super().state(), **known}

    def solve(self, values: Sequence[Any] | None, others: Sequence[Any]) -> Stepped:
        """See `Host.solve`."""
        known = self._inner.values() if values is None else values
        if self.parent is not None:
            return self._evaluated(self.parent, known, others)
        found: Any = super().solve(values, others)
        if self.keeps:
            self._latest = [np.array(each) for each in (*known, *others)], found.track
        return cast(Stepped, found)

    def _evaluated(self, parent: Steps, values: Sequence[Any], others: Sequence[Any]) -> Stepped:
        """The states of another call at times, or what they are known to be."""
        count = len(parent.others)
        given, (times, *known) = others[:count], others[count:]
        latest, track = parent._latest, None
        if latest is not None and all(map(np.array_equal, latest[0], (*values, *given))):
            track = latest[1]
        track = copy.copy(track or parent.solve(values, given).track)
        track.times, track.wanted = np.asarray(times, float), True
        low, high = sorted(track.knots[:: len(track.knots) - 1])
        if self.dense and not np.all((track.times >= low) & (track.times <= high)):
            raise DifferentiationError(
                f"{self.name} is wanted at a time outside of the steps, and has no derivative there"
            )
        if not known:
            known = [track.sol(times[0])[:, None] if self.single else track.sol(times)]
        return self.solution(track, known[0])

    def run(self, functions: Sequence[Callable[..., Any]], *others: Any) -> Stepped:
        """Call SciPy, and keep where the steps ended."""
        functions = [at_numbers(each) for each in functions]
        for number, attributes in self.events.items():
            functions[number].__dict__.update(attributes)
        return self.solution(*self.integrated(functions, others))

    def solution(self, track: Track, whole: Any) -> Stepped:
        """What a call gave, and what the scheme needs of it."""
        found = solution_at(self.place, whole)
        if self._inner.trace is not None:
            self.failure = track.failure
        knots = track.ends
        count = len(knots) - 1
        self.room = self.room or max(_FEWEST, 2 * count)
        arrays, ended = found.arrays, found.ended or [int(track.finished)]
        if count > self.room:
            arrays = []
        elif not track.failure:
            ends = np.array(knots + [knots[-1]] * (self.room - count))
            last = (np.arange(self.room + 1) >= count) & track.finished
            arrays = [*arrays, ends, last, *self.kept(track)]
        return Stepped(arrays, ended, whole, track)

    def integrated(self, functions: Sequence[Callable[..., Any]], others: Sequence[Any]) -> Any:
        """Call SciPy; where the steps ended, and what it gives."""
        track, call = Track(self.every), self.call
        instead = {"method": track.recording(self.method, dense=self.dense), **self.more(functions)}
        if self.keeps:
            instead["dense_output"] = True
        whole = call.run(functions, *others, **instead)
        track.times, track.wanted = np.asarray(whole.t), call.arguments["t_eval"] is not None
        track.finished, track.failure = whole.status == 0, whole.message if whole.status < 0 else ""
        track.sol, whole.sol = whole.sol, whole.sol if call.arguments["dense_output"] else None
        return track, whole

    def more(self, functions: Sequence[Callable[..., Any]]) -> dict[str, Any]:
        """Further keywords for SciPy's function."""
        return {}

    def kept(self, track: Track) -> list[Any]:
        """What the scheme needs of a run beside where steps ended."""
        raise NotImplementedError

    def adjoints(self, at: Reversal) -> Any:
        """See `Host.adjoints`."""
        builder, op, adjoints, name = at.builder, at.op, at.adjoints, at.called(self.name)
        paths = {number: path for path, number in self.numbers.items()}
        # The lengths of steps are constants.
        own = {number: each for number, each in adjoints.items() if number not in paths}
        # Events that there are none of have times and states without elements.
        wanted = [number for number in adjoints.keys() - own.keys() if self.types[number].size]
        for number in wanted:
            if paths[number] not in (self.place, ("t",)):
                raise DifferentiationError(f"{name}: result {paths[number][-1]} has no derivative; use y and t")
        if self.failure:
            raise DifferentiationError(f"{name} failed, and its result has no derivative: {self.failure}")
        if len(self._inner.functions[0].branches) != 1:
            raise DifferentiationError(
                f"{name}: the right-hand side decides by traced values, and takes several branches on the way; "
                "write the choice with np.where"
            )
        scheme = self.scheme(self, builder, op)
        first = len(builder.ops)
        places, times = scheme.run()
        if not self.rows:
            (places,) = scheme.inlined(np.transpose, [places])
        tape = Tape(self.name, (), builder.constants, tuple(builder.ops[first:]), (), builder.types)
        seeds: dict[int, int] = {}
        for number in wanted:
            variable = places if paths[number] == self.place else times
            seeds[variable] = match(builder, adjoints[number], builder.types[variable])
        wrt = sorted({each for each in op.operands if each in at.active})
        found = scheme.reversed(tape, at.registry, seeds, own, wrt, at.reverse)
        return checked(name, at, [(each, match(builder, one, builder.types[each])) for each, one in found])


def at_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A right-hand side as SciPy calls it, for its one branch."""
    # The first time is a number of Python's, and all others are NumPy's.
    return lambda t, *rest: function(np.float64(t), *rest)


class Scheme:
    """The steps of a solver on a tape."""

    def __init__(self, host: Any, builder: TapeBuilder, op: Op) -> None:
        self.host, self.builder, self.op = host, builder, op
        (self.branch,) = host._inner.functions[0].branches
        self.read = [op.operands[place] for place in self.branch.places]
        types: Any = builder.types[op.result]
        self.count, self.size = types.parts[0].shape[:: 1 if host.rows else -1]
        self.type = TensorType(types.parts[0].dtype, (self.size,))
        self.first = max(host.numbers.values()) + 1
        self.room: int = host.room

    def run(self) -> tuple[int, int]:
        """The states that the result holds, for each time one row; and the times."""
        raise NotImplementedError

    def reversed(
        self, tape: Tape, registry: Any, seeds: dict[int, int], own: dict[int, int], wrt: list[int], reverse: Any
    ) -> list[tuple[int, int]]:
        """Variables with their adjoints; ``tape`` holds the ops of `run`, ``own`` the adjoints of what was kept."""
        found = zip(wrt, reverse(tape, self.builder, seeds, wrt, registry), strict=True)
        return [(each, one) for each, one in found if one is not None]

    def kept(self, number: int) -> int:
        """The ends of steps (0), which of them are the last time (1), and what else the host keeps."""
        return item_of(self.builder, self.op.result, self.first + number)

    def inlined(self, function: Callable[..., Any], given: Sequence[int]) -> list[int]:
        """What a function of traced values gives for these variables, appended to the tape."""
        tape = taped(function, [self.builder.types[each] for each in given], self.host.registry)
        return list(emitted(self.builder, tape, given).outputs)

    def operand(self, name: str) -> int:
        """An argument of the call as a variable."""
        value = self.host.operands[name]
        if isinstance(value, int):
            return self.op.operands[value]
        array = np.array(value)
        array.flags.writeable = False
        return self.builder.constant(array)

    def start(self) -> int:
        """The first state."""
        type = self.type
        return self.inlined(lambda y: np.reshape(y, type.shape).astype(type.dtype), [self.operand("y0")])[0]

    def times(self) -> int:
        """The times at which the state is wanted, up to the one at which an event ended the steps."""
        count = self.count
        return self.inlined(lambda times: times[:count].astype(float), [self.operand("t_eval")])[0]

    def ends(self) -> int:
        """Where steps begin and end: their lengths are constants, but for the last, which ends at the last time."""
        knots, last = self.kept(0), self.kept(1)
        span, end = ("t_span", 1) if "t_span" in self.host.operands else ("t_eval", self.count - 1)
        if not isinstance(self.host.operands[span], int):
            return knots
        moved = lambda knots, last, times: np.where(last, times[end], times[0] + (knots - knots[0]))  # noqa: E731
        return self.inlined(moved, [knots, last, self.operand(span)])[0]

    def rate(self, read: Sequence[Any]) -> Callable[..., Any]:
        """The right-hand side, of traced values."""
        return rate_of(self.branch.tape, self.type, read)


def rate_of(tape: Tape, type: TensorType, read: Sequence[Any]) -> Callable[..., Any]:
    """A right-hand side that a tape holds, of traced values, with states of a type."""
    shape = tape.types[tape.inputs[1].variable].shape

    def rate(t: Any, y: Any) -> Any:
        (found,) = played(tape, [t, np.reshape(y, shape), *read])
        return np.broadcast_to(np.ravel(found), type.shape).astype(type.dtype)

    return rate
