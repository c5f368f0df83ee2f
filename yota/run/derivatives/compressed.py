"""Sparse Jacobians and Hessians of array code, from a few products.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.tape import Tape, TapeBuilder
from yota.optimize import dce, pipeline
from yota.rules.registry import Registry
from yota.run.derivatives.straight_line import Entries
from yota.run.gradient_layout import Wanted
from yota.transform.reverse.backward import gradient_tape, reverse, zeros_like
from yota.transform.sparse.colouring import apart, star
from yota.transform.sparse.dependence import pattern

_MOST_ENTRIES = 100_000_000
_MOST_IN_DENSE = 4_000_000
"""Largest number of entries for which a dense matrix is computed by sparse products."""
_MOST_PRODUCTS = 64
_MOST_OPS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class _Products:
    """The products that give the entries of a matrix.

    colours: the product to which each row, or each column, belongs.
    forward: whether products combine columns rather than rows.
    products, places: for each entry its product, and its position there.
    """

    colours: np.ndarray
    forward: bool
    products: np.ndarray
    places: np.ndarray

    @property
    def number(self) -> int:
        """Number of products."""
        return int(self.colours.max(initial=-1)) + 1


def compressed(
    tape: Tape, leaf: int, wanted: Wanted, registry: Registry, values: Mapping[int, Any]
) -> tuple[Entries, frozenset[int]]:
    """The ``wanted`` entries of ``tape`` by its input ``leaf``, and the inputs that the pattern depends on.

    values: values of inputs that determine the pattern.
    Raises DifferentiationError if too many products are needed, or the function is complex.
    """
    by = tape.inputs[leaf].variable
    _refuse_complex(tape, by)
    tape = _sloped(tape, by, registry) if wanted.order == 2 else _joined(tape)
    if any(op.regions for op in tape.ops):
        # What no trip hands on becomes array code, whose elements are told apart.
        tape = pipeline.run(tape, inlined=False)
        by = tape.inputs[leaf].variable
    result = tape.outputs[-1]
    found = pattern(tape, result, by, values, _MOST_ENTRIES if wanted.sparse else _MOST_IN_DENSE)
    matrix = (found.matrix + found.matrix.T).tocsr() if wanted.order == 2 else found.matrix
    matrix.sort_indices()
    plan = _symmetric(matrix) if wanted.order == 2 else _shortest(matrix)
    if plan.number > _MOST_PRODUCTS or plan.number * len(tape) > _MOST_OPS:
        raise DifferentiationError(
            f"{tape.name}: the {'Hessian' if wanted.order == 2 else 'Jacobian'} by {tape.inputs[leaf].name} is not "
            f"sparse enough: {matrix.nnz} of {matrix.shape[0]} x {matrix.shape[1]} entries would take {plan.number} "
            "products; leave sparse=True out"
        )
    builder = tape.builder()
    data = _gathered(builder, plan, _computed(builder, tape, by, plan, registry), tape.types[by].dtype)
    if not wanted.sparse:
        shape = (*tape.types[result].shape, *tape.types[by].shape)
        data = _spread(builder, data, _rows(matrix) * matrix.shape[1] + matrix.indices, shape)
    outputs = (*(tape.outputs if wanted.with_value else ()), data)
    made = dce.run(builder.finish(outputs))
    return Entries(made, matrix.shape, _rows(matrix), matrix.indices), found.relied


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


def _rows(matrix: Any) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _shortest(matrix: Any) -> _Products:
    """Products by rows or by columns, whichever are fewer."""
    by_rows, by_columns = apart(matrix.T.tocsr()), apart(matrix)
    rows, columns = _rows(matrix), matrix.indices.astype(np.int64)
    if by_columns.max(initial=-1) < by_rows.max(initial=-1):
        return _Products(by_columns, True, by_columns[columns], rows)
    return _Products(by_rows, False, by_rows[rows], columns)


def _symmetric(matrix: Any) -> _Products:
    """Products of a symmetric matrix, in which each entry may be read at its mirror position."""
    colours = star(matrix)
    rows, columns = _rows(matrix), matrix.indices.astype(np.int64)
    number = int(colours.max(initial=-1)) + 1
    seen = np.bincount(rows * number + colours[columns], minlength=1)
    alone = seen[rows * number + colours[columns]] == 1
    products = np.where(alone, colours[columns], colours[rows])
    return _Products(colours, False, products, np.where(alone, rows, columns))


def _computed(builder: TapeBuilder, tape: Tape, by: int, plan: _Products, registry: Registry) -> list[int]:
    """The products, each as a vector."""
    result = tape.outputs[-1]
    if not plan.forward:
        seeds = _seeds(builder, plan, result)
        found = [reverse(tape, builder, {result: seed}, [by], registry)[0] for seed in seeds]
        return [_flat(builder, by, each) for each in found]
    # The pullback is linear in its seed; the pullback of the pullback is the product with a direction.
    seed = zeros_like(builder, result)
    (pulled,) = reverse(tape, builder, {result: seed}, [by], registry)
    if pulled is None:
        return [_flat(builder, result, None) for _ in range(plan.number)]
    linear = builder.finish([pulled])
    directions = _seeds(builder, plan, by)
    found = [reverse(linear, builder, {pulled: each}, [seed], registry)[0] for each in directions]
    return [_flat(builder, result, each) for each in found]


def _seeds(builder: TapeBuilder, plan: _Products, like: int) -> list[int]:
    """For each product a vector of ones at its rows or columns, and zeros elsewhere."""
    type = builder.types[like]
    if not type.shape:
        return [builder.constant(type.dtype.type(1))] * plan.number
    kind = np.int8 if plan.number < 128 else np.int16
    colours = builder.constant(plan.colours.astype(kind).reshape(type.shape))
    own = [builder.emit(primitive("equal"), (colours, builder.constant(kind(n)))) for n in range(plan.number)]
    return [builder.emit(primitive("astype"), (each,), {"dtype": type.dtype}) for each in own]


def _flat(builder: TapeBuilder, like: int, found: int | None) -> int:
    """A product as a vector; zeros if it is structurally zero."""
    found = zeros_like(builder, like) if found is None else found
    type = builder.types[found]
    return found if type.ndim == 1 else builder.emit(primitive("reshape"), (found,), {"shape": (type.size,)})


def _spread(builder: TapeBuilder, data: int, places: np.ndarray, shape: tuple[int, ...]) -> int:
    """The dense matrix, with zeros between its entries."""
    size = math.prod(shape)
    where = builder.constant(places)
    static = {"shape": (size,), "indices": ((GATHER,),)}
    whole = builder.emit(primitive("scatter"), (data, where), static)
    return builder.emit(primitive("reshape"), (whole,), {"shape": shape})


def _gathered(builder: TapeBuilder, plan: _Products, products: Sequence[int], dtype: np.dtype[Any]) -> int:
    """The entries of the matrix, gathered from the products."""
    if not plan.products.size:
        return builder.constant(np.zeros(0, dtype))
    whole, length = products[0], builder.types[products[0]].size
    if len(products) > 1:
        whole = builder.emit(primitive("concatenate"), products, {"axis": 0})
    where = builder.constant(plan.products * length + plan.places)
    return builder.emit(primitive("getitem"), (whole, where), {"index": (GATHER,)})
