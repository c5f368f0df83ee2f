"""Matches tapes of one function at several sizes op by op, and writes what differs as expressions of the sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.errors import ArgumentError
from yota.ir.extents import Extent, with_extents
from yota.ir.location import Location
from yota.ir.plain_text import visible
from yota.ir.regions import Region, changed
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import Record
from yota.optimize.rewrite import Rewriting
from yota.transform.sizes.evaluation import evaluated
from yota.transform.sizes.size_arrays import array_text
from yota.transform.sizes.size_branches import place_of
from yota.transform.sizes.size_expressions import Samples, closeness

_OP = 100
"""Elements that count as much as an op which is recorded."""


class OtherSteps(ArgumentError):
    """Other ops are recorded when sizes change."""


class UnknownForm(ArgumentError):
    """A constant changes with the sizes in a way that no expression of them is known for."""


@dataclass(frozen=True, slots=True)
class General:
    """A tape for all sizes.

    tape: the tape of the first sample, in whose types, keywords and guards numbers that depend on sizes are `Extent`.
    constants: text of each constant that depends on sizes.
    cases: the tape at each sample.
    """

    tape: Tape
    constants: Mapping[int, str]
    cases: Sequence[Tape]


def at_size(tape: Tape, size: Mapping[str, int]) -> Tape:
    """A tape for all sizes at one of them."""
    known: dict[tuple[int, ...], int] = {}

    def value(extent: Extent) -> int:
        if extent.values not in known:
            known[extent.values] = evaluated(extent.text, size)
        return known[extent.values]

    return changed(tape, value)


def is_case(tape: Tape, varying: Sequence[Any], found: Tape) -> bool:
    """Whether ``found`` is ``tape`` with the values ``varying`` of its last inputs: ops, types, keywords, numbers."""
    inputs = [entry.variable for entry in tape.inputs]
    known = dict(zip(inputs, (entry.variable for entry in found.inputs), strict=False))
    constants = {**tape.constants, **dict(zip(inputs[len(found.inputs) :], varying, strict=True))}
    if len(tape.ops) != len(found.ops):
        return False
    for op, other in zip(tape.ops, found.ops, strict=True):
        known[op.result] = other.result
        if op.primitive is not other.primitive or not _is_case(op.static, other.static, {}):
            return False
        for operand, own in zip(op.operands, other.operands, strict=True):
            if known.get(operand) != own and not (
                operand in constants and own in found.constants and _close(constants[operand], found.constants[own])
            ):
                return False
        if tape.types[op.result] != found.types[other.result]:
            return False
    return [known.get(each) for each in tape.outputs] == list(found.outputs)


def generalised(tapes: Sequence[Tape], samples: Samples) -> General:
    """The tape that all of ``tapes``, each at its sample, are cases of."""
    first = tapes[0]
    for tape in tapes[1:]:
        check_same_ops(first, tape, samples)
    renamed = [dict(zip(_variables(tape), _variables(first), strict=True)) for tape in tapes]
    ops = []
    for position, op in enumerate(first.ops):
        others = [tape.ops[position] for tape in tapes]
        for other, names in zip(others, renamed, strict=True):
            if tuple(names[operand] for operand in other.operands) != op.operands:
                raise _different(op.location, samples, "other values are combined")
        static = tuple(
            (name, _general([other.keyword(name) for other in others], samples, op.location)) for name, _ in op.static
        )
        ops.append(replace(op, static=static))
    orders = [_variables(tape) for tape in tapes]
    made = {op.result: op.location for op in first.ops}
    types = {
        variable: _general(
            [tape.types[order[place]] for tape, order in zip(tapes, orders, strict=True)], samples, made.get(variable)
        )
        for place, variable in enumerate(orders[0])
    }
    constants = {}
    uses = {operand: op.location for op in reversed(first.ops) for operand in op.operands}
    for place, variable in enumerate(first.constants):
        text = _constant([list(tape.constants.values())[place] for tape in tapes], samples, uses.get(variable))
        if text is not None:
            constants[variable] = text
    guards = tuple(
        replace(guard, expected=_general([tape.guards[place].expected for tape in tapes], samples, guard.location))
        for place, guard in enumerate(first.guards)
    )
    return General(replace(first, ops=tuple(ops), types=types, guards=guards), constants, tapes)


def _variables(tape: Tape) -> list[int]:
    """All variables in an order that depends on the structure of the tape alone."""
    return [*(entry.variable for entry in tape.inputs), *tape.constants, *(op.result for op in tape.ops)]


def check_same_ops(first: Tape, other: Tape, samples: Samples) -> None:
    """Raise OtherSteps unless both tapes have the same ops."""
    for one, two in zip(first.ops, other.ops, strict=False):
        if one.primitive is not two.primitive or one.location != two.location:
            where = one.location if len(first) >= len(other) else two.location
            raise _different(where, samples, "other steps are taken", OtherSteps)
    if len(first.ops) != len(other.ops):
        longer = max(first, other, key=len)
        where = longer.ops[min(len(first), len(other))].location
        raise _different(where, samples, "another number of steps is taken", OtherSteps)
    if len(first.constants) != len(other.constants) or len(first.guards) != len(other.guards):
        raise _different(None, samples, "other constants or decisions are met", OtherSteps)


def held(general: General, tape: Tape, size: Mapping[str, int], samples: Samples) -> None:
    """Hold a tape of another size against the one for all sizes: ops, constants, keywords and shapes."""
    check_same_ops(general.tape, tape, samples)
    for where, what in _differences(general.tape, general.constants, tape, size):
        raise _different(where, samples, what)


def _differences(
    general: Tape, texts: Mapping[int, str], found: Tape, size: Mapping[str, int]
) -> Iterator[tuple[Location | None, str]]:
    """Where, and in what, a tape of as many ops and constants at one size is not that for all sizes."""
    known = dict(zip(_variables(general), _variables(found), strict=True))
    uses = {operand: op.location for op in reversed(general.ops) for operand in op.operands}
    for variable, value in general.constants.items():
        expected = evaluated(texts[variable], size) if variable in texts else value
        if not _close(expected, found.constants[known[variable]]):
            yield uses.get(variable), "another constant is met"
    for op, other in zip(general.ops, found.ops, strict=True):
        if op.primitive is not other.primitive or tuple(known[each] for each in op.operands) != other.operands:
            yield op.location, "other values are combined"
        type = _at(general.types[op.result], size)
        if type != found.types[other.result] or not _is_case(op.static, other.static, size):
            yield op.location, "another part of an array is taken, or another shape made,"
    if [known[each] for each in general.outputs] != list(found.outputs):
        yield None, "another result is returned"


def _is_case(general: Any, found: Any, size: Mapping[str, int]) -> bool:
    """Whether keywords at one size are those of the tape for all sizes."""
    if isinstance(general, tuple) and isinstance(found, tuple):
        return len(general) == len(found) and all(_is_case(*each, size) for each in zip(general, found, strict=True))
    if not isinstance(general, Region):
        return bool(_at(general, size) == found)
    if not isinstance(found, Region) or _at(general.trips, size) != found.trips:
        return False
    bodies = [(general.body, found.body)]
    if general.condition is not None and found.condition is not None:
        bodies.append((general.condition, found.condition))
    return all(_is_body(one, other, size) for one, other in bodies)


def _is_body(general: Tape, found: Tape, size: Mapping[str, int]) -> bool:
    """Whether the tape of a trip at one size is that for all sizes; its constants do not depend on sizes."""
    pairs = zip(_variables(general), _variables(found), strict=False)
    return (
        (len(general.ops), len(general.constants)) == (len(found.ops), len(found.constants))
        and all(_at(general.types[one], size) == found.types[other] for one, other in pairs)
        and not any(_differences(general, {}, found, size))
    )


def elements(general: General, size: Mapping[str, int], op: int = _OP) -> int:
    """Elements that all arrays of the tape have at one size, and those that count as much as the ops of loops."""
    shapes = Counter(type.shape for type in general.tape.types.values())
    found: int = sum(count * math.prod(_at(shape, size)) for shape, count in shapes.items())
    return found + op * sum(_recorded(each, size) for each in general.tape.ops) + _copied(general, size)


def _copied(general: General, size: Mapping[str, int]) -> int:
    """Elements of arrays that a recording copies for each row that a loop writes."""
    trips = [int(_at(op.keyword("region").trips, size) or 1) for op in general.tape.ops if op.regions]
    written = [op for op in general.tape.ops if op.access == AccessMap.WRITE]
    rows = [op for op in written if len(general.tape.types[op.operands[1]].shape) > 1]
    copied: int = sum(math.prod(_at(general.tape.types[op.result].shape, size)) for op in rows)
    return max(trips, default=0) * copied


def _recorded(op: Op, size: Mapping[str, int]) -> int:
    """Number of ops that a loop at one size is a recording of."""
    if not op.regions:
        return 0
    region: Region = op.keyword("region")
    trips = int(_at(region.trips, size) or 1)
    return trips * sum(1 + _recorded(each, size) for each in region.body.ops)


def _at(value: Any, size: Mapping[str, int]) -> Any:
    """A type or keyword at one size."""
    return with_extents(value, lambda extent: evaluated(extent.text, size))


def _close(expected: Any, found: Any) -> bool:
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape or one.dtype.kind not in "fc":
        return np.array_equal(one, other)
    tolerance = max(1e-12, closeness(other.real.dtype))
    return np.allclose(one, other, rtol=tolerance, atol=0.0, equal_nan=True)


def _different(
    location: Location | None, samples: Samples, what: str, error: type[ArgumentError] = ArgumentError
) -> ArgumentError:
    names = ", ".join(samples.names)
    return error(
        f"{place_of(location)}{what} when {names} changes, as in a Python loop over it or a branch on it. Fix the "
        f"size, as in float64[{next(iter(samples.sizes[0].values()))}], or write that line as array code without the "
        "loop"
    )


def _general(values: Sequence[Any], samples: Samples, location: Location | None) -> Any:
    """One value for all samples: equal parts as they are, ints that differ as `Extent`."""
    first = values[0]
    if isinstance(first, tuple) and all(isinstance(value, tuple) and len(value) == len(first) for value in values):
        return tuple(_general(parts, samples, location) for parts in zip(*values, strict=True))
    if isinstance(first, Record) and all(type(value) is type(first) for value in values):
        return type(first)(*_general([value.contents() for value in values], samples, location))
    if isinstance(first, Region):
        return _region(values, samples, location)
    if all(value == first and type(value) is type(first) for value in values):
        return first
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        found = tuple(int(value) for value in values)
        if samples.whole(found) is not None:
            return Extent(found, samples)
    raise _different(
        location, samples, f"a number that no polynomial of the sizes gives ({first!r}, {values[1]!r}, ...) is met"
    )


def _region(values: Sequence[Region], samples: Samples, location: Location | None) -> Region:
    """The region of a loop at all samples: bodies with the same ops, and a number of trips that depends on sizes."""
    first = values[0]
    if any((first.condition is None) != (each.condition is None) or first.counted != each.counted for each in values):
        raise _different(location, samples, "another loop is met")
    body = _body([each.body for each in values], samples, location)
    conditions = [each.condition for each in values if each.condition is not None]
    condition = _body(conditions, samples, location) if conditions else None
    return replace(
        first, body=body, condition=condition, trips=_general([each.trips for each in values], samples, location)
    )


def _body(tapes: Sequence[Tape], samples: Samples, location: Location | None) -> Tape:
    found = generalised(tapes, samples)
    for variable, text in found.constants.items():
        line = next((op.location for op in found.tape.ops if variable in op.operands), location)
        raise UnknownForm(
            f"{place_of(line)}each trip of a loop reads the number {visible(repr(found.tape.constants[variable]))}, "
            f"which is {text}. Take it out of the loop, as in total / len(x) after it, or x / len(x) ahead of it"
        )
    return found.tape


def _constant(values: Sequence[Any], samples: Samples, location: Location | None) -> str | None:
    """Text of a constant that depends on sizes; None for one that does not."""
    first = np.asarray(values[0])
    arrays = [np.asarray(value) for value in values]
    if all(array.shape == first.shape and array.tobytes() == first.tobytes() for array in arrays):
        return None
    text: str | None
    if first.ndim:
        text = array_text(arrays, samples)
    elif first.dtype.kind in "iu":
        text = samples.whole([int(array) for array in arrays])
    else:
        reals = first.dtype.kind == "f"
        text = samples.real([float(array) for array in arrays], closeness(first.dtype)) if reals else None
    if text is None:
        shown = ", ".join(visible(repr(value))[:24] for value in values[:3])
        raise _different(location, samples, f"a constant whose form is unknown is met ({shown}, ...)", UnknownForm)
    if not first.ndim and not isinstance(values[0], (int, float)):
        # NumPy's numbers are made of a quotient of NumPy's.
        inner = text.removeprefix("float(").removesuffix(")") if text.startswith("float(np.divide(") else text
        return f"np.{first.dtype.name}({inner})"
    return text


class _Canonical(Rewriting):
    """A copy of a tape in which each use of a constant has one of its own."""

    def __getitem__(self, variable: int) -> int:
        return self.mapping[variable] if variable in self.mapping else self.own_constant(variable)


def canonical(tape: Tape) -> Tape:
    """The tape with a constant of its own for each use, so that equal numbers of different origin are kept apart."""
    rewriting = _Canonical(tape)
    for op in tape.ops:
        rewriting.copy(op)
    return rewriting.finish()
