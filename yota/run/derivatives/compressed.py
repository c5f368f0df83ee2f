"""Sparse Jacobians and Hessians of array code, from a few products.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.tape import Tape, TapeBuilder
from yota.optimize import cse, dce, pipeline
from yota.rules.registry import Registry
from yota.run.derivatives.straight_line import Entries
from yota.run.gradient_layout import Wanted
from yota.transform.reverse.backward import gradient_tape, reverse, zeros_like
from yota.transform.sparse.compression import compression
from yota.transform.sparse.products import MOST_PRODUCTS, rows_of

_MOST_ENTRIES = 100_000_000
_MOST_IN_DENSE = 4_000_000
"""Largest number of entries for which a dense matrix is computed by sparse products."""
_MOST_OPS = 20_000


def compressed(
    tape: Tape, leaf: int, wanted: Wanted, registry: Registry, values: Mapping[int, Any]
) -> tuple[Entries, frozenset[int]]:
    """The ``wanted`` entries of ``tape`` by its input ``leaf``, and the inputs that the pattern depends on."""
    by = tape.inputs[leaf].variable
    _refuse_complex(tape, by)
    tape = _sloped(tape, by, registry) if wanted.order == 2 else _joined(tape)
    if any(op.regions for op in tape.ops):
        # What no trip hands on becomes array code, whose elements are told apart.
        tape = pipeline.run(tape, inlined=False)
    tape = cse.run(tape)
    by, result = tape.inputs[leaf].variable, tape.outputs[-1]
    most = _MOST_ENTRIES if wanted.sparse else _MOST_IN_DENSE
    found = compression(tape, result, by, values, most, hessian=wanted.order == 2)
    matrix, number = found.matrix, found.plan.number
    if number > MOST_PRODUCTS or number * len(tape) > _MOST_OPS:
        raise DifferentiationError(
            f"{tape.name}: the {'Hessian' if wanted.order == 2 else 'Jacobian'} by {tape.inputs[leaf].name} is not "
            f"sparse enough: {matrix.nnz} of {matrix.shape[0]} x {matrix.shape[1]} entries would take {number} "
            "products; leave sparse=True out"
        )
    builder = found.cut.tape.builder()
    data = found.entries(builder, registry, reverse)
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


def _sloped(tape: Tape, by: int, registry: Registry) -> Tape:
    """The tape of value and gradient."""
    found = gradient_tape(tape, [by], registry)
    builder = found.tape.builder()
    slope = found.variables[0]
    return builder.finish([found.tape.outputs[0], zeros_like(builder, by) if slope is None else slope])


def _joined(tape: Tape) -> Tape:
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
