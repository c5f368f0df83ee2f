"""Macros: the adjoint of a matrix from those of its triangular factors by Gaussian elimination."""

from __future__ import annotations

import numpy as np

from yota.ir.indexing import GATHER, Slice
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, Slope, emit, macro
from yota.rules.macros.decompositions import masked, product
from yota.rules.macros.shapes import adjoint

__all__ = ["lu_adjoint"]


@macro("dl", "du")
def lu_adjoint(emitter: Emitter, dl: Slope, du: Slope, p: Handle, l: Handle, u: Handle) -> Handle:  # noqa: E741
    """Adjoint of the matrix ``(l @ u)[p]``, from those of its factors.

    De Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization, Mathematics of
    Computation 80 (2011), section 3. Of a tall matrix the lower rows are ``l2 @ u``, of a wide one the columns to the
    right ``l @ u2``, which the square part in the corner depends on through the other factor.
    """
    (height, least), width = emitter.type(l).shape, emitter.type(u).shape[1]
    corner_l, corner_u = _part(emitter, l, least, least), _part(emitter, u, least, least)
    below = right = None
    if height > least and dl is not None:
        rest = _part(emitter, dl, height - least, least, row=least)
        below = _over(emitter, rest, corner_u)
        pull = product(emitter, adjoint(emitter, _part(emitter, l, height - least, least, row=least)), below)
        dl, du = _part(emitter, dl, least, least), _less(emitter, du, pull)
    if width > least and du is not None:
        rest = _part(emitter, du, least, width - least, column=least)
        right = emit(emitter, "solve", adjoint(emitter, corner_l), rest)
        pull = product(emitter, right, adjoint(emitter, _part(emitter, u, least, width - least, column=least)))
        dl, du = _less(emitter, dl, pull), _part(emitter, du, least, least)
    ones, inner = np.ones((least, least)), None
    if dl is not None:
        inner = masked(emitter, product(emitter, adjoint(emitter, corner_l), dl), np.tril(ones, -1))
    if du is not None:
        above = masked(emitter, product(emitter, du, adjoint(emitter, corner_u)), np.triu(ones))
        inner = above if inner is None else emit(emitter, "add", inner, above)
    whole = _over(emitter, emit(emitter, "solve", adjoint(emitter, corner_l), inner), corner_u)
    if height > least:
        below = _zeros(emitter, whole, (height - least, least)) if below is None else below
        whole = emit(emitter, "concatenate", whole, below, axis=0)
    if width > least:
        right = _zeros(emitter, whole, (least, width - least)) if right is None else right
        whole = emit(emitter, "concatenate", whole, right, axis=1)
    return emit(emitter, "getitem", whole, p, index=(GATHER, Slice(0, width)))


def _over(emitter: Emitter, x: Handle, u: Handle) -> Handle:
    """``x`` times the inverse of the adjoint of ``u``, from the right."""
    return adjoint(emitter, emit(emitter, "solve", u, adjoint(emitter, x)))


def _part(emitter: Emitter, matrix: Handle, height: int, width: int, row: int = 0, column: int = 0) -> Handle:
    if emitter.type(matrix).shape == (height, width):
        return matrix
    return emit(emitter, "getitem", matrix, index=(Slice(row, row + height), Slice(column, column + width)))


def _less(emitter: Emitter, x: Slope, y: Handle) -> Handle:
    return emit(emitter, "negative", y) if x is None else emit(emitter, "subtract", x, y)


def _zeros(emitter: Emitter, like: Handle, shape: tuple[int, int]) -> Handle:
    return emitter.constant(np.zeros(shape, emitter.type(like).dtype))
