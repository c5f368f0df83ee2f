"""The reverse of a loop: a loop from the last trip to the first, over what every trip of the first one began with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.infer import strong
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.ir.types import TensorType, tuple_of
from yota.transform.reverse.tape_parts import Reversal, match

_FEWEST, _MORE = 64, 4
"""Trips that a loop without a bound may take where its derivative is wanted: so many at least, and so many times those
that it took when it was recorded."""


def active_from(tape: Tape, wrt: Iterable[int]) -> set[int]:
    """Variables through which a derivative flows from ``wrt``."""
    active = {variable for variable in wrt if tape.types[variable].differentiable}
    for op in tape.ops:
        if tape.types[op.result].differentiable and not active.isdisjoint(op.operands):
            active.add(op.result)
    return active


def loop_adjoints(at: Reversal) -> list[tuple[int, int]]:
    """Append the reverse of a loop to the builder; operands with their adjoints."""
    builder, adjoints = at.builder, at.adjoints
    op, count = _with_history(builder, at.op)
    region: Region = op.keyword("region")
    body, carries = region.body, region.carries
    inputs = [entry.variable for entry in body.inputs]
    operands = (0, *op.operands[region.counted :])
    live = {each for each, operand in zip(inputs[1:], operands[1:], strict=True) if operand in at.active}
    live = _settled(region, live)
    carried = [k for k in range(carries) if inputs[1 + k] in live]
    fixed = [k for k in range(region.first_invariant, len(inputs)) if inputs[k] in live]
    rows = [k for k in range(1 + carries, region.first_invariant) if inputs[k] in live]
    slopes = [k for k in adjoints if k >= carries and body.types[body.outputs[k]].differentiable]

    inner = body.builder()
    inner.guards = []
    after = [inner.variable(body.types[inputs[1 + k]]) for k in carried]
    totals = [inner.variable(strong(body.types[inputs[k]])) for k in fixed]
    given = [inner.variable(body.types[body.outputs[k]]) for k in slopes]
    seeds: dict[int, int] = {}
    for output, seed in zip([body.outputs[k] for k in (*carried, *slopes)], (*after, *given), strict=True):
        known = seeds.get(output)
        seeds[output] = seed if known is None else inner.emit(primitive("add"), (known, seed))
    wrt = [inputs[k] for k in (*(1 + k for k in carried), *fixed, *rows)]
    found = list(at.reverse(body, inner, seeds, wrt, at.registry))
    before = [
        zeros_like(inner, variable) if each is None else match(inner, each, inner.types[variable])
        for each, variable in zip(found, after, strict=False)
    ]
    sums = [
        total if each is None else match(inner, inner.emit(primitive("add"), (total, each)), inner.types[total])
        for each, total in zip(found[len(carried) :], totals, strict=False)
    ]
    moved = [(k, each) for k, each in zip(rows, found[len(carried) + len(fixed) :], strict=True) if each is not None]
    # Whether a loop within the body took more trips than there is room for; trips that are not taken leave False.
    failed = [
        inner.emit(primitive("not_equal"), (each.variable, inner.constant(each.expected))) for each in inner.guards
    ]
    inner.guards = []
    order = [inputs[0], *after, *totals, *inputs[1 : region.first_invariant], *given, *inputs[region.first_invariant :]]
    inner.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)]
    inner.names = {}
    slices = [match(inner, each, strong(body.types[inputs[k]])) for k, each in moved]
    tape = inner.finish([*before, *sums, *slices, *failed])
    turned = Region(
        tape,
        len(after) + len(totals),
        carries + region.slices + len(slopes),
        region.trips,
        counted=count is not None,
        backwards=not region.backwards,
        seen=region.seen,
    )
    history = [item_of(builder, op.result, body.outputs.index(each, carries)) for each in inputs[1 : 1 + carries]]
    start = [
        adjoints[k] if k in adjoints else _zeros(builder, inner.types[each])
        for k, each in zip(carried, after, strict=True)
    ]
    start += [_zeros(builder, inner.types[each]) for each in totals]
    given_rows = [operands[k] for k in range(1 + carries, region.first_invariant)]
    last = [*given_rows, *(adjoints[k] for k in slopes), *operands[region.first_invariant :]]
    result = builder.emit(LOOP, (*([] if count is None else [count]), *start, *history, *last), {"region": turned})
    made = _Results(builder, result)
    for number in range(len(failed)):
        stacked = made[turned.carries + len(moved) + number]
        builder.guard(builder.emit(primitive("any"), (stacked,), {"axis": (0,), "keepdims": False}), False, "bool")
    pairs = [(operands[1 + k], made[number]) for number, k in enumerate(carried)]
    pairs += [(operands[k], made[len(carried) + number]) for number, k in enumerate(fixed)]
    pairs += [(operands[k], made[turned.carries + number]) for number, (k, _) in enumerate(moved)]
    return [(operand, match(builder, each, builder.types[operand])) for operand, each in pairs if operand in at.active]


def _settled(region: Region, live: set[int]) -> set[int]:
    """The body's inputs through which a derivative flows, with what is carried there."""
    body = region.body
    while True:
        active = active_from(body, live)
        pairs = zip(body.inputs[1 : 1 + region.carries], body.outputs, strict=False)
        more = {entry.variable for entry, output in pairs if output in active} - live
        live = {each for each in live | more if body.types[each].differentiable}
        if not more & live:
            return live


