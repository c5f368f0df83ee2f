"""Derivatives along directions: Hessian-vector products, and matrices as products with all unit vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from yota.ir.catalog import item_of, primitive
from yota.ir.inputs import Input
from yota.ir.regions import LOOP, Region
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.optimize import dce, pipeline
from yota.optimize.rewrite import reached
from yota.rules.registry import Registry
from yota.run.derivatives.straight_line import Entries, good_orders, slope_of, with_slope
from yota.run.gradient_layout import Wanted
from yota.run.scalar_code import shortest
from yota.run.specialise import Target
from yota.transform.batching.op_batching import batched
from yota.transform.reverse.backward import reverse, zeros_like
from yota.transform.reverse.elimination import ALONG, partials
from yota.transform.sparse.products import pushed
from yota.transform.sparse.scalar_elements import dense, elements, elements_read

_LONG = 512
"""Ops of a gradient above which it is simplified before it is differentiated: the second pass goes over fewer ops."""
_MOST_GIVEN = 64
"""Values that are computed once for all rows of a Hessian: each is an argument of the code for a row."""


def along(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The gradient of the gradient, with the last input, the direction, as seed; the Hessian is symmetric."""
    return pulled(shortened(with_slope(tape, leaf, known)), leaf, known)


def shortened(slope: Tape) -> Tape:
    """A value and its gradient, simplified if they are long."""
    return pipeline.run(slope, inlined=False, once=True) if len(slope) > _LONG else slope


def pulled(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The derivative of the last output but for the last input, which multiplies it from the left."""
    made = _product(tape.builder(), tape, leaf, _direction(tape), known)
    return dce.run(replace(made, outputs=made.outputs[-1:]))


def _product(builder: TapeBuilder, slope: Tape, leaf: int, direction: int, known: Registry) -> Tape:
    """The outputs and the last one's derivative along a direction, a row vector, on a builder that holds the tape."""
    by, result = slope.inputs[leaf].variable, slope.outputs[-1]
    seed = _cast(builder, direction, slope.types[result])
    (product,) = reverse(slope, builder, {result: seed}, [by], known)
    return builder.finish([*slope.outputs, zeros_like(builder, by) if product is None else product])


def _tangent(builder: TapeBuilder, tape: Tape, leaf: int, direction: int, known: Registry) -> Tape:
    """The outputs and the last one's derivative along a direction, a column vector."""
    by, result = tape.inputs[leaf].variable, tape.outputs[-1]
    ((product,),) = pushed(builder, tape, [result], [by], [{by: direction}], partial(reverse, registry=known))
    return builder.finish([*tape.outputs, zeros_like(builder, result) if product is None else product])


def _cast(builder: TapeBuilder, direction: int, type: TensorType) -> int:
    if builder.types[direction] == type:
        return direction
    return builder.emit(primitive("astype"), (direction,), {"dtype": type.dtype}, type)


def _by_units(tape: Tape, leaf: int, wanted: Wanted, known: Registry, *, forward: bool = False) -> tuple[Tape, Any]:
    """The last output's product with a direction, the last input, behind what else is wanted; and all unit vectors."""
    type = tape.types[tape.inputs[leaf].variable if forward else tape.outputs[-1]]
    builder = tape.builder()
    last = max(entry.argument for entry in tape.inputs)
    direction = builder.input(type, last + 1, "v")
    found = (_tangent if forward else _product)(builder, tape, leaf, direction, known)
    found = found if wanted.with_value else replace(found, outputs=found.outputs[-1:])
    units = np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape)
    units.flags.writeable = False
    return found, units


def stacked(tape: Tape, leaf: int, wanted: Wanted, known: Registry) -> Entries:
    """The Jacobian of the last output as products with all unit vectors at once: dependent arrays get one more axis.

    Ops that do not depend on the direction are computed once, and no entry has code of its own.
    """
    result, by = tape.types[tape.outputs[-1]], tape.types[tape.inputs[leaf].variable]
    forward = by.size < result.size
    made, units = _by_units(tape, leaf, wanted, known, forward=forward)
    one = pipeline.run(made, until="dce")
    axes = [None] * (len(one.inputs) - 1) + [0]
    many = batched(one, axes, len(units), [None] * (len(one.outputs) - 1) + [0])
    # The unit vectors are constants: products with them are folded, or become zeros.
    constants = {**many.constants, many.inputs[-1].variable: units}
    builder = replace(many, inputs=many.inputs[:-1], constants=constants).builder()
    return _assembled(builder, many.outputs, result, by, forward=forward)


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
    type = slope.types[slope.outputs[-1]]
    assembled = _assembled(builder, [*made.outputs[:-1], item_of(builder, found, 0)], type, type)
    return replace(assembled, tape=dce.run(assembled.tape))


def _assembled(
    builder: TapeBuilder, outputs: Sequence[int], result: TensorType, by: TensorType, *, forward: bool = False
) -> Entries:
    matrix = outputs[-1]
    if forward:
        flat = builder.emit(primitive("reshape"), (matrix,), {"shape": (by.size, result.size)})
        matrix = builder.emit(primitive("transpose"), (flat,), {"axes": (1, 0)})
    matrix = builder.emit(primitive("reshape"), (matrix,), {"shape": (*result.shape, *by.shape)})
    return Entries(builder.finish([*outputs[:-1], matrix]), (result.size, by.size))


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
