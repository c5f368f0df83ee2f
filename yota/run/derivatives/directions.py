"""Hessian-vector products on tapes, in the elimination order with the fewest operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from yota.emit.python.scalar import is_scalar
from yota.ir.catalog import item_of, primitive
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import dce, pipeline
from yota.optimize.rewrite import reached
from yota.rules.registry import Registry
from yota.run.derivatives.straight_line import Entries, good_orders, slope_of, sloped, with_slope
from yota.run.gradient_layout import Wanted
from yota.run.scalar_code import shortest
from yota.run.specialise import Target
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.backward import reverse, zeros_like
from yota.transform.reverse.elimination import ALONG, partials
from yota.transform.sparse.scalar_elements import dense, elements, elements_read

_LONG = 512
"""Ops of a gradient above which it is simplified before it is differentiated: the second pass goes over fewer ops."""
_MOST_GIVEN = 64
"""Values that are computed once for all rows of a Hessian: each is an argument of the code for a row."""


def along(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The gradient of the gradient, with the last input, the direction, as seed; the Hessian is symmetric."""
    found = with_slope(tape, leaf, known)
    if len(found) > _LONG and is_scalar(tape, inlined=False):
        found = pipeline.run(found, inlined=False, once=True)
    made = _product(found.builder(), found, leaf, _direction(found), known)
    return dce.run(replace(made, outputs=made.outputs[-1:]))


def _product(builder: TapeBuilder, slope: Tape, leaf: int, direction: int, known: Registry) -> Tape:
    """The value, the gradient and the Hessian times a direction, on a builder that holds the first two."""
    by, gradient = slope.inputs[leaf].variable, slope.outputs[-1]
    seed, type = direction, slope.types[gradient]
    if builder.types[seed] != type:
        seed = builder.emit(primitive("astype"), (seed,), {"dtype": type.dtype}, type)
    (product,) = reverse(slope, builder, {gradient: seed}, [by], known)
    return builder.finish([*slope.outputs, zeros_like(builder, by) if product is None else product])


def _by_units(slope: Tape, leaf: int, wanted: Wanted, known: Registry) -> tuple[Tape, Any]:
    """The product with a direction, the last input, behind value and gradient if wanted; and all unit vectors."""
    type = slope.types[slope.inputs[leaf].variable]
    builder = slope.builder()
    last = max(entry.argument for entry in slope.inputs)
    direction = builder.input(TensorType(type.dtype, type.shape), last + 1, "v")
    tape = _product(builder, slope, leaf, direction, known)
    tape = tape if wanted.with_value else replace(tape, outputs=tape.outputs[-1:])
    units = np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape)
    units.flags.writeable = False
    return tape, units


def stacked(tape: Tape, leaf: int, wanted: Wanted, known: Registry) -> Entries:
    """The Hessian as its products with all unit vectors at once: dependent arrays get one more axis.

    Ops that do not depend on the direction are computed once, and no entry has code of its own.
    """
    made, units = _by_units(sloped(tape, leaf, known), leaf, wanted, known)
    one = pipeline.run(made, until="dce")
    axes = [None] * (len(one.inputs) - 1) + [0]
    many = batched(one, axes, len(units), [None] * (len(one.outputs) - 1) + [0])
    # The unit vectors are constants: products with them are folded, or become zeros.
    constants = {**many.constants, many.inputs[-1].variable: units}
    builder = replace(many, inputs=many.inputs[:-1], constants=constants).builder()
    return _assembled(builder, many.outputs, units)


def row_by_row(slope: Tape, leaf: int, wanted: Wanted, known: Registry) -> Entries:
    """The Hessian as a loop over its rows, products with the unit vectors, from the tape of value and gradient."""
    made, units = _by_units(slope, leaf, wanted, known)
    *inputs, direction = made.inputs
    moving = reached(made, [direction.variable])
    operands = {operand for op in made.ops if op.result in moving for operand in op.operands} | {made.outputs[-1]}
    given = sorted(operands - moving - made.constants.keys())
    if len(given) > _MOST_GIVEN:
        given, moving = [entry.variable for entry in inputs], {op.result for op in made.ops}
    body = replace(made, ops=tuple([op for op in made.ops if op.result in moving]), guards=()).builder()
    order = [body.variable(TensorType(np.dtype(np.int64), (), weak=True)), direction.variable, *given]
    body.inputs = [Input(each, number, f"c{number}" if number else "i") for number, each in enumerate(order)]
    body.names = {}
    region = Region(dce.run(body.finish(made.outputs[-1:])), 0, 1, len(units))
    builder = replace(made, inputs=tuple(inputs)).builder()
    found = builder.emit(LOOP, (builder.constant(units), *given), {"region": region})
    assembled = _assembled(builder, [*made.outputs[:-1], item_of(builder, found, 0)], units)
    return replace(assembled, tape=dce.run(assembled.tape))


def _assembled(builder: TapeBuilder, outputs: Sequence[int], units: Any) -> Entries:
    matrix = builder.emit(primitive("reshape"), (outputs[-1],), {"shape": units.shape[1:] * 2})
    return Entries(builder.finish([*outputs[:-1], matrix]), (len(units), len(units)))


def product_of(tape: Tape, leaf: int, known: Registry, target: Target) -> Tape:
    """The simplified tape of the product; ``effort="high"`` selects the form with the fewest operations.

    The forms are forward over reverse, reverse over reverse and mixtures of them; B. Pearlmutter, "Fast exact
    multiplication by the Hessian" (Neural Computation 6, 1994).
    """

    def derive(form: Tape) -> Iterator[Tape]:
        yield along(form, leaf, known)
        slope = slope_of(form, leaf, known)
        if slope is not None:
            yield from _mixed(slope, leaf, known)

    return shortest(along(tape, leaf, known), tape, derive, target, values=0)


def _mixed(tape: Tape, leaf: int, known: Registry) -> Iterator[Tape]:
    """The product from value and gradient on ``tape``, for each promising elimination order."""
    by = tape.inputs[leaf].variable
    rows, columns = elements(tape, tape.outputs[-1])[0], elements_read(tape, by)
    builder = tape.builder()
    parts = _elements_of(builder, _direction(tape), columns)
    steps = partials(builder, tape, rows, list(columns), known, parts)
    if steps is None:
        return
    type = tape.types[by]
    for order in good_orders(steps):
        entries = steps.entries(order)
        if entries is None:
            continue
        places = {(row, 0): entry[ALONG] for row, entry in enumerate(entries) if ALONG in entry}
        product = dense(builder, places, (len(rows), 1), type)
        yield dce.run(builder.finish([product]))


def _elements_of(builder: TapeBuilder, direction: int, columns: dict[int, int]) -> dict[int, int]:
    """For each element read of the argument, the same element of the direction."""
    shape = builder.types[direction].shape
    if not shape:
        return dict.fromkeys(columns, direction)
    places = {column: np.unravel_index(number, shape) for column, number in columns.items()}
    return {
        column: builder.emit(primitive("getitem"), (direction,), {"index": tuple(map(int, place))})
        for column, place in places.items()
    }


def _direction(tape: Tape) -> int:
    """The input of the direction, the last argument."""
    last = max(entry.argument for entry in tape.inputs)
    return next(entry.variable for entry in tape.inputs if entry.argument == last)
