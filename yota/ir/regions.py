"""Loops on a tape: an op that owns the tape of its body."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from yota.errors import TapeError
from yota.ir.extents import Extent, extents_in, with_extents
from yota.ir.primitive import Primitive
from yota.ir.tape import Tape
from yota.ir.types import TensorType, tuple_of


@dataclass(frozen=True, eq=False)
class Region:
    """The body and the trip count of a ``loop``.

    The op's operands are the number of trips if the loop is ``counted``, the initial carried values, the stacked
    inputs, and the invariants. Each trip reads one row of each stacked input. The results are the final carried
    values, and the stacked outputs, to which each trip adds one row.

    body: tape of one trip. It takes the trip number, the carried values, the rows and the invariants. It returns the
        next carried values and the output rows.
    carries, slices: number of carried values, and of stacked inputs.
    trips: the number of trips, or the largest number for a counted or conditional loop; None for no bound.
    condition: tape that takes the body's inputs without rows; the loop ends when it returns False.
    counted: whether the first operand is the number of trips.
    backwards: whether trips read rows from the last to the first.
    seen: number of trips during recording.
    """

    body: Tape
    carries: int
    slices: int
    trips: int | None
    condition: Tape | None = None
    counted: bool = False
    backwards: bool = False
    seen: int = 0

    def __repr__(self) -> str:
        order = " backwards" if self.backwards else ""
        bound = "" if self.trips is None else f"{self.trips} trips"
        if self.condition is not None:
            return f"<while{f', at most {bound}' if bound else ''}{order}>"
        return f"<{'at most ' if self.counted and bound else ''}{bound or 'counted'}{order}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Region, tuple(getattr(self, field.name) for field in fields(self))

    def extents(self) -> Iterator[Extent]:
        """The extents in the number of trips and in the body."""
        yield from extents_in(self.trips)
        for tape in filter(None, (self.body, self.condition)):
            # Most types of a long body are those of numbers, and most ops have no keywords.
            types = {id(each): each for each in tape.types.values() if each.shape}
            yield from extents_in((*types.values(), *(op.static for op in tape.ops if op.static)))

    def with_extents(self, change: Callable[[Extent], int]) -> Region:
        """The region with ``change`` applied to its extents."""
        condition = None if self.condition is None else changed(self.condition, change)
        trips = with_extents(self.trips, change)
        return replace(self, body=changed(self.body, change), condition=condition, trips=trips)

    @property
    def is_fixed(self) -> bool:
        """Whether the number of trips is constant."""
        return self.condition is None and not self.counted

    @property
    def first_invariant(self) -> int:
        """Position of the body's first invariant input."""
        return 1 + self.carries + self.slices

    def types(self) -> list[TensorType]:
        """Types of all results."""
        found = [self.body.types[each] for each in self.body.outputs]
        rows = [TensorType(each.dtype, (self.trips or 0, *each.shape)) for each in found[self.carries :]]
        return [*found[: self.carries], *rows]

    def run(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results, computed by NumPy op by op."""
        return self.run_counted(operands)[0]

    def run_counted(self, operands: Sequence[Any]) -> tuple[tuple[Any, ...], int]:
        """The results, and the number of trips that they took."""
        given = list(operands)
        count = self.trips
        if self.counted:
            wanted = int(given.pop(0))
            count = wanted if count is None else min(wanted, count)
        if _compile and count is not None and self.condition is None and count * len(self.body.ops) > _LONG:
            return self._compiled(*operands), max(count, 0)
        carried = [np.array(each) if isinstance(each, np.ndarray) else each for each in given[: self.carries]]
        slices = given[self.carries : self.carries + self.slices]
        fixed = given[self.carries + self.slices :]
        types = self.types()[self.carries :]
        stacked = [np.zeros(each.shape, each.dtype) for each in types]
        trip = 0
        with np.errstate(all="ignore"):
            while count is None or trip < count:
                at = count - 1 - trip if self.backwards and count is not None else trip
                if self._test is not None and not self._test([at, *carried, *fixed])[0]:
                    break
                found = self._step([at, *carried, *(each[at] for each in slices), *fixed])
                carried = found[: self.carries]
                for rows, row in zip(stacked, found[self.carries :], strict=True):
                    rows[at] = row
                trip += 1
        pairs = zip(carried, self.types(), strict=False)
        carried = [type.dtype.type(each) if _is_plain(each) and not type.weak else each for each, type in pairs]
        return (*carried, *stacked), trip

    @cached_property
    def _compiled(self) -> Callable[..., tuple[Any, ...]]:
        return _compile[0](self)

    @cached_property
    def _step(self) -> Callable[[Sequence[Any]], list[Any]]:
        return _player(self.body)

    @cached_property
    def _test(self) -> Callable[[Sequence[Any]], list[Any]] | None:
        return None if self.condition is None else _player(self.condition)


def changed(tape: Tape, change: Callable[[Extent], int]) -> Tape:
    """The tape with what ``change`` makes of extents."""
    distinct = {id(type): type for type in tape.types.values()}
    known = {each: with_extents(type, change) for each, type in distinct.items()}
    types = {variable: known[id(type)] for variable, type in tape.types.items()}
    ops = tuple(replace(op, static=with_extents(op.static, change)) for op in tape.ops)
    guards = tuple(replace(guard, expected=with_extents(guard.expected, change)) for guard in tape.guards)
    return replace(tape, types=types, ops=ops, guards=guards)


_LONG = 20_000
"""Ops of all trips from which on generated code is faster than playing, with the time that its generation takes."""
_compile: list[Callable[[Region], Callable[..., tuple[Any, ...]]]] = []


def compiles(compile: Callable[[Region], Callable[..., tuple[Any, ...]]]) -> None:
    """Have ``compile`` make the functions that run long loops."""
    _compile[:] = [compile]


_OPERATORS: dict[str, Callable[..., Any]] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
"""Python operators that give the same bits as NumPy functions on numbers, ten times as fast."""


def _is_plain(value: Any) -> bool:
    return type(value) in (bool, int, float, complex)


def _player(tape: Tape) -> Callable[[Sequence[Any]], list[Any]]:
    """A function of the outputs of ``tape``, each in its own memory, from values of its inputs."""
    inputs = [entry.variable for entry in tape.inputs]
    steps = []
    for op in tape.ops:
        type, function = tape.types[op.result], _OPERATORS.get(op.name)
        # Python integers would not overflow.
        if function is None or type.shape or type.dtype.kind != "f":
            steps.append((op.result, op.primitive.function, op.operands, dict(op.static), type.weak))
        else:
            steps.append((op.result, function, op.operands, {}, False))

    def play(given: Sequence[Any]) -> list[Any]:
        values = dict(tape.constants)
        values.update(zip(inputs, given, strict=True))
        for result, function, operands, static, weak in steps:
            found = function(*[values[operand] for operand in operands], **static)
            values[result] = np.asarray(found).item() if weak else found
        outputs = [values[each] for each in tape.outputs]
        return [np.array(each) if isinstance(each, np.ndarray) else each for each in outputs]

    return play


def loop(*operands: Any, region: Region) -> tuple[Any, ...]:
    """The results of a loop."""
    return region.run(operands)


def _typed(operands: tuple[TensorType, ...], static: tuple[tuple[str, Any], ...]) -> TensorType:
    """The type of a loop's results."""
    region: Region = dict(static)["region"]
    body, given = region.body, list(operands[region.counted :])
    wanted = [body.types[entry.variable] for entry in body.inputs[1:]]
    rows = range(region.carries, region.carries + region.slices)
    if len(given) != len(wanted):
        raise TapeError(f"loop has {len(given)} operands, and its body takes {len(wanted)}")
    for number, (found, each) in enumerate(zip(given, wanted, strict=True)):
        shape = found.shape[1:] if number in rows else found.shape
        is_short = number in rows and (not found.ndim or region.trips is None or found.shape[0] != region.trips)
        is_other = found.weak != each.weak and number not in rows
        if is_short or is_other or (found.dtype, shape) != (each.dtype, each.shape):
            raise TapeError(f"loop: operand {number} has type {found}, and its body takes {each}")
    for before, after in zip(wanted, [body.types[each] for each in body.outputs[: region.carries]], strict=False):
        if before != after:
            raise TapeError(f"loop: a trip makes {after} of a carried {before}")
    if region.trips is None and len(body.outputs) > region.carries:
        raise TapeError("loop: rows of a loop without a bound have no place")
    return tuple_of(region.types())


LOOP = Primitive("loop", None, False, loop, None, "tensor", _typed)
