"""The entries of a sparse matrix of derivatives: by the fewest products, and as sums of what these give."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER
from yota.ir.tape import Tape, TapeBuilder
from yota.optimize.rewrite import reached
from yota.rules.registry import Registry
from yota.transform.reverse.tape_parts import Reverse
from yota.transform.sparse.csr import library
from yota.transform.sparse.cuts import Cut, cuts
from yota.transform.sparse.dependence import patterns
from yota.transform.sparse.element_maps import Known
from yota.transform.sparse.products import Plan, computed, fewest, rows_of, shortest, symmetric

_OF_TERM = 4
"""Cost of a term of a sum, in elementwise operations; of an entry that is only moved, 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The entries of a sparse matrix as sums.

    entries: for each term the number of the entry of the matrix, in order.
    sources: the number that it is of those that the products give.
    single: whether each entry is one term, with factor 1.
    """

    entries: np.ndarray
    sources: np.ndarray
    factors: np.ndarray
    single: bool

    @property
    def cost(self) -> int:
        """The cost of the sums, in elementwise operations."""
        return len(self.entries) * (1 if self.single else _OF_TERM)


@dataclass(frozen=True, slots=True, eq=False)
class Compression:
    """How the entries of a sparse matrix of derivatives are computed.

    matrix: the pattern, a ``scipy.sparse.csr_array``.
    relied: inputs with index or mask values, which the pattern depends on.
    cut: the part of the tape that is differentiated.
    plan: the products that give the entries of its derivative.
    terms: the entries of the matrix, from these.
    """

    matrix: Any
    relied: frozenset[int]
    cut: Cut
    plan: Plan
    terms: Terms

    def entries(self, builder: TapeBuilder, registry: Registry, reverse: Reverse) -> int:
        """The entries, row by row; ``builder`` holds the tape of the cut."""
        cut, terms = self.cut, self.terms
        whole, where = computed(builder, cut.tape, cut.inner, cut.outer, self.plan, partial(reverse, registry=registry))
        dtype, count = builder.types[whole].dtype, self.matrix.nnz

        def chosen(some: Any) -> int:
            places = builder.constant(where[terms.sources[some]])
            found = builder.emit(primitive("getitem"), (whole, places), {"index": (GATHER,)})
            factors = terms.factors[some].astype(dtype)
            if np.all(factors == 1):
                return found
            return builder.emit(primitive("multiply"), (found, builder.constant(factors)))

        first = np.diff(terms.entries, prepend=-1) > 0
        if np.all(first) and len(first) == count:
            return chosen(first)
        # Most entries are single terms, which need no additions.
        ahead = chosen(first) if np.count_nonzero(first) == count else builder.constant(np.zeros(count, dtype))
        rest = ~first if np.count_nonzero(first) == count else np.ones(len(first), bool)
        if not rest.any():
            return ahead
        static = {"shape": (count,), "indices": ((GATHER,),)}
        more = builder.emit(primitive("scatter"), (chosen(rest), builder.constant(terms.entries[rest])), static)
        return builder.emit(primitive("add"), (ahead, more))


def compression(
    tape: Tape, result: int, by: int, values: Mapping[int, Any], most: int, products: int, *, hessian: bool = False
) -> Compression:
    """The cheapest way to the derivative of ``result`` by the input ``by``; with ``hessian`` it is symmetric.

    most, products: how many entries patterns may have, and how many products may be taken.
    """
    known = Known(tape, values)
    matrix = patterns(tape, [result], [by], known, most)
    matrix = (matrix + matrix.T).tocsr() if hessian else matrix
    matrix.sort_indices()
    found = [(Cut.none(tape, result, by), matrix)]
    for cut in cuts(tape, result, by, known):
        with contextlib.suppress(DifferentiationError):
            found.append((cut, _blocks(cut, known, most)))
    work = _work(tape, by)
    numbers = [_fewest(blocks, symmetric=hessian and not number) for number, (_, blocks) in enumerate(found)]
    least = [
        number * work + max(matrix.nnz, _lengths(blocks, cut).sum())
        for number, (cut, blocks) in zip(numbers, found, strict=True)
    ]
    best: tuple[Cut, Plan, Terms] | None = None
    cost, least_number = 0, min(numbers)
    # Colouring takes long: what cannot be the cheapest, or takes too many products, is left out.
    for number in np.argsort(least, kind="stable"):
        if best is not None and least[number] >= cost:
            break
        if numbers[number] > products:
            continue
        cut, blocks = found[number]
        plan = symmetric(blocks) if hessian and not number else shortest(blocks)
        if plan.number > products:
            least_number = plan.number
            continue
        terms = _terms(matrix, blocks, cut)
        if best is None or plan.number * work + terms.cost < cost:
            best, cost = (cut, plan, terms), plan.number * work + terms.cost
    if best is None:
        size = f"{matrix.shape[0]} x {matrix.shape[1]}"
        raise DifferentiationError(f"{matrix.nnz} of {size} entries would take {least_number} products or more")
    return Compression(matrix, frozenset(known.relied), *best)


def _work(tape: Tape, by: int) -> int:
    """Elements of all that depends on the input ``by``."""
    dependent = reached(tape, [by])
    return sum(tape.types[op.result].size for op in tape.ops if op.result in dependent)


def _blocks(cut: Cut, known: Known, most: int) -> Any:
    """The pattern between the bounds of a cut, where it matters."""
    found = patterns(cut.tape, cut.outer, cut.inner, known, most)
    rows, columns = rows_of(found), found.indices
    kept = (np.bincount(cut.sums.indices, minlength=found.shape[0]) > 0)[rows] & (cut.moves >= 0)[columns]
    places = rows[kept], columns[kept]
    blocks = library().csr_array((np.ones(len(places[0]), bool), places), shape=found.shape)
    blocks.sort_indices()
    return blocks


def _fewest(matrix: Any, *, symmetric: bool) -> int:
    """A bound on the number of products, from below."""
    if symmetric:
        # A product has an entry for each row, and half of the entries are enough.
        return int(-(-matrix.nnz // max(1, 2 * matrix.shape[0])))
    return min(fewest(lengths)[0] for lengths in (np.diff(matrix.indptr), np.bincount(matrix.indices, minlength=1)))


def _lengths(blocks: Any, cut: Cut) -> Any:
    """The number of entries to which each entry of ``blocks`` is added."""
    return np.bincount(cut.sums.indices, minlength=blocks.shape[0])[rows_of(blocks)]


def _terms(matrix: Any, blocks: Any, cut: Cut) -> Terms:
    """The entries of ``matrix`` as sums of entries of ``blocks``."""
    across, lengths = cut.sums.tocsc(), _lengths(blocks, cut)
    sources = np.repeat(np.arange(blocks.nnz), lengths)
    starts = np.repeat(across.indptr[rows_of(blocks)] - np.cumsum(lengths) + lengths, lengths)
    places = starts + np.arange(len(sources))
    columns = cut.moves[blocks.indices][sources]
    size = matrix.shape[1]
    wanted = across.indices[places].astype(np.int64) * size + columns
    entries = np.searchsorted(rows_of(matrix) * size + matrix.indices, wanted)
    order = np.argsort(entries, kind="stable")
    entries, factors = entries[order], across.data[places][order]
    single = len(entries) == matrix.nnz and bool(np.all(np.diff(entries) == 1) and np.all(factors == 1))
    return Terms(entries, sources[order], factors, single)
