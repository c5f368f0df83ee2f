"""Macros: adjoints of eigenvalues, singular values, factors, determinants, pseudoinverses and least squares.

The adjoint of a result that nothing depends on is None, and no code is made for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from yota.ir.indexing import GATHER, Slice
from yota.rules.macros.macro import Slope, Value, joined, macro

_OF_ROUNDING = 0.1
"""The condition number from which on a matrix is singular, times the rounding error."""
_NEGLIGIBLE = 16
"""Rounding errors of the largest singular value up to which those that are cut off count as 0."""
_UNCERTAIN = 16
"""Rounding errors of the sum of all eigenvalues up to which two of them may be equal."""


def _columns(values: Value) -> Value:
    """``values[..., None, :]``, which scale the columns of a matrix."""
    return values.do("reshape", shape=(*values.shape[:-1], 1, values.shape[-1]))


def _rows(values: Value) -> Value:
    """``values[..., :, None]``, which scale the rows of a matrix."""
    return values.do("reshape", shape=(*values.shape, 1))


def _masked(matrix: Value, mask: np.ndarray[Any, Any]) -> Value:
    """``matrix`` times a constant mask."""
    return matrix * mask.astype(matrix.type.dtype.type(0).real.dtype)


def _diagonal(values: Value) -> Value:
    return _masked(_columns(values), np.eye(values.shape[-1]))


def _diagonal_of(matrix: Value) -> Value:
    return _masked(matrix, np.eye(matrix.shape[-1])).sum(matrix.type.ndim - 2)


def _inverse_or_zero(x: Value) -> Value:
    """``1 / x``, 0 where ``x`` is 0."""
    one, nothing = x.of_dtype(1), x.do("equal", 0)
    return nothing.do("where", x.of_dtype(0), one / nothing.do("where", one, x))


def _over_gaps(matrix: Value, values: Value, *, squared: bool = False, conjugated: bool = False) -> Value:
    """Elements of ``matrix`` over ``values[j] - values[i]``, or the difference of squares; 0 on the diagonal.

    Where two values are equal up to rounding, their vectors are undetermined. A result that depends on those, of which
    the element of ``matrix`` is not 0, has no derivative that this rule can find: the element is not a number.
    """
    across, down = _columns(values), _rows(values)
    gaps = across - down
    size = values.do("absolute").sum(values.type.ndim - 1)
    rounding = size * (_UNCERTAIN * float(np.finfo(values.type.dtype).eps))
    equal = gaps.do("absolute").do("less_equal", rounding.do("reshape", shape=(*values.shape[:-1], 1, 1)))
    apart = equal.do("where", gaps.of_dtype(1), gaps * (across + down) if squared else gaps)
    others = _masked(matrix, 1 - np.eye(values.shape[-1]))
    undetermined = others.do("equal", 0).do("where", others.of_dtype(0), others.of_dtype(np.nan))
    return equal.do("where", undetermined, others / (apart.do("conjugate") if conjugated else apart))


def _sum(*terms: Slope) -> Slope:
    """The sum of those terms that are not zero."""
    total: Slope = None
    for term in terms:
        total = term if total is None else total if term is None else total + term
    return total


def _less(x: Slope, y: Slope) -> Slope:
    """A difference of terms that may be zero."""
    return x if y is None else -y if x is None else x - y


def _zeros(like: Value, shape: tuple[int, ...]) -> Value:
    return like.constant(np.zeros(shape, like.type.dtype))


def _over(x: Value, u: Value) -> Value:
    """``x`` times the inverse of the adjoint of ``u``, from the right."""
    return u.do("solve", x.H).H


@macro("dw", "dv")
def eigh_adjoint(dw: Slope, dv: Slope, w: Value, v: Value) -> Value:
    """Adjoint of a Hermitian matrix, from those of its eigenvalues ``w`` and eigenvectors ``v``.

    Giles, Collected Matrix Derivative Results for Forward and Reverse Mode Algorithmic Differentiation (2008),
    section 3.1.
    """
    back = v.H
    if dv is None:
        assert dw is not None
        return v * _columns(dw) @ back
    inner = _over_gaps(back @ dv, w)
    if dw is not None:
        inner = _diagonal(dw) + inner
    matrix = v @ inner @ back
    return (matrix + matrix.H) * 0.5


@macro("v")
def eigvalsh_adjoint(v: Value, a: Value, side: str = "L") -> Value:
    """Adjoint of a Hermitian matrix, ``v`` being that of its eigenvalues."""
    vectors = a.do("eigh", UPLO=side.upper()).do("item", index=1)
    return vectors * _columns(v) @ vectors.H


@macro("dw", "dv")
def eig_adjoint(dw: Slope, dv: Slope, w: Value, v: Value) -> Value:
    """Adjoint of a matrix, from those of its eigenvalues ``w`` and eigenvectors ``v``, of length 1 each.

    Boeddeker et al., On the Computation of Complex-valued Gradients with Application to Statistically Optimum
    Beamforming (2017), section 4.7; an eigenvector's change is taken to be orthogonal to it, which fixes its phase.
    """
    back = v.H
    if dv is None:
        assert dw is not None
        return back.do("solve", _rows(dw) * back)
    mixed = back @ dv
    along = _columns(_diagonal_of(mixed))
    inner = _over_gaps(mixed - back @ v * along, w, conjugated=True)
    if dw is not None:
        inner = _diagonal(dw) + inner
    return back.do("solve", inner @ back)


@macro("dsign", "dlog")
def slogdet_adjoint(dsign: Slope, dlog: Slope, sign: Value, a: Value) -> Value:
    """Adjoint of a matrix, from those of the ``sign`` and of the logarithm of its determinant."""
    slope = dlog
    if sign.type.is_complex and dsign is not None:
        slope = _sum(slope, (sign.do("conjugate") * dsign).do("imag") * 1j)
    if slope is None:
        # The sign of a real determinant does not change.
        assert dsign is not None
        slope = dsign * 0
    inverse = a.do("inv").H
    return _rows(_rows(slope)) * inverse


@macro("dq", "dr")
def qr_adjoint(dq: Slope, dr: Slope, q: Value, r: Value) -> Value:
    """Adjoint of a matrix, from those of its factors ``q`` and ``r``.

    Walter and Lehmann, Algorithmic Differentiation of Linear Algebra Functions with Application in Optimum Experimental
    Design (2010), section 3.3; a wide matrix is [A1, A2] with A2 = Q R2.
    """
    least, width = r.shape[-2:]
    square, slope, turn, tail = r.part(0, least), dr, dq, None
    if width > least and dr is not None:
        slope, tilt = dr.part(0, least), dr.part(least, width)
        tail = q @ tilt
        turn = _sum(turn, q @ r.part(least, width) @ tilt.H)
    spread = _less(None if slope is None else slope @ square.H, None if turn is None else q.H @ turn)
    assert spread is not None
    half = _masked(spread, np.triu(np.ones((least, least))) - np.eye(least) / 2)
    full = q @ (half + half.H)
    head = square.do("solve", (full if turn is None else turn + full).H).H
    if width == least:
        return head
    return joined([head, _zeros(q, (*q.shape[:-1], width - least)) if tail is None else tail])


@macro("dl", "du")
def lu_adjoint(dl: Slope, du: Slope, p: Value, l: Value, u: Value) -> Value:  # noqa: E741
    """Adjoint of the matrix ``(l @ u)[p]``, from those of its factors.

    De Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization, Mathematics of
    Computation 80 (2011), section 3. Of a tall matrix the lower rows are ``l2 @ u``, of a wide one the columns to the
    right ``l @ u2``, which the square part in the corner depends on through the other factor.
    """
    (height, least), width = l.shape, u.shape[1]
    corner_l, corner_u = l.part(0, least, 0), u.part(0, least, 1)
    below = right = None
    if height > least and dl is not None:
        below = _over(dl.part(least, height, 0), corner_u)
        pull = l.part(least, height, 0).H @ below
        dl, du = dl.part(0, least, 0), _less(du, pull)
    if width > least and du is not None:
        right = corner_l.H.do("solve", du.part(least, width, 1))
        pull = right @ u.part(least, width, 1).H
        dl, du = _less(dl, pull), du.part(0, least, 1)
    ones = np.ones((least, least))
    inner = _sum(
        None if dl is None else _masked(corner_l.H @ dl, np.tril(ones, -1)),
        None if du is None else _masked(du @ corner_u.H, np.triu(ones)),
    )
    assert inner is not None
    whole = _over(corner_l.H.do("solve", inner), corner_u)
    if height > least:
        whole = joined([whole, _zeros(whole, (height - least, least)) if below is None else below], 0)
    if width > least:
        whole = joined([whole, _zeros(whole, (least, width - least)) if right is None else right], 1)
    return whole.do("getitem", p, index=(GATHER, Slice(0, width)))


@macro("v")
def svdvals_adjoint(v: Value, a: Value) -> Value:
    """Adjoint of a matrix, ``v`` being that of its singular values."""
    factors = a.do("svd", full_matrices=False)
    left, right = factors.do("item", index=0), factors.do("item", index=2)
    return left * _columns(v) @ right


@macro("du", "ds", "dvh")
def svd_adjoint(du: Slope, ds: Slope, dvh: Slope, u: Value, s: Value, vh: Value) -> Value:
    """Adjoint of a matrix, from those of its thin factors ``u``, ``s`` and ``vh``.

    Townsend, Differentiating the Singular Value Decomposition (2016); for complex matrices Wan and Zhang (2019),
    arXiv:1909.02659. The change of phase of a pair of singular vectors is shared between them.
    """
    if du is None and dvh is None:
        assert ds is not None
        return u * _columns(ds) @ vh
    inverse = _inverse_or_zero(s)
    ahead = None if du is None else u.H @ du
    behind = None if dvh is None else vh @ dvh.H
    inner = _sum(
        None if ds is None else _diagonal(ds),
        None if ahead is None else _doubled(_over_gaps(ahead, s, squared=True)) * _columns(s),
        None if behind is None else _rows(s) * _doubled(_over_gaps(behind, s, squared=True)),
    )
    if u.type.is_complex:
        # Half the imaginary diagonal of the difference, over the singular values, times the imaginary unit.
        turn = _less(ahead, behind)
        assert turn is not None
        inner = _sum(inner, _diagonal(_diagonal_of(turn).do("imag") * inverse * 0.5j))
    assert inner is not None
    total = u @ inner @ vh
    (height, least), width = u.shape[-2:], vh.shape[-1]
    if du is not None and ahead is not None and height > least:
        total = total + (du - u @ ahead) * _columns(inverse) @ vh
    if dvh is not None and behind is not None and width > least:
        total = total + u @ ((dvh - behind.H @ vh) * _rows(inverse))
    return total


def _doubled(matrix: Value) -> Value:
    """``matrix`` plus its adjoint."""
    return matrix + matrix.H


def _complement(projector: Value) -> Value:
    """The identity minus ``projector``."""
    return projector.constant(np.eye(projector.shape[-1], dtype=projector.type.dtype)) - projector


@macro("v")
def pinv_adjoint(v: Value, a: Value, y: Value, rcond: float) -> Value:
    """Adjoint of a matrix, ``v`` being that of its pseudoinverse ``y``."""
    back, slope = y.H, v.H
    # Of the last two terms one vanishes for a matrix of full rank; but the rank is not known here.
    total = -(back @ v @ back) + _complement(a @ y) @ slope @ y @ back
    return _with_cut(total + back @ y @ slope @ _complement(y @ a), v, a, rcond)


@macro("v")
def lstsq_adjoint(v: Value, a: Value, b: Value, y: Value, rcond: float) -> Value:
    """Adjoint of a matrix, ``v`` being that of the least-squares solution ``y``."""
    inverse = a.do("pinv", rcond=rcond, hermitian=False)
    back, slope = inverse.H, v.H
    residual = b - a @ y
    total = -(back @ v @ y.H) + residual @ (slope @ inverse @ back)
    return _with_cut(total + back @ y @ slope @ _complement(inverse @ a), v @ b.H, a, rcond)


def _with_cut(total: Value, v: Value, a: Value, rcond: float) -> Value:
    """The adjoint of a matrix, with what singular values add that ``rcond`` cuts off from its pseudoinverse.

    total: the adjoint if these were 0; v: the adjoint of the pseudoinverse. A change of the matrix mixes the singular
    vectors that are kept with those that are cut off.
    """
    if rcond <= _NEGLIGIBLE * np.finfo(a.type.dtype).eps * max(a.shape[-2:]):
        return total
    factors = a.do("svd", full_matrices=False)
    u, s, vh = (factors.do("item", index=number) for number in range(3))
    is_cut, nothing = s.do("less_equal", s.part(0, 1) * rcond), s.of_dtype(0)
    squares = s * s
    gaps = _columns(squares) - _rows(squares)
    gaps = gaps.do("equal", 0).do("where", gaps.of_dtype(1), gaps)
    ratios = _rows(is_cut.do("where", s, nothing)) * _columns(is_cut.do("where", nothing, _inverse_or_zero(s)))
    direct, crossed = ratios / gaps, ratios * ratios / gaps
    inner = vh @ v @ u
    return total + u @ ((direct + direct.H) * inner + (crossed + crossed.H) * inner.H) @ vh


@macro()
def unstructured(y: Value) -> Value:
    """Numbers like ``y`` that no equation is made for."""
    return y.constant(np.cos(np.arange(y.type.size, dtype=float)).reshape(y.shape).astype(y.type.dtype))


@macro("x")
def if_regular(x: Value, other: Value, a: Value, b: Value) -> Value:
    """``x``, the solution of ``a @ x + x @ b``, or not a number where that equation is singular.

    other: the solution for `unstructured` numbers, which is then as large as rounding lets it be.
    """
    size = np.linalg.norm(np.cos(np.arange(other.type.size, dtype=float)))
    largest = _OF_ROUNDING * size / np.finfo(x.type.dtype).eps
    grown = _norm(other) * (_norm(a) + _norm(b))
    return grown.do("less", grown.of_dtype(largest)).do("where", x, x.of_dtype(np.nan))


def _norm(matrix: Value) -> Value:
    return matrix.do("absolute").do("square").sum(0, 1).do("sqrt")
