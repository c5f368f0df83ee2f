"""Hessian-vector products on tapes, in the elimination order with the fewest operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from yota.autodiff.accumulate import ALONG, partials
from yota.autodiff.reverse import gradient_tape, reverse, zeros_like
from yota.batching.ops import batched
from yota.codegen.scalar import is_scalar
from yota.compilation.scalar_code import shortest
from yota.compilation.specialise import Target
from yota.derivatives.elements import dense, elements, elements_read
from yota.derivatives.straight import Entries, Wanted, good_orders, slope_of
from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.ir.types import TensorType
from yota.passes import dce, pipeline
from yota.rules.registry import Registry

__all__ = ["along", "product_of", "stacked"]

_LONG = 512
"""Ops of a gradient above which it is simplified before it is differentiated: the second pass goes over fewer ops."""


def along(tape: Tape, leaf: int, known: Registry, *, sloped: bool = False) -> Tape:
    """The gradient of the gradient, with the direction as seed; the Hessian is symmetric.

    With ``sloped`` the first outputs are the value and the gradient.
    """
    found = gradient_tape(tape, [tape.inputs[leaf].variable], known)
    long = len(found.tape) > _LONG and is_scalar(tape, inlined=False)
    tape = pipeline.run(found.tape, inlined=False, once=True) if long else found.tape
    by, value, *slope = tape.inputs[leaf].variable, *tape.outputs
    builder = tape.builder()
    product = None
    if slope:
        seed, type = _direction(tape), tape.types[slope[0]]
        if builder.types[seed] != type:
            seed = builder.emit(primitive("astype"), (seed,), {"dtype": type.dtype}, type)
        (product,) = reverse(tape, builder, {slope[0]: seed}, [by], known)
    before = [value, *(slope or [zeros_like(builder, by)])] if sloped else []
    return dce.run(builder.finish([*before, zeros_like(builder, by) if product is None else product]))


def stacked(tape: Tape, leaf: int, wanted: Wanted, known: Registry) -> Entries:
    """The Hessian as its products with all unit vectors at once: dependent arrays get one more axis.

    Ops that do not depend on the direction are computed once, and no entry has code of its own.
    """
    type = tape.types[tape.inputs[leaf].variable]
    builder = tape.builder()
    last = max(entry.argument for entry in tape.inputs)
    builder.input(TensorType(type.dtype, type.shape), last + 1, "v")
    one = pipeline.run(along(builder.finish(tape.outputs), leaf, known, sloped=wanted.with_value), until="dce")
    axes = [0 if entry.argument > last else None for entry in one.inputs]
    many = batched(one, axes, type.size, [None] * (len(one.outputs) - 1) + [0])
    # The unit vectors are constants: products with them are folded, or become zeros.
    units = np.eye(type.size, dtype=type.dtype).reshape(type.size, *type.shape)
    constants = {**many.constants, **{each.variable: units for each in many.inputs if each.argument > last}}
    builder = replace(
        many, inputs=tuple(each for each in many.inputs if each.argument <= last), constants=constants
    ).builder()
    *before, product = many.outputs
    matrix = builder.emit(primitive("reshape"), (product,), {"shape": type.shape * 2})
    return Entries(builder.finish([*before, matrix]), (type.size, type.size))


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
        product = dense(builder, places, (len(rows), 1), type.shape, type.dtype)
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
