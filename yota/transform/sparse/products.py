"""Products that give the entries of a sparse matrix of derivatives.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.optimize.rewrite import with_ops
from yota.rules.registry import Registry
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reverse
from yota.transform.sparse.colouring import apart, star

MOST_PRODUCTS = 64
_SHORT = 16
"""Number of elements up to which a seed is a constant of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """The products that give the entries of a matrix.

    colours: the product to which each row, or each column, belongs; -1 for none.
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
    across = matrix.T.tocsr()
    longest, widest = (int(np.max(np.diff(each.indptr), initial=0)) for each in (across, matrix))
    rows, columns = rows_of(matrix), matrix.indices.astype(np.int64)
    by_columns = apart(matrix) if widest < longest else None
    if by_columns is None or longest <= by_columns.max(initial=-1) + 1:
        by_rows = apart(across)
        if by_columns is None and widest < by_rows.max(initial=-1) + 1:
            by_columns = apart(matrix)
        if by_columns is None or by_rows.max(initial=-1) <= by_columns.max(initial=-1):
            return Products(_used(by_rows, matrix), False, by_rows[rows], columns)
    return Products(_used(by_columns, across), True, by_columns[columns], rows)


def _used(colours: np.ndarray, matrix: Any) -> np.ndarray:
    """Colours of rows, -1 for rows without entries."""
    return np.where(np.diff(matrix.indptr) > 0, colours, -1)


def symmetric(matrix: Any) -> Products:
    """Products of a symmetric matrix, in which each entry may be read at its mirror position."""
    colours = star(matrix)
    rows, columns = rows_of(matrix), matrix.indices.astype(np.int64)
    number = int(colours.max(initial=-1)) + 1
    seen = np.bincount(rows * number + colours[columns], minlength=1)
    alone = seen[rows * number + colours[columns]] == 1
    products = np.where(alone, colours[columns], colours[rows])
    return Products(colours, False, products, np.where(alone, rows, columns))


def computed(
    builder: TapeBuilder,
    tape: Tape,
    inner: Sequence[int],
    outer: Sequence[int],
    plan: Products,
    registry: Registry,
    reverse: Reverse,
) -> tuple[int, np.ndarray]:
    """A vector of derivatives of ``outer`` by ``inner``, variables of ``tape``, and the place of each entry in it.

    builder: holds the ops of the tape.
    """
    # Adjoints of results of ops stay where they are if no op defines these.
    tape = with_ops(tape, [op for op in tape.ops if op.result not in inner])
    sides = (inner, outer) if plan.forward else (outer, inner)
    seeds = _seeds(builder, plan, sides[0])
    if plan.forward:
        # The pullback is linear in its seed; the pullback of the pullback is the product with a direction.
        blanks = [zeros_like(builder, each) for each in outer]
        pulled = reverse(tape, builder, dict(zip(outer, blanks, strict=True)), inner, registry)
        linear = builder.finish([each for each in pulled if each is not None])
        slopes = dict(zip(inner, pulled, strict=True))
        found = [
            reverse(
                linear,
                builder,
                {pull: seed[each] for each, pull in slopes.items() if pull is not None and each in seed},
                blanks,
                registry,
            )
            for seed in seeds
        ]
    else:
        found = [reverse(tape, builder, seed, inner, registry) for seed in seeds]
    return _read(builder, plan, found, sides[1])


def _seeds(builder: TapeBuilder, plan: Products, given: Sequence[int]) -> list[dict[int, int]]:
    """For each product the seeds of the variables ``given``: ones at its rows or columns, and zeros elsewhere."""
    seeds: list[dict[int, int]] = [{} for _ in range(plan.number)]
    first = 0
    for variable in given:
        type = builder.types[variable]
        colours = plan.colours[first : first + type.size].reshape(type.shape)
        first += type.size
        for axis in range(type.ndim):
            one = colours.take([0], axis) if type.size else colours
            colours = one if np.array_equal(np.broadcast_to(one, colours.shape), colours) else colours
        kind = np.int8 if plan.number < 128 else np.int16
        whole = builder.constant(colours.astype(kind))
        for number in np.unique(colours[colours >= 0]):
            if colours.size == 1:
                seed = builder.constant(type.dtype.type(1))
            elif colours.size <= _SHORT:
                seed = builder.constant((colours == number).astype(type.dtype))
            else:
                seed = builder.emit(primitive("equal"), (whole, builder.constant(kind(number))))
                seed = builder.emit(primitive("astype"), (seed,), {"dtype": type.dtype})
            if builder.types[seed].shape != type.shape:
                seed = builder.emit(primitive("broadcast_to"), (seed,), {"shape": type.shape})
            seeds[number][variable] = seed
    return seeds


def _read(
    builder: TapeBuilder, plan: Products, found: Sequence[Sequence[int | None]], taken: Sequence[int]
) -> tuple[int, np.ndarray]:
    """The parts of the products in which there are entries, one after the other, and the places of the entries."""
    if not len(plan.places):
        return builder.constant(np.zeros(0, builder.types[taken[0]].dtype)), plan.places
    ends = np.cumsum([0, *(builder.types[each].size for each in taken)])
    parts = np.searchsorted(ends, plan.places, "right") - 1
    blocks, own = np.unique(plan.products * len(taken) + parts, return_inverse=True)
    pieces = []
    for number, part in zip(*np.divmod(blocks, len(taken)), strict=True):
        piece = found[number][part]
        pieces.append(_flat(builder, zeros_like(builder, taken[part]) if piece is None else piece))
    starts = np.cumsum([0, *(builder.types[each].size for each in pieces)])
    whole = builder.emit(primitive("concatenate"), pieces, {"axis": 0}) if len(pieces) > 1 else pieces[0]
    return whole, starts[own] + plan.places - ends[parts]


def _flat(builder: TapeBuilder, found: int) -> int:
    type = builder.types[found]
    return found if type.ndim == 1 else builder.emit(primitive("reshape"), (found,), {"shape": (type.size,)})
