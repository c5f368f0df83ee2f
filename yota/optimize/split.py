"""Loop bodies: small arrays that are read and made element by element become scalar variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from yota.ir.inputs import Input
from yota.ir.regions import Region
from yota.ir.semantics import AccessMap
from yota.ir.tape import Op, Tape
from yota.ir.types import TensorType
from yota.optimize import dce
from yota.optimize.rewrite import Rewriting, users

_LARGEST = 16
"""Elements of an array up to which it becomes numbers."""


def split(rewriting: Rewriting, region: Region, operands: Sequence[int]) -> tuple[Region, list[int], list[int]]:
    """A loop without such arrays, its operands, and of each result into how many numbers it was split.

    The results are those before the split; the number is 0 for one that stays as it is.
    """
    body = region.body
    read, made = users(body), body.definitions()
    counts = [0] * len(body.outputs)
    inputs, given = [body.inputs[0].variable], list[int]()
    builder = body.builder()
    same: dict[int, int] = {}
    """By the result of a read that is dropped, the number that the trip is given."""
    for number, (entry, operand) in enumerate(zip(body.inputs[1:], operands, strict=True)):
        type, readers = body.types[entry.variable], read.get(entry.variable, ())
        carried = number < region.carries
        if not _is_split(region, number, readers, made, read):
            inputs.append(entry.variable)
            given.append(operand)
            continue
        places: dict[Any, int] = {}
        for op in readers:
            same[op.result] = places.setdefault(op.keyword("index"), op.result)
        if carried:
            counts[number] = type.size
            number_type = TensorType(type.dtype, ())
            places = {(k,): places.get((k,)) or builder.variable(number_type) for k in range(type.size)}
        inputs += places.values()
        given += [rewriting.emit("getitem", (operand,), {"index": place}) for place in places]
    if not same and not any(counts):
        return region, list(operands), counts
    outputs: list[int] = []
    for output, count in zip(body.outputs, counts, strict=True):
        outputs += made[output].operands if count else [output]
    builder.ops = [
        replace(op, operands=tuple([same.get(operand, operand) for operand in op.operands]))
        for op in body.ops
        if op.result not in same
    ]
    builder.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(inputs)]
    tape = builder.finish([same.get(output, output) for output in outputs])
    carries = region.carries + sum(count - 1 for count in counts if count)
    return replace(region, body=dce.run(tape), carries=carries), given, counts


def _is_split(
    region: Region, number: int, readers: Sequence[Op], made: Mapping[int, Op], read: Mapping[int, Sequence[Op]]
) -> bool:
    """Whether a carried array, or one that is the same in every trip, becomes numbers."""
    body = region.body
    type = body.types[body.inputs[1 + number].variable]
    if region.condition is not None or body.guards or region.carries <= number < region.first_invariant - 1:
        return False
    if not _is_read_by_element(body, body.inputs[1 + number].variable, readers):
        return False
    return number >= region.carries or _is_made_by_element(body, made.get(body.outputs[number]), type, read)


def _is_read_by_element(body: Tape, variable: int, readers: Sequence[Op]) -> bool:
    """Whether all that a trip does with an array is to read single elements."""
    type = body.types[variable]
    return (
        type.ndim > 0
        and 0 < type.size <= _LARGEST
        and variable not in body.outputs
        and all(
            op.access == AccessMap.READ
            and op.operands == (variable,)
            and len(op.keyword("index")) == type.ndim
            and all(isinstance(each, int) and each >= 0 for each in op.keyword("index"))
            for op in readers
        )
    )


def _is_made_by_element(body: Tape, op: Op | None, type: TensorType, read: Mapping[int, Sequence[Op]]) -> bool:
    """Whether an op only puts together the elements of the next value of a carried array."""
    return (
        op is not None
        and op.access == AccessMap.STACK
        and type.ndim == 1
        and op.result not in read
        and body.outputs.count(op.result) == 1
        and all(body.types[each] == TensorType(type.dtype, ()) for each in op.operands)
    )
