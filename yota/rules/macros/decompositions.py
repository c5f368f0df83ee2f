"""Macros: adjoints of eigenvalues, eigenvectors, triangular factors and determinants.

The adjoint of a result that nothing depends on is None, and no code is made for it.
"""

from __future__ import annotations

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, Slope, emit, macro
from yota.rules.macros.shapes import adjoint

__all__ = ["eig_adjoint", "eigh_adjoint", "eigvalsh_adjoint", "item", "qr_adjoint", "slogdet_adjoint"]


def item(emitter: Emitter, results: Handle, index: int) -> Handle:
    """One of several results."""
    return emit(emitter, "item", results, index=index)


def columns(emitter: Emitter, values: Handle) -> Handle:
    """``values[..., None, :]``, which scale the columns of a matrix."""
    shape = emitter.type(values).shape
    return emit(emitter, "reshape", values, shape=(*shape[:-1], 1, shape[-1]))


def rows(emitter: Emitter, values: Handle) -> Handle:
    """``values[..., :, None]``, which scale the rows of a matrix."""
    return emit(emitter, "reshape", values, shape=(*emitter.type(values).shape, 1))


def product(emitter: Emitter, *matrices: Handle) -> Handle:
    """The matrix product, from the left."""
    result = matrices[0]
    for each in matrices[1:]:
        result = emit(emitter, "matmul", result, each)
    return result


def real(emitter: Emitter, x: Handle) -> Handle:
    """The real part."""
    return emit(emitter, "real", x) if emitter.type(x).is_complex else x


def masked(emitter: Emitter, matrix: Handle, mask: np.ndarray) -> Handle:
    """``matrix`` times a constant mask."""
    kind = emitter.type(matrix).dtype.type(0).real.dtype
    return emit(emitter, "multiply", matrix, emitter.constant(mask.astype(kind)))


def diagonal(emitter: Emitter, values: Handle) -> Handle:
    """The diagonal matrix of ``values``."""
    return masked(emitter, columns(emitter, values), np.eye(emitter.type(values).shape[-1]))


def diagonal_of(emitter: Emitter, matrix: Handle) -> Handle:
    """The diagonal of a square matrix."""
    return emit(
        emitter, "sum", masked(emitter, matrix, np.eye(emitter.type(matrix).shape[-1])),
        axis=(emitter.type(matrix).ndim - 2,), keepdims=False,
    )  # fmt: skip


def inverse_or_zero(emitter: Emitter, x: Handle) -> Handle:
    """``1 / x``, 0 where ``x`` is 0."""
    one = emitter.constant(emitter.type(x).dtype.type(1))
    nothing = emit(emitter, "equal", x, emitter.constant(0))
    return emit(
        emitter,
        "where",
        nothing,
        emitter.constant(emitter.type(x).dtype.type(0)),
        emit(emitter, "divide", one, emit(emitter, "where", nothing, one, x)),
    )


def gaps(emitter: Emitter, values: Handle) -> Handle:
    """``1 / (values[j] - values[i])``, 0 where two values are equal."""
    return inverse_or_zero(emitter, emit(emitter, "subtract", columns(emitter, values), rows(emitter, values)))


def hermitian(emitter: Emitter, matrix: Handle) -> Handle:
    """Half the sum of a matrix and its adjoint."""
    both = emit(emitter, "add", matrix, adjoint(emitter, matrix))
    return emit(emitter, "multiply", both, emitter.constant(0.5))


@macro("dw", "dv")
def eigh_adjoint(emitter: Emitter, dw: Slope, dv: Slope, w: Handle, v: Handle) -> Handle:
    """Adjoint of a Hermitian matrix, from those of its eigenvalues ``w`` and eigenvectors ``v``.

    Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation (2008),
    section 3.1.
    """
    back = adjoint(emitter, v)
    if dv is None:
        return product(emitter, emit(emitter, "multiply", v, columns(emitter, dw)), back)
    inner = emit(emitter, "multiply", gaps(emitter, w), product(emitter, back, dv))
    if dw is not None:
        inner = emit(emitter, "add", diagonal(emitter, dw), inner)
    return hermitian(emitter, product(emitter, v, inner, back))


@macro("v")
def eigvalsh_adjoint(emitter: Emitter, v: Handle, a: Handle, side: str = "L") -> Handle:
    """Adjoint of a Hermitian matrix, ``v`` being that of its eigenvalues."""
    vectors = item(emitter, emit(emitter, "eigh", a, UPLO=side.upper()), 1)
    scaled = emit(emitter, "multiply", vectors, columns(emitter, v))
    return product(emitter, scaled, adjoint(emitter, vectors))


