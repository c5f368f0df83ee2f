"""Macros: adjoints of eigenvalues, singular values and triangular factors, from the packed arrays that hold them."""

from __future__ import annotations

import numpy as np

from yota.ir.indexing import Index, Slice
from yota.ir.primitive import Emitter
from yota.rules.macros import Handle, adjoint, emit, macro

__all__ = ["eig_adjoint", "eigh_adjoint", "eigvalsh_adjoint", "qr_adjoint", "slogdet_adjoint"]


def part(emitter: Emitter, packed: Handle, *entries: Slice | int) -> Handle:
    """``packed[..., entries]``, the entries standing for the last axes."""
    shape = emitter.type(packed).shape
    whole: Index = tuple(Slice(0, extent) for extent in shape[: len(shape) - len(entries)])
    return emit(emitter, "getitem", packed, index=(*whole, *entries))


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


def _eigen(emitter: Emitter, packed: Handle) -> tuple[Handle, Handle]:
    """Eigenvalues and eigenvectors."""
    size = emitter.type(packed).shape[-1]
    whole = Slice(0, size)
    return part(emitter, packed, 0, whole), part(emitter, packed, Slice(1, size + 1), whole)


@macro("v")
def eigh_adjoint(emitter: Emitter, v: Handle, y: Handle) -> Handle:
    """Adjoint of a Hermitian matrix, ``v`` being that of its packed eigenvalues and eigenvectors ``y``.

    Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation (2008),
    section 3.1.
    """
    values, vectors = _eigen(emitter, y)
    slopes, turns = _eigen(emitter, v)
    back = adjoint(emitter, vectors)
    mixed = emit(emitter, "multiply", gaps(emitter, real(emitter, values)), product(emitter, back, turns))
    inner = emit(emitter, "add", diagonal(emitter, real(emitter, slopes)), mixed)
    return hermitian(emitter, product(emitter, vectors, inner, back))


@macro("v")
def eigvalsh_adjoint(emitter: Emitter, v: Handle, a: Handle, side: str = "L") -> Handle:
    """Adjoint of a Hermitian matrix, ``v`` being that of its eigenvalues."""
    packed = emit(emitter, "eigh_packed", a, lower=side.upper() == "L")
    _, vectors = _eigen(emitter, packed)
    scaled = emit(emitter, "multiply", vectors, columns(emitter, v))
    return product(emitter, scaled, adjoint(emitter, vectors))


@macro("v")
def eig_adjoint(emitter: Emitter, v: Handle, y: Handle) -> Handle:
    """Adjoint of a matrix, ``v`` being that of its packed eigenvalues and eigenvectors ``y``, of length 1 each.

    Boeddeker et al., On the Computation of Complex-valued Gradients with Application to Statistically Optimum
    Beamforming (2017), section 4.7; an eigenvector's change is taken to be orthogonal to it, which fixes its phase.
    """
    values, vectors = _eigen(emitter, y)
    slopes, turns = _eigen(emitter, v)
    back = adjoint(emitter, vectors)
    mixed = product(emitter, back, turns)
    along = columns(emitter, diagonal_of(emitter, mixed))
    free = emit(emitter, "subtract", mixed, emit(emitter, "multiply", product(emitter, back, vectors), along))
    weights = emit(emitter, "conjugate", gaps(emitter, values))
    inner = emit(emitter, "add", diagonal(emitter, slopes), emit(emitter, "multiply", weights, free))
    return emit(emitter, "solve", back, product(emitter, inner, back))


@macro("v")
def slogdet_adjoint(emitter: Emitter, v: Handle, y: Handle, a: Handle) -> Handle:
    """Adjoint of a matrix, ``v`` being that of the sign and the logarithm of its determinant, packed in ``y``."""
    slope = real(emitter, part(emitter, v, 1))
    if emitter.type(y).is_complex:
        sign, turn = part(emitter, y, 0), part(emitter, v, 0)
        twist = emit(emitter, "imag", emit(emitter, "multiply", emit(emitter, "conjugate", sign), turn))
        slope = emit(emitter, "add", slope, emit(emitter, "multiply", twist, emitter.constant(1j)))
    inverse = adjoint(emitter, emit(emitter, "inv", a))
    return emit(emitter, "multiply", rows(emitter, rows(emitter, slope)), inverse)


@macro("v")
def qr_adjoint(emitter: Emitter, v: Handle, y: Handle, shape: tuple[int, ...]) -> Handle:
    """Adjoint of a matrix of ``shape``, ``v`` being that of its packed factors ``y``.

    Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions with Application in Optimum Experimental
    Design (2010), section 3.3; a wide matrix is [A1, A2] with A2 = Q R2.
    """
    height, width = shape[-2:]
    least = min(height, width)
    whole, left = Slice(0, least), Slice(height, height + least)
    factor, turn = (_transposed(emitter, part(emitter, each, whole, Slice(0, height))) for each in (y, v))
    square, slope = (part(emitter, each, whole, left) for each in (y, v))
    tail = None
    if width > height:
        rest, tilt = (part(emitter, each, whole, Slice(height + least, height + width)) for each in (y, v))
        tail = product(emitter, factor, tilt)
        turn = emit(emitter, "add", turn, product(emitter, factor, rest, adjoint(emitter, tilt)))
    spread = emit(
        emitter,
        "subtract",
        product(emitter, slope, adjoint(emitter, square)),
        product(emitter, adjoint(emitter, factor), turn),
    )
    half = masked(emitter, spread, np.triu(np.ones((least, least))) - np.eye(least) / 2)
    inner = emit(emitter, "add", half, adjoint(emitter, half))
    full = emit(emitter, "add", turn, product(emitter, factor, inner))
    head = adjoint(emitter, emit(emitter, "solve", square, adjoint(emitter, full)))
    return head if tail is None else emit(emitter, "concatenate", head, tail, axis=len(shape) - 1)


def _transposed(emitter: Emitter, matrix: Handle) -> Handle:
    order = list(range(emitter.type(matrix).ndim))
    order[-2:] = reversed(order[-2:])
    return emit(emitter, "transpose", matrix, axes=tuple(order))
