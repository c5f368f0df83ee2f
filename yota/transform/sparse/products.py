"""Products that give the entries of a sparse matrix of derivatives.

Rows, or columns, without a common nonzero position are computed in one product and separated by the pattern.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.ir.catalog import primitive
from yota.ir.tape import Tape, TapeBuilder
from yota.optimize.rewrite import with_ops
from yota.transform.reverse.loop_adjoints import zeros_like
from yota.transform.reverse.tape_parts import Reverse
from yota.transform.sparse.colouring import apart, star
from yota.transform.sparse.csr import library

MOST_PRODUCTS = 64
_MOST_LEFT_OUT = 16
"""Largest number of long rows, or columns, with products of their own."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Products in both directions, which give the entries of a matrix together.

    parts: the products of each direction.
    entries: for each part the numbers of the entries that it gives.
    """

    parts: tuple[Products, ...]
    entries: tuple[np.ndarray, ...]

    @property
    def number(self) -> int:
        """Number of products."""
        return sum(part.number for part in self.parts)


def fewest(lengths: np.ndarray) -> tuple[int, np.ndarray]:
    """A bound on the products that tell rows apart, by the ``lengths`` of columns, and the columns to leave out for it.

    A column that is left out has a product of its own, in the other direction.
    """
    order = np.argsort(-lengths, kind="stable")[: _MOST_LEFT_OUT + 1]
    bounds = lengths[order] + np.arange(len(order))
    number = int(np.argmin(bounds)) if len(bounds) else 0
    return int(bounds[number]) if len(bounds) else 0, np.sort(order[:number])


def shortest(matrix: Any) -> Plan:
    """Products by rows or by columns, whichever are fewer, and by those that are too long for that."""
    across = matrix.T.tocsr()
    # Whether products combine columns, with the matrix whose rows are columns of such a product.
    sides = [(False, across), (True, matrix)]
    bounds = [fewest(np.diff(side.indptr)) for _, side in sides]
    best: Plan | None = None
    for number in sorted((0, 1), key=lambda number: bounds[number][0]):
        if best is None or bounds[number][0] < best.number:
            found = _two_sided(matrix, *sides[number], bounds[number][1])
            if best is None or found.number < best.number:
                best = found
    assert best is not None
    return best


def _two_sided(matrix: Any, forward: bool, side: Any, left_out: np.ndarray) -> Plan:
    """Products in one direction; rows of ``side`` that are ``left_out`` have each one in the other direction."""
    ends = rows_of(matrix), matrix.indices.astype(np.int64)
    own, other = ends[::-1] if forward else ends
    kept = np.ones(side.shape[0], bool)
    kept[left_out] = False
    inside = np.flatnonzero(kept[other])
    rest = library().csr_array((np.ones(len(inside), bool), (other[inside], own[inside])), shape=side.shape)
    used = np.bincount(own[inside], minlength=side.shape[1]) > 0
    colours = np.where(used, apart(rest), -1)
    parts = [Products(colours, forward, colours[own[inside]], other[inside])]
    entries = [inside]
    if len(left_out):
        outside = np.flatnonzero(~kept[other])
        places = np.full(side.shape[0], -1)
        places[left_out] = np.arange(len(left_out))
        parts.append(Products(places, not forward, places[other[outside]], own[outside]))
        entries.append(outside)
    return Plan(tuple(parts), tuple(entries))


def symmetric(matrix: Any) -> Plan:
    """Products of a symmetric matrix, in which each entry may be read at its mirror position."""
    colours = star(matrix)
    rows, columns = rows_of(matrix), matrix.indices.astype(np.int64)
    number = int(colours.max(initial=-1)) + 1
    seen = np.bincount(rows * number + colours[columns], minlength=1)
    alone = seen[rows * number + colours[columns]] == 1
    products = np.where(alone, colours[columns], colours[rows])
    part = Products(colours, False, products, np.where(alone, rows, columns))
    return Plan((part,), (np.arange(matrix.nnz),))


def computed(
    builder: TapeBuilder, tape: Tape, inner: Sequence[int], outer: Sequence[int], plan: Plan, reverse: Reverse
) -> tuple[int, np.ndarray]:
    """A vector of derivatives of ``outer`` by ``inner``, variables of ``tape``, and the place of each entry in it."""
    # Adjoints of results of ops stay where they are if no op defines these.
    tape = with_ops(tape, [op for op in tape.ops if op.result not in inner])
    pieces: list[int] = []
    where = np.zeros(sum(map(len, plan.entries)), np.int64)
    start = 0
    for part, entries in zip(plan.parts, plan.entries, strict=True):
        found, taken = _products(builder, tape, inner, outer, part, reverse)
        read, places = _read(builder, part, found, taken)
        pieces += read
        where[entries] = start + places
        start += sum(builder.types[each].size for each in read)
    if not pieces:
        return builder.constant(np.zeros(0, builder.types[inner[0]].dtype)), where
    return builder.emit(primitive("concatenate"), pieces, {"axis": 0}) if len(pieces) > 1 else pieces[0], where


def _products(
    builder: TapeBuilder, tape: Tape, inner: Sequence[int], outer: Sequence[int], part: Products, reverse: Reverse
) -> tuple[list[Sequence[int | None]], Sequence[int]]:
    """The products of one direction, each with a result for each of the variables that come second."""
    if not part.forward:
        return [reverse(tape, builder, seed, inner) for seed in _seeds(builder, part, outer)], inner
    return pushed(builder, tape, outer, inner, _seeds(builder, part, inner), reverse), outer


def pushed(
    builder: TapeBuilder,
    tape: Tape,
    outer: Sequence[int],
    inner: Sequence[int],
    seeds: Sequence[Mapping[int, int]],
    reverse: Reverse,
) -> list[Sequence[int | None]]:
    """The derivatives of ``outer`` along each direction of ``inner``, a column vector.

    The pullback is linear in its seed; the pullback of the pullback is the product with a direction.
    """
    # Each is a variable of its own, which nothing else on the tape is.
    blanks = [builder.variable(builder.types[each]) for each in outer]
    for each in blanks:
        builder.constants[each] = np.zeros(builder.types[each].shape, builder.types[each].dtype)[()]
    pulled = reverse(tape, builder, dict(zip(outer, blanks, strict=True)), inner)
    linear = builder.finish([each for each in pulled if each is not None])
    slopes = [(each, pull) for each, pull in zip(inner, pulled, strict=True) if pull is not None]
    given = [{pull: seed[each] for each, pull in slopes if each in seed} for seed in seeds]
    return [reverse(linear, builder, each, blanks) for each in given]


def _seeds(builder: TapeBuilder, part: Products, given: Sequence[int]) -> list[dict[int, int]]:
    """For each product the seeds of the variables ``given``: ones at its rows or columns, and zeros elsewhere."""
    seeds: list[dict[int, int]] = [{} for _ in range(part.number)]
    first = 0
    for variable in given:
        type = builder.types[variable]
        colours = part.colours[first : first + type.size].reshape(type.shape)
        first += type.size
        for axis in range(type.ndim):
            one = colours.take([0], axis) if type.size else colours
            colours = one if np.array_equal(np.broadcast_to(one, colours.shape), colours) else colours
        kind = np.int8 if part.number < 128 else np.int16
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
    builder: TapeBuilder, part: Products, found: Sequence[Sequence[int | None]], taken: Sequence[int]
) -> tuple[list[int], np.ndarray]:
    """The results of products in which there are entries, as vectors, and the places of the entries in all of these."""
    ends = np.cumsum([0, *(builder.types[each].size for each in taken)])
    numbers = np.searchsorted(ends, part.places, "right") - 1
    blocks, own = np.unique(part.products * len(taken) + numbers, return_inverse=True)
    pieces = []
    for number, which in zip(*np.divmod(blocks, len(taken)), strict=True):
        piece = found[number][which]
        pieces.append(_flat(builder, zeros_like(builder, taken[which]) if piece is None else piece))
    starts = np.cumsum([0, *(builder.types[each].size for each in pieces)])
    return pieces, starts[own] + part.places - ends[numbers]


def _flat(builder: TapeBuilder, found: int) -> int:
    type = builder.types[found]
    return found if type.ndim == 1 else builder.emit(primitive("reshape"), (found,), {"shape": (type.size,)})