@macro("dw", "dv")
def eig_adjoint(emitter: Emitter, dw: Slope, dv: Slope, w: Handle, v: Handle) -> Handle:
    """Adjoint of a matrix, from those of its eigenvalues ``w`` and eigenvectors ``v``, of length 1 each.

    Boeddeker et al., On the Computation of Complex-valued Gradients with Application to Statistically Optimum
    Beamforming (2017), section 4.7; an eigenvector's change is taken to be orthogonal to it, which fixes its phase.
    """
    back = adjoint(emitter, v)
    if dv is None:
        return emit(emitter, "solve", back, emit(emitter, "multiply", rows(emitter, dw), back))
    mixed = product(emitter, back, dv)
    along = columns(emitter, diagonal_of(emitter, mixed))
    free = emit(emitter, "subtract", mixed, emit(emitter, "multiply", product(emitter, back, v), along))
    inner = emit(emitter, "multiply", emit(emitter, "conjugate", gaps(emitter, w)), free)
    if dw is not None:
        inner = emit(emitter, "add", diagonal(emitter, dw), inner)
    return emit(emitter, "solve", back, product(emitter, inner, back))


@macro("dsign", "dlog")
def slogdet_adjoint(emitter: Emitter, dsign: Slope, dlog: Slope, sign: Handle, a: Handle) -> Handle:
    """Adjoint of a matrix, from those of the ``sign`` and of the logarithm of its determinant."""
    slope = dlog
    if emitter.type(sign).is_complex and dsign is not None:
        twist = emit(emitter, "imag", emit(emitter, "multiply", emit(emitter, "conjugate", sign), dsign))
        turn = emit(emitter, "multiply", twist, emitter.constant(1j))
        slope = turn if slope is None else emit(emitter, "add", slope, turn)
    if slope is None:
        # The sign of a real determinant does not change.
        slope = emit(emitter, "multiply", dsign, emitter.constant(0))
    inverse = adjoint(emitter, emit(emitter, "inv", a))
    return emit(emitter, "multiply", rows(emitter, rows(emitter, slope)), inverse)


@macro("dq", "dr")
def qr_adjoint(emitter: Emitter, dq: Slope, dr: Slope, q: Handle, r: Handle) -> Handle:
    """Adjoint of a matrix, from those of its factors ``q`` and ``r``.

    Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions with Application in Optimum Experimental
    Design (2010), section 3.3; a wide matrix is [A1, A2] with A2 = Q R2.
    """
    least, width = emitter.type(r).shape[-2:]
    square, slope, turn, tail = r, dr, dq, None
    if width > least:
        square = _columns_of(emitter, r, 0, least)
        if dr is not None:
            slope, tilt = (_columns_of(emitter, dr, *each) for each in ((0, least), (least, width)))
            tail = product(emitter, q, tilt)
            moved = product(emitter, q, _columns_of(emitter, r, least, width), adjoint(emitter, tilt))
            turn = moved if turn is None else emit(emitter, "add", turn, moved)
    spread = None if slope is None else product(emitter, slope, adjoint(emitter, square))
    if turn is not None:
        against = product(emitter, adjoint(emitter, q), turn)
        spread = emit(emitter, "negative", against) if spread is None else emit(emitter, "subtract", spread, against)
    half = masked(emitter, spread, np.triu(np.ones((least, least))) - np.eye(least) / 2)
    full = product(emitter, q, emit(emitter, "add", half, adjoint(emitter, half)))
    full = full if turn is None else emit(emitter, "add", turn, full)
    head = adjoint(emitter, emit(emitter, "solve", square, adjoint(emitter, full)))
    if width == least:
        return head
    tail = _zeros(emitter, q, width - least) if tail is None else tail
    return emit(emitter, "concatenate", head, tail, axis=emitter.type(head).ndim - 1)


def _columns_of(emitter: Emitter, matrix: Handle, start: int, stop: int) -> Handle:
    shape = emitter.type(matrix).shape
    whole = tuple(Slice(0, extent) for extent in shape[:-1])
    return emit(emitter, "getitem", matrix, index=(*whole, Slice(start, stop)))


def _zeros(emitter: Emitter, like: Handle, width: int) -> Handle:
    """As many rows as ``like`` has, of zeros."""
    type_ = emitter.type(like)
    return emitter.constant(np.zeros((*type_.shape[:-1], width), type_.dtype))
