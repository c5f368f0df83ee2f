"""Ops that are linear functions of an operand, with factors that are known: moves, sums and scalings."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.access_maps import pieces
from yota.ir.semantics import MOVES, AccessMap
from yota.ir.tape import Op, Tape
from yota.transform.sparse.csr import library
from yota.transform.sparse.element_maps import Known, Link, Pairs, link

SUMS = frozenset((AccessMap.SCATTER, AccessMap.DEPOSIT))
"""Maps that add elements at indices."""


def mask(op: Op, known: Known) -> Any:
    """The constant condition of a ``where``; None for all else."""
    return known[op.operands[0]] if op.semantics.chooses and known.is_constant(op.operands[0]) else None


def is_told(op: Op, known: Known) -> bool:
    """Whether all index arrays of an op are known."""
    return all(op.operands[each] in known for _, arrays, _ in pieces(op) for each in arrays)


def keeps_dtype(tape: Tape, op: Op, position: int) -> bool:
    """Whether the result of an op has the dtype of its operand at ``position``."""
    return tape.types[op.result].dtype == tape.types[op.operands[position]].dtype


def matrix(tape: Tape, op: Op, position: int, known: Known) -> Any:
    """The matrix of the linear function that an op is of its operand at ``position``; None if it is no such op."""
    each = factor(tape, op, position, known)
    if each is None:
        return None
    result = tape.types[op.result]
    found = _counts(link(tape, op, position, known), result.size, tape.types[op.operands[position]].size)
    if np.ndim(each):
        found = library().diags_array(np.broadcast_to(each, result.shape).ravel()) @ found
        found.eliminate_zeros()
        return found
    return found * float(each)


def factor(tape: Tape, op: Op, position: int, known: Known) -> Any:
    """What an op multiplies its operand at ``position`` by before it sums; None if it does anything else."""
    if op.regions or not keeps_dtype(tape, op, position) or not is_told(op, known):
        return None
    semantics = op.semantics
    if op.access in MOVES or op.access in SUMS or (op.access == AccessMap.REDUCTION and semantics.fold == "add"):
        return 1
    if semantics.signs:
        return semantics.signs[position]
    condition = mask(op, known)
    if condition is not None:
        return np.equal(condition, position == 1).astype(float)
    if semantics.powers and semantics.powers[position] == 1 and known.is_constant(op.operands[1 - position]):
        with np.errstate(all="ignore"):
            found = np.asarray(known[op.operands[1 - position]], float) ** semantics.powers[1 - position]
        return found if np.all(np.isfinite(found)) else None
    return None


def _counts(link: Link, rows: int, columns: int) -> Any:
    """A dependence as a matrix of how often each element of the operand goes into each element of the result."""
    if isinstance(link, Pairs):
        return _ones(link.results, link.operands, (rows, columns))
    outer = np.arange(rows) if link.outer is None else link.outer
    inner = np.arange(columns) if link.inner is None else link.inner
    read, kept = np.flatnonzero(outer >= 0), np.flatnonzero(inner >= 0)
    summed = _ones(inner[kept], kept, (link.count, columns))
    return _ones(read, outer[read], (rows, link.count)) @ summed


def _ones(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> Any:
    return library().csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
