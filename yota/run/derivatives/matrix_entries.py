"""The entries of a matrix of derivatives: scalar code, or a few products of arrays.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from yota.emit.python.scalar import is_scalar
from yota.errors import ArgumentError, DifferentiationError, YotaError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.tape import Op, Tape, TapeBuilder
from yota.optimize import cse, dce, pipeline
from yota.rules.registry import Registry, registry
from yota.run.arguments import Arguments
from yota.run.derivatives.directions import row_by_row, shortened, stacked
from yota.run.derivatives.straight_line import (
    Entries,
    largest,
    short_entries,
    slope_of,
    sloped,
    straight_line,
    with_slope,
)
from yota.run.derivatives.straight_line import entries as scalar_entries
from yota.run.gradient_layout import Wanted
from yota.run.scalar_code import unrolled
from yota.run.specialise import Instead, Target
from yota.tracing.record import Recording
from yota.transform.reverse.backward import reverse
from yota.transform.sparse.compression import compression
from yota.transform.sparse.products import MOST_PRODUCTS, rows_of

_MOST_ENTRIES = 100_000_000
_MOST_IN_DENSE = 4_000_000
"""Largest number of entries for which a dense matrix is computed by sparse products."""
_MOST_OPS = 20_000
_LONG = 512
"""Number of elements above which a few array operations are preferred to scalar code."""
_EXPANDED, _EXPANDED_IN_C = 500, 2000
"""Largest number of scalar ops, and of operations for their derivatives, to which array code is expanded."""
_SHORT, _EACH = 1000, 3
"""Operations up to which a Hessian is always straight-line code; and additional operations for each gradient op.