class _Results:
    """The results of an op of several, read when they are asked for."""

    def __init__(self, builder: TapeBuilder, variable: int) -> None:
        self._builder, self._variable = builder, variable

    def __getitem__(self, number: int) -> int:
        return item_of(self._builder, self._variable, number)


def _with_history(builder: TapeBuilder, op: Op) -> tuple[Op, int | None]:
    """The loop that stacks what every trip begins with; and the number of its trips, None where it is known ahead."""
    found = builder.definition(op.result)
    assert found is not None
    region: Region = found.keyword("region")
    body = region.body
    kept = body.outputs[region.carries :]
    missing = [entry.variable for entry in body.inputs[1 : 1 + region.carries] if entry.variable not in kept]
    if region.condition is not None and _taken(region) is None:
        inner = body.builder()
        missing.append(inner.constant(np.bool_(True)))
        body = inner.finish(body.outputs)
    if missing:
        trips = max(_FEWEST, _MORE * region.seen) if region.trips is None else region.trips
        wider = replace(region, body=replace(body, outputs=(*body.outputs, *missing)), trips=trips)
        found = replace(found, static=(("region", wider),))
        builder.replace(found, tuple_of(wider.types()))
        if region.trips is None:
            # What is kept has room for so many trips.
            bound = builder.constant(trips)
            number = _count(builder, found, wider)
            fits = "less_equal" if wider.counted else "less"
            assert number is not None
            builder.guard(builder.emit(primitive(fits), (number, bound)), True, "bool")
        region = wider
    return found, _count(builder, found, region)


def _count(builder: TapeBuilder, op: Op, region: Region) -> int | None:
    """The number of trips of a loop, where it is not known ahead; a loop with a condition marks each that it takes."""
    if region.condition is None:
        return op.operands[0] if region.counted else None
    taken = _taken(region)
    assert taken is not None
    # C adds up numbers of no other kind.
    marks = builder.emit(primitive("astype"), (item_of(builder, op.result, taken),), {"dtype": np.dtype(np.float64)})
    total = builder.emit(primitive("sum"), (marks,), {"axis": (0,), "keepdims": False})
    return builder.emit(primitive("astype"), (total,), {"dtype": np.dtype(np.int64)})


def _taken(region: Region) -> int | None:
    """The stacked output that is True in each trip."""
    rows = enumerate(region.body.outputs[region.carries :], region.carries)
    return next((number for number, each in rows if region.body.constants.get(each) is np.True_), None)


def _zeros(builder: TapeBuilder, type: TensorType) -> int:
    if type.weak:
        return builder.constant(type.dtype.type(0).item())
    value = np.zeros((), type.dtype)
    return builder.constant(np.broadcast_to(value, type.shape) if type.shape else value[()])


def zeros_like(builder: TapeBuilder, variable: int) -> int:
    """A constant zero of the variable's type, for an argument that the result does not depend on."""
    return _zeros(builder, builder.types[variable])
