"""Products that give the entries of a sparse matrix of derivatives.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.tape import Tape, TapeBuilder
from yota.rules.registry import Registry
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reverse
from yota.transform.sparse.colouring import apart, star

MOST_PRODUCTS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Products:
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


def rows_of(matrix: Any) -> np.ndarray:
    """The row of each entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def shortest(matrix: Any) -> Products:
    """Products by rows or by columns, whichever are fewer."""
    by_rows, by_columns = apart(matrix.T.tocsr()), apart(matrix)
    rows, columns = rows_of(matrix), matrix.indices.astype(np.int64)
    if by_columns.max(initial=-1) < by_rows.max(initial=-1):
        return Products(by_columns, True, by_columns[columns], rows)
    return Products(by_rows, False, by_rows[rows], columns)


def symmetric(matrix: Any) -> Products:
    """Products of a symmetric matrix, in which each entry may be read at its mirror position."""
    colours = star(matrix)
    rows, columns = rows_of(matrix), matrix.indices.astype(np.int64)
    number = int(colours.max(initial=-1)) + 1
    seen = np.bincount(rows * number + colours[columns], minlength=1)
    alone = seen[rows * number + colours[columns]] == 1
    products = np.where(alone, colours[columns], colours[rows])
    return Products(colours, False, products, np.where(alone, rows, columns))


def entries(builder: TapeBuilder, tape: Tape, by: int, plan: Products, registry: Registry, reverse: Reverse) -> int:
    """The entries of the derivative of the last output of ``tape``, which ``builder`` holds, by an input."""
    return _gathered(builder, plan, _computed(builder, tape, by, plan, registry, reverse), tape.types[by].dtype)


def _computed(
    builder: TapeBuilder, tape: Tape, by: int, plan: Products, registry: Registry, reverse: Reverse
) -> list[int]:
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


def _seeds(builder: TapeBuilder, plan: Products, like: int) -> list[int]:
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


def _gathered(builder: TapeBuilder, plan: Products, products: Sequence[int], dtype: np.dtype[Any]) -> int:
    """The entries of the matrix, gathered from the products."""
    if not plan.products.size:
        return builder.constant(np.zeros(0, dtype))
    whole, length = products[0], builder.types[products[0]].size
    if len(products) > 1:
        whole = builder.emit(primitive("concatenate"), products, {"axis": 0})
    where = builder.constant(plan.products * length + plan.places)
    return builder.emit(primitive("getitem"), (whole, where), {"index": (GATHER,)})
