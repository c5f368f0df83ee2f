"""Sparsity patterns: which elements of a variable depend on which elements of an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.compilation.sparse import library
from yota.derivatives.known import Known
from yota.derivatives.links import Link, Pairs, link
from yota.errors import DifferentiationError
from yota.ir.tape import Op, Tape

__all__ = ["Pattern", "pattern"]


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Sparsity pattern of a matrix of derivatives.

    Parameters
    ----------
    matrix
        A ``scipy.sparse.csr_array`` of booleans: elements of the result by elements of the input, in C order.
    relied
        Inputs with index or mask values; the pattern holds only for these values.
    """

    matrix: Any
    relied: frozenset[int]


def pattern(tape: Tape, result: int, by: int, values: Mapping[int, Any], most: int) -> Pattern:
    """The pattern of the derivatives of ``result`` by the input ``by``; entries outside it are zero.

    Parameters
    ----------
    values
        Values of inputs that determine the pattern.
    most
        Largest number of entries of each intermediate pattern.

    Raises
    ------
    DifferentiationError
        If the pattern is nearly dense, and too large.
    """
    known = Known(tape, values)
    found = _propagated(tape, result, by, known, most)
    return Pattern(found, frozenset(known.relied))


def _propagated(tape: Tape, result: int, by: int, known: Known, most: int) -> Any:
    sparse = library()
    size = tape.types[by].size
    found = {by: sparse.eye_array(size, dtype=bool, format="csr")}
    last = {operand: op.result for op in tape.ops for operand in op.operands}
    for op in tape.ops:
        if tape.types[op.result].differentiable:
            parts = [
                _carried(tape, op, link(tape, op, position, known), found[operand], most)
                for position, operand in enumerate(op.operands)
                if operand in found
            ]
            if parts:
                found[op.result] = _union(parts)
        for operand in op.operands:
            if last[operand] == op.result and operand != result:
                found.pop(operand, None)
    if result in found:
        return found[result]
    return sparse.csr_array((tape.types[result].size, size), dtype=bool)


def _union(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        if part is not total:
            total = total + part
    return total


def _carried(tape: Tape, op: Op, link: Link, matrix: Any, most: int) -> Any:
    """The rows of ``matrix`` for an operand, propagated through the op to its result."""
    count = tape.types[op.result].size
    if isinstance(link, Pairs):
        return _joined(op, link.results, link.operands, count, matrix, most)
    if link.inner is not None:
        kept = np.flatnonzero(link.inner >= 0)
        matrix = _joined(op, link.inner[kept], kept, link.count, matrix, most)
    if link.outer is not None:
        kept = np.flatnonzero(link.outer >= 0)
        matrix = _joined(op, kept, link.outer[kept], count, matrix, most)
    return matrix


def _joined(op: Op, rows: Any, columns: Any, count: int, matrix: Any, most: int) -> Any:
    """For each row the union of its linked rows of ``matrix``."""
    many = int(np.sum(np.diff(matrix.indptr).astype(np.int64)[columns]))
    if many > most:
        raise DifferentiationError(
            f"{op.location or op.name}: {op.name} makes too many elements depend on one another for sparse=True "
            f"({many} pairs); leave sparse=True out, or move the sparse part to a function of its own"
        )
    shape = (count, matrix.shape[0])
    if len(rows) and np.all(rows[:-1] < rows[1:]) and len(rows) == count:
        return matrix[columns]
    chosen = library().csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)
    return chosen @ matrix
