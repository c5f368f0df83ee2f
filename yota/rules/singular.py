"""Macros: adjoints of singular values and vectors, pseudoinverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.indexing import Slice
from yota.ir.primitive import Emitter
from yota.rules.decompositions import (
    columns,
    diagonal,
    diagonal_of,
    gaps,
    inverse_or_zero,
    part,
    product,
    real,
    rows,
)
from yota.rules.macros import Handle, adjoint, emit, macro

__all__ = ["lstsq_adjoint", "pinv_adjoint", "svd_adjoint", "svdvals_adjoint"]


def _factors(emitter: Emitter, packed: Handle, height: int, width: int) -> tuple[Handle, Handle, Handle]:
    """``U``, ``s`` and ``Vh``; or their adjoints."""
    least = min(height, width)
    whole = Slice(0, least)
    left = part(emitter, packed, whole, Slice(0, height))
    order = list(range(emitter.type(left).ndim))
    order[-2:] = reversed(order[-2:])
    values = part(emitter, packed, whole, height)
    right = part(emitter, packed, whole, Slice(height + 1, height + 1 + width))
    return emit(emitter, "transpose", left, axes=tuple(order)), real(emitter, values), right


@macro("v")
def svdvals_adjoint(emitter: Emitter, v: Handle, a: Handle) -> Handle:
    """Adjoint of a matrix, ``v`` being that of its singular values."""
    left, _, right = _factors(emitter, emit(emitter, "svd_packed", a), *emitter.type(a).shape[-2:])
    return product(emitter, emit(emitter, "multiply", left, columns(emitter, v)), right)


@macro("v")
def svd_adjoint(emitter: Emitter, v: Handle, y: Handle, shape: tuple[int, ...]) -> Handle:
    """Adjoint of a matrix of ``shape``, ``v`` being that of its packed thin factors ``y``.

    Townsend, Differentiating the Singular Value Decomposition (2016); for complex matrices Wan and Zhang (2019),
    arXiv:1909.02659. The change of phase of a pair of singular vectors is shared between them.
    """
    height, width = shape[-2:]
    least = min(height, width)
    left, values, right = _factors(emitter, y, height, width)
    turn, slopes, twist = _factors(emitter, v, height, width)
    squares = gaps(emitter, emit(emitter, "square", values))
    ahead = product(emitter, adjoint(emitter, left), turn)
    behind = product(emitter, right, adjoint(emitter, twist))
    inner = emit(
        emitter,
        "add",
        emit(emitter, "multiply", _doubled(emitter, squares, ahead), columns(emitter, values)),
        emit(emitter, "multiply", rows(emitter, values), _doubled(emitter, squares, behind)),
    )
    inner = emit(emitter, "add", inner, diagonal(emitter, slopes))
    inverse = inverse_or_zero(emitter, values)
    if emitter.type(y).is_complex:
        phases = emit(emitter, "imag", diagonal_of(emitter, emit(emitter, "subtract", ahead, behind)))
        shared = emit(emitter, "multiply", emit(emitter, "multiply", phases, inverse), emitter.constant(0.5j))
        inner = emit(emitter, "add", inner, diagonal(emitter, shared))
    total = product(emitter, left, inner, right)
    if height > least:
        outside = emit(emitter, "subtract", turn, product(emitter, left, ahead))
        scaled = emit(emitter, "multiply", outside, columns(emitter, inverse))
        total = emit(emitter, "add", total, product(emitter, scaled, right))
    if width > least:
        outside = emit(emitter, "subtract", twist, product(emitter, adjoint(emitter, behind), right))
        scaled = emit(emitter, "multiply", outside, rows(emitter, inverse))
        total = emit(emitter, "add", total, product(emitter, left, scaled))
    return total


def _doubled(emitter: Emitter, weights: Handle, matrix: Handle) -> Handle:
    """``weights * matrix`` plus its adjoint."""
    weighted = emit(emitter, "multiply", weights, matrix)
    return emit(emitter, "add", weighted, adjoint(emitter, weighted))


def _complement(emitter: Emitter, projector: Handle) -> Handle:
    """The identity minus ``projector``."""
    type_ = emitter.type(projector)
    identity = emitter.constant(np.eye(type_.shape[-1], dtype=type_.dtype))
    return emit(emitter, "subtract", identity, projector)


@macro("v")
def pinv_adjoint(emitter: Emitter, v: Handle, a: Handle, y: Handle) -> Handle:
    """Adjoint of a matrix, ``v`` being that of its pseudoinverse ``y``."""
    back, slope = adjoint(emitter, y), adjoint(emitter, v)
    total = emit(emitter, "negative", product(emitter, back, v, back))
    # Of the next two, one vanishes for a matrix of full rank; but the rank is not known here.
    outside = _complement(emitter, product(emitter, a, y))
    total = emit(emitter, "add", total, product(emitter, outside, slope, y, back))
    outside = _complement(emitter, product(emitter, y, a))
    return emit(emitter, "add", total, product(emitter, back, y, slope, outside))


@macro("v")
def lstsq_adjoint(emitter: Emitter, v: Handle, a: Handle, b: Handle, y: Handle, rcond: Any) -> Handle:
    """Adjoint of a matrix, ``v`` being that of the least-squares solution ``y``."""
    inverse = emit(emitter, "pinv", a, rcond=rcond, hermitian=False)
    back, slope = adjoint(emitter, inverse), adjoint(emitter, v)
    residual = emit(emitter, "subtract", b, product(emitter, a, y))
    total = emit(emitter, "negative", product(emitter, back, v, adjoint(emitter, y)))
    total = emit(emitter, "add", total, product(emitter, residual, product(emitter, slope, inverse, back)))
    outside = _complement(emitter, product(emitter, inverse, a))
    return emit(emitter, "add", total, product(emitter, product(emitter, back, y), slope, outside))
