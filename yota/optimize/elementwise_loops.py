"""Loops whose trips compute each element by itself: what trips do with elements, and with sums over them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from yota.ir.inputs import Input
from yota.ir.regions import Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType, TupleType, is_uniform
from yota.optimize import dce

Shape = tuple[int, ...]
Known = Callable[[Tape, Op], bool]
"""Whether a target computes an elementwise op."""


@dataclass(frozen=True, slots=True)
class Trips:
    """A loop as one over elements, and one over numbers that sums of each trip go into.

    elements: the loop over elements; its last results are the sums of all trips.
    operands: which operands of the op it takes.
    sums: how many sums a trip has.
    numbers: the loop over numbers; None if sums go nowhere. Its last rows are the sums.
    number_operands: which operands of the op it takes, with None in the place of all sums.
    results: for each result of the op, whether the loop over numbers gives it, and as which result.
    """

    elements: Region
    operands: tuple[int, ...]
    sums: int
    numbers: Region | None
    number_operands: tuple[int | None, ...]
    results: tuple[tuple[bool, int], ...]


def is_whole_sum(op: Op, types: Mapping[int, TensorType], shape: Shape) -> bool:
    """Whether an op adds up all elements of an array of a shape."""
    return (
        op.access == AccessMap.REDUCTION
        and op.semantics.fold == "add"
        and types[op.operands[0]].shape == shape
        and types[op.result].shape == ()
        and types[op.result].dtype == types[op.operands[0]].dtype
        and types[op.result].dtype.kind in "fc"
    )


def is_by_element(tape: Tape, op: Op, shape: Shape, known: Known) -> bool:
    """Whether each element of the result comes from the same elements of operands, and from numbers."""
    types = [tape.types[each] for each in (op.result, *op.operands)]
    if any(isinstance(type, TupleType) or type.shape not in ((), shape) for type in types):
        return False
    if op.access == AccessMap.BROADCAST:
        return types[0].shape == shape and not types[1].shape
    return op.primitive.elementwise and op.primitive.expand is None and known(tape, op)


def trips_of(op: Op, shape: Shape, known: Known) -> Trips | None:
    """A loop taken apart; None if its trips do not compute each element of arrays of a shape by itself."""
    region: Region = op.keyword("region")
    body = region.body
    entries = [entry.variable for entry in body.inputs]
    if not region.is_fixed or type(region.trips) is not int or body.guards:
        return None
    if not any(body.types[each].shape == shape for each in entries[1 : 1 + region.carries]):
        return None
    arrays = {operand for each in body.ops for operand in each.operands} & body.constants.keys()
    outside = [body.types[each] for each in (*entries, *arrays, *body.outputs)]
    if any(isinstance(type, TupleType) or type.shape not in ((), shape) for type in outside):
        return None
    if not all(is_uniform(body.constants[each]) for each in arrays if body.types[each].shape):
        return None
    sums = [each.result for each in body.ops if is_whole_sum(each, body.types, shape)]
    if not all(each.result in sums or is_by_element(body, each, shape, known) for each in body.ops):
        return None
    late = _late(region, sums)
    if any(body.types[each].shape for each in late):
        return None
    return _taken_apart(region, sums, late)


def _late(region: Region, sums: Collection[int]) -> set[int]:
    """What depends on sums, in the same trip or a later one."""
    body = region.body
    late, size = set(sums), -1
    while size != (size := len(late)):
        late |= {op.result for op in body.ops if not late.isdisjoint(op.operands)}
        pairs = zip(body.inputs[1 : 1 + region.carries], body.outputs, strict=False)
        late |= {entry.variable for entry, output in pairs if output in late}
    return late


def _taken_apart(region: Region, sums: list[int], late: set[int]) -> Trips:
    body, carries, first = region.body, region.carries, region.first_invariant
    entries = [entry.variable for entry in body.inputs]
    early = [k for k in range(carries) if entries[1 + k] not in late]
    rows = [k for k in range(carries, len(body.outputs)) if body.outputs[k] not in late]
    others = list(range(1 + carries, len(entries)))
    tape = replace(body, outputs=(*(body.outputs[k] for k in (*early, *rows)), *sums))
    elements = replace(region, body=with_inputs(tape, [0, *(1 + k for k in early), *others]), carries=len(early))
    results = {k: (False, number) for number, k in enumerate((*early, *rows))}
    operands = (*early, *(k - 1 for k in others))
    # Of all numbers that are carried, those that nobody needs are dropped later.
    carried = [k for k in range(carries) if not body.types[entries[1 + k]].shape]
    last = [k for k in range(carries, len(body.outputs)) if body.outputs[k] in late]
    if not late.intersection(body.outputs):
        return Trips(elements, operands, len(sums), None, (), tuple(results[k] for k in range(len(body.outputs))))
    results.update({k: (True, number) for number, k in enumerate((*carried, *last)) if k not in results})
    slices = [k for k in range(1 + carries, first) if not body.types[entries[k]].shape]
    fixed = [k for k in range(first, len(entries)) if not body.types[entries[k]].shape]
    order = [entries[k] for k in (0, *(1 + k for k in carried), *slices)] + sums + [entries[k] for k in fixed]
    inputs = tuple([Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)])
    ops = tuple([op for op in body.ops if op.result not in sums and not body.types[op.result].shape])
    tape = replace(body, ops=ops, inputs=inputs, outputs=tuple([body.outputs[k] for k in (*carried, *last)]))
    numbers = replace(region, body=dce.run(tape), carries=len(carried), slices=len(slices) + len(sums))
    given = (*carried, *(k - 1 for k in slices), None, *(k - 1 for k in fixed))
    return Trips(elements, operands, len(sums), numbers, given, tuple(results[k] for k in range(len(body.outputs))))


def with_inputs(tape: Tape, order: Sequence[int]) -> Tape:
    """``tape`` with some of its inputs, in this order; nothing reads the others."""
    entries = [tape.inputs[k] for k in order]
    inputs = tuple([Input(each.variable, number, each.name) for number, each in enumerate(entries)])
    return dce.run(replace(tape, inputs=inputs))


def resized(region: Region, shape: Shape, size: int) -> Region:
    """A loop over elements, for so many of them."""
    body = region.body
    types = {each: _resized(type, shape, size) for each, type in body.types.items()}
    constants = {
        each: uniform(value, size) if body.types[each].shape else value for each, value in body.constants.items()
    }
    ops = tuple([replace(op, static=resized_static(op, size)) for op in body.ops])
    return replace(region, body=replace(body, types=types, constants=constants, ops=ops))


def _resized(type: TensorType, shape: Shape, size: int) -> TensorType:
    return TensorType(type.dtype, (size,), type.weak) if type.shape == shape else type


def resized_static(op: Op, size: int) -> tuple[tuple[str, Any], ...]:
    """Static keywords of an op that computes so many elements, or their sum."""
    if op.access == AccessMap.BROADCAST:
        return (("shape", (size,)),)
    if op.access == AccessMap.REDUCTION:
        return (("axis", (0,)), ("keepdims", False))
    return op.static


def uniform(value: Any, size: int) -> Any:
    """An array of so many elements, all of them like those of a uniform one."""
    return np.broadcast_to(value.flat[0], (size,))