The latter not for array code in NumPy, which is a third as fast and takes a third of the time to compile.
"""
_MOST_TOGETHER = 1 << 16
"""Largest array size for which all rows of a matrix are computed together."""
_UNROLLED = 2
"""Length ratio of scalar code that was expanded from array code."""
_FEW, _LONG_CODE = 16, 2000
"""Largest number of Hessian rows computed without its pattern, one by one or at once, for gradients of so many ops."""


def entries(
    recorded: Recording, leaf: int, arguments: Arguments, wanted: Wanted, target: Target
) -> tuple[Entries, Mapping[int, Any]]:
    """The entries as scalar code, or as a few array products, and the inputs that the pattern depends on."""
    tape = recorded.tape
    size = tape.types[tape.inputs[leaf].variable].size
    made, products = None, 0
    if size > max(len(tape), _FEW):
        # Each product takes an operation or more: of more products the code would be too long.
        products = MOST_PRODUCTS if size > _LONG else min(MOST_PRODUCTS, (size - 1) // _UNROLLED)
        with contextlib.suppress(DifferentiationError, ArgumentError):
            made = _compressed(recorded, leaf, arguments, wanted, products)
            if size > _LONG or _UNROLLED * len(made[0].tape) < size:
                return made
    if wanted.sparse or target.effort != "quick":
        found = straight_line(tape, leaf, wanted, registry(), target)
    else:
        found = dense(recorded, leaf, wanted, target, registry())
    if found is not None:
        return found, {}
    try:
        if made is None and (wanted.sparse or products < MOST_PRODUCTS):
            made = _compressed(recorded, leaf, arguments, wanted, MOST_PRODUCTS)
    except (DifferentiationError, ArgumentError):
        if wanted.sparse:
            raise
    if made is None:
        raise Instead(largest(tape), recorded.ran)
    return made


def dense(recorded: Recording, leaf: int, wanted: Wanted, target: Target, known: Registry) -> Entries | None:
    """The entries of a matrix of which no zeros are known; None, or `Instead`, if another function computes them."""
    return (_hessian if wanted.order == 2 else _jacobian)(recorded, leaf, wanted, target, known)


def _jacobian(recorded: Recording, leaf: int, wanted: Wanted, target: Target, known: Registry) -> Entries | None:
    """Straight-line code if it is short or if the function is scalar code, otherwise products of arrays."""
    tape = recorded.tape
    value = pipeline.run(tape, inlined=False)
    scalar = is_scalar(value, inlined=False)
    if scalar and len(value) <= _UNROLLED * len(tape):
        return scalar_entries(value, leaf, wanted, known)
    most = _EXPANDED_IN_C if target.name == "c" else _EXPANDED
    plain = value if scalar else unrolled(value, most=most)
    found = None if plain is None else short_entries(plain, leaf, wanted, known, most)
    if found is not None:
        return found
    with contextlib.suppress(YotaError):
        whole = joined(tape)
        by, result = tape.types[tape.inputs[leaf].variable], whole.types[whole.outputs[-1]]
        together = 0 < min(by.size, result.size) * largest(tape) <= _MOST_TOGETHER
        if together and by.dtype == result.dtype and not by.is_complex:
            return stacked(whole, leaf, wanted, known)
    return straight_line(tape, leaf, wanted, known, target)


def _hessian(recorded: Recording, leaf: int, wanted: Wanted, target: Target, known: Registry) -> Entries | None:
    """Straight-line code if it is short, otherwise products with unit vectors, together or one by one."""
    tape = recorded.tape
    size = tape.types[tape.inputs[leaf].variable].size
    if _are_scalar([op for op in tape.ops if op.regions]) and size <= _LONG:
        return row_by_row(sloped(tape, leaf, known), leaf, wanted, known)
    value = pipeline.run(tape, inlined=False, once=True)
    scalar = is_scalar(value, inlined=False)
    fell_apart = scalar and len(value) > _UNROLLED * len(tape)
    together = (fell_apart or not scalar) and 0 < size * largest(tape) <= _MOST_TOGETHER
    arrays = together and target.name == "numpy"
    slope = None
    if scalar and not (arrays and size > _FEW):
        slope = slope_of(value, leaf, known)
    if slope is not None and (len(slope) <= _LONG_CODE or size > _FEW):
        found = short_entries(slope, leaf, wanted, known, _SHORT, 0 if arrays else _EACH)
        if found is not None:
            return found
    if together:
        with contextlib.suppress(YotaError):
            return stacked(shortened(sloped(tape, leaf, known)), leaf, wanted, known)
    if scalar and slope is None:
        slope = slope_of(value, leaf, known)
    if slope is not None and size <= _LONG and target.name != "cuda":
        return row_by_row(slope, leaf, wanted, known)
    if scalar or size <= _FEW:
        raise Instead(0 if scalar else largest(tape), recorded.ran)
    return None


def _compressed(
    recorded: Recording, leaf: int, arguments: Arguments, wanted: Wanted, products: int
) -> tuple[Entries, Mapping[int, Any]]:
    """The entries of array code; each call checks the inputs that the pattern depends on."""
    variables = [entry.variable for entry in recorded.tape.inputs]
    leaves = dict(zip(variables, (each.value for each in arguments.leaves), strict=False))
    values = {
        variable: value
        for variable, value in {**leaves, **recorded.captured}.items()
        if variable in recorded.captured or not recorded.tape.types[variable].differentiable
    }
    found, relied = _by_products(recorded.tape, leaf, wanted, values, products)
    return found, {variables.index(variable): np.array(values[variable]) for variable in relied}


def _by_products(
    tape: Tape, leaf: int, wanted: Wanted, values: Mapping[int, Any], products: int
) -> tuple[Entries, frozenset[int]]:
    """The ``wanted`` entries of ``tape`` by its input ``leaf``, and the inputs that the pattern depends on."""
    by = tape.inputs[leaf].variable
    _refuse_complex(tape, by)
    tape = with_slope(tape, leaf, registry()) if wanted.order == 2 else joined(tape)
    if any(op.regions for op in tape.ops):
        # What no trip hands on becomes array code, whose elements are told apart.
        tape = pipeline.run(tape, inlined=False)
    tape = cse.run(tape)
    by, result = tape.inputs[leaf].variable, tape.outputs[-1]
    most = _MOST_ENTRIES if wanted.sparse else _MOST_IN_DENSE
    products = min(products, _MOST_OPS // max(len(tape), 1))
    try:
        found = compression(tape, result, by, values, most, products, hessian=wanted.order == 2)
    except DifferentiationError as reason:
        raise DifferentiationError(
            f"{tape.name}: the {'Hessian' if wanted.order == 2 else 'Jacobian'} by {tape.inputs[leaf].name} is not "
            f"sparse enough: {reason}; leave sparse=True out, or move the sparse part to a function of its own"
        ) from None
    matrix = found.matrix
    builder = found.cut.tape.builder()
    data = found.entries(builder, registry(), reverse)
    if not wanted.sparse:
        shape = (*tape.types[result].shape, *tape.types[by].shape)
        data = _spread(builder, data, rows_of(matrix) * matrix.shape[1] + matrix.indices, shape)
    outputs = (*(tape.outputs if wanted.with_value else ()), data)
    made = dce.run(builder.finish(outputs))
    return Entries(made, matrix.shape, rows_of(matrix), matrix.indices), found.relied


def _refuse_complex(tape: Tape, by: int) -> None:
    if tape.types[by].is_complex or any(tape.types[output].is_complex for output in tape.outputs):
        raise DifferentiationError(
            f"{tape.name} is a complex function that works on arrays as a whole, where sparse=True is for real ones. "
            "Take real and imaginary parts as arguments of their own, and return them one after the other."
        )


def joined(tape: Tape) -> Tape:
    """The tape with one result; several numbers become a vector."""
    if len(tape.outputs) == 1:
        return tape
    if any(tape.types[output].shape for output in tape.outputs):
        raise DifferentiationError(
            f"{tape.name} returned several arrays; a Jacobian is of one. Join them (np.concatenate), or "
            "differentiate each by itself."
        )
    builder = tape.builder()
    return builder.finish([builder.emit(primitive("stack"), tape.outputs, {"axis": 0})])


def _spread(builder: TapeBuilder, data: int, places: np.ndarray, shape: tuple[int, ...]) -> int:
    """The dense matrix, with zeros between its entries."""
    size = math.prod(shape)
    where = builder.constant(places)
    static = {"shape": (size,), "indices": ((GATHER,),)}
    whole = builder.emit(primitive("scatter"), (data, where), static)
    return builder.emit(primitive("reshape"), (whole,), {"shape": shape})


def _are_scalar(loops: Sequence[Op]) -> bool:
    """Whether there are loops, and their trips compute with numbers."""
    return bool(loops) and all(is_scalar(op.keyword("region").body, inlined=False) for op in loops)
