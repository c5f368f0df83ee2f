"""Hessians times a direction, on tapes: by the gradient of the gradient, or whatever else takes fewer operations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from yota.autodiff.accumulate import ALONG, partials
from yota.autodiff.reverse import gradient_tape, reverse, zeros_like
from yota.compilation.scalar_code import shortest
from yota.compilation.specialise import Target
from yota.derivatives.elements import dense, elements, elements_read
from yota.derivatives.straight import good_orders, slope_of
from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.passes import dce
from yota.rules.registry import Registry

__all__ = ["along", "product_of"]


def along(tape: Tape, leaf: int, known: Registry) -> Tape:
    """The gradient's own gradient, with the direction as seed: the Hessian is symmetric."""
    by, direction = tape.inputs[leaf].variable, _direction(tape)
    found = gradient_tape(tape, [by], known)
    builder, (slope,) = found.tape.builder(), found.variables
    product = None
    if slope is not None:
        seed, type = direction, found.tape.types[slope]
        if builder.types[seed] != type:
            seed = builder.emit(primitive("astype"), (seed,), {"dtype": type.dtype}, type)
        (product,) = reverse(found.tape, builder, {slope: seed}, [by], known)
    return dce.run(builder.finish([zeros_like(builder, by) if product is None else product]))


def product_of(tape: Tape, leaf: int, known: Registry, target: Target) -> Tape:
    """The simplified tape of the product; with ``effort="high"`` in the way that takes the fewest operations.

    These are forward over reverse, reverse over reverse and mixtures of them; B. Pearlmutter, "Fast exact
    multiplication by the Hessian" (Neural Computation 6, 1994).
    """

    def derive(form: Tape) -> Iterator[Tape]:
        yield along(form, leaf, known)
        slope = slope_of(form, leaf, known)
        if slope is not None:
            yield from _mixed(slope, leaf, known)

    return shortest(along(tape, leaf, known), tape, derive, target, values=0)


def _mixed(tape: Tape, leaf: int, known: Registry) -> Iterator[Tape]:
    """The product from the value and the gradient on ``tape``, in each order of elimination that looks good."""
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
        places = {(row, 0): entry[ALONG] for row, entry in enumerate(entries) if ALONG in entry}
        product = dense(builder, places, (len(rows), 1), type.shape, type.dtype)
        yield dce.run(builder.finish([product]))


def _elements_of(builder: TapeBuilder, direction: int, columns: dict[int, int]) -> dict[int, int]:
    """For each element of the argument that is read the same element of the direction."""
    shape = builder.types[direction].shape
    if not shape:
        return dict.fromkeys(columns, direction)
    places = {column: np.unravel_index(number, shape) for column, number in columns.items()}
    return {
        column: builder.emit(primitive("getitem"), (direction,), {"index": tuple(map(int, place))})
        for column, place in places.items()
    }


def _direction(tape: Tape) -> int:
    """The input that is the direction: the last of the arguments."""
    last = max(entry.argument for entry in tape.inputs)
    return next(entry.variable for entry in tape.inputs if entry.argument == last)
