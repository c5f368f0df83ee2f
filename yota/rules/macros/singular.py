"""Macros: adjoints of singular values and vectors, pseudoinverses and least squares."""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.primitive import Emitter
from yota.rules.macros.base import Handle, Slope, emit, macro
from yota.rules.macros.decompositions import (
    columns,
    diagonal,
    diagonal_of,
    gaps,
    inverse_or_zero,
    item,
    product,
    rows,
)
from yota.rules.macros.shapes import adjoint

__all__ = ["lstsq_adjoint", "pinv_adjoint", "svd_adjoint", "svdvals_adjoint"]


@macro("v")
def svdvals_adjoint(emitter: Emitter, v: Handle, a: Handle) -> Handle:
    """Adjoint of a matrix, ``v`` being that of its singular values."""
    factors = emit(emitter, "svd", a, full_matrices=False)
    left, right = item(emitter, factors, 0), item(emitter, factors, 2)
    return product(emitter, emit(emitter, "multiply", left, columns(emitter, v)), right)


@macro("du", "ds", "dvh")
def svd_adjoint(emitter: Emitter, du: Slope, ds: Slope, dvh: Slope, u: Handle, s: Handle, vh: Handle) -> Handle:
    """Adjoint of a matrix, from those of its thin factors ``u``, ``s`` and ``vh``.

    Townsend, Differentiating the Singular Value Decomposition (2016); for complex matrices Wan and Zhang (2019),
    arXiv:1909.02659. The change of phase of a pair of singular vectors is shared between them.
    """
    if du is None and dvh is None:
        return product(emitter, emit(emitter, "multiply", u, columns(emitter, ds)), vh)
    squares, inverse = gaps(emitter, emit(emitter, "square", s)), inverse_or_zero(emitter, s)
    ahead = None if du is None else product(emitter, adjoint(emitter, u), du)
    behind = None if dvh is None else product(emitter, vh, adjoint(emitter, dvh))
    inner = None if ds is None else diagonal(emitter, ds)
    if ahead is not None:
        turned = emit(emitter, "multiply", _doubled(emitter, squares, ahead), columns(emitter, s))
        inner = _added(emitter, inner, turned)
    if behind is not None:
        turned = emit(emitter, "multiply", rows(emitter, s), _doubled(emitter, squares, behind))
        inner = _added(emitter, inner, turned)
    if emitter.type(u).is_complex:
        inner = _added(emitter, inner, diagonal(emitter, _shared_phase(emitter, ahead, behind, inverse)))
    total = product(emitter, u, inner, vh)
    (height, least), width = emitter.type(u).shape[-2:], emitter.type(vh).shape[-1]
    if ahead is not None and height > least:
        outside = emit(emitter, "subtract", du, product(emitter, u, ahead))
        scaled = emit(emitter, "multiply", outside, columns(emitter, inverse))
        total = emit(emitter, "add", total, product(emitter, scaled, vh))
    if behind is not None and width > least:
        outside = emit(emitter, "subtract", dvh, product(emitter, adjoint(emitter, behind), vh))
        scaled = emit(emitter, "multiply", outside, rows(emitter, inverse))
        total = emit(emitter, "add", total, product(emitter, u, scaled))
    return total


def _added(emitter: Emitter, total: Slope, term: Handle) -> Handle:
    return term if total is None else emit(emitter, "add", total, term)


def _shared_phase(emitter: Emitter, ahead: Slope, behind: Slope, inverse: Handle) -> Handle:
    """Half the imaginary diagonal of ``ahead - behind`` over the singular values, times the imaginary unit."""
    if ahead is None:
        turn = emit(emitter, "negative", behind)
    else:
        turn = ahead if behind is None else emit(emitter, "subtract", ahead, behind)
    phases = emit(emitter, "imag", diagonal_of(emitter, turn))
    return emit(emitter, "multiply", emit(emitter, "multiply", phases, inverse), emitter.constant(0.5j))


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
