"""Factorisations of numpy.linalg, norms and condition numbers."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.forms import Trace, axes_of, implements, np, unboxed
from yota.tracing.numpy.reductions import root

_EIG: Any = type(np.linalg.eig(np.eye(1)))
_SVD: Any = type(np.linalg.svd(np.eye(1)))
_QR: Any = type(np.linalg.qr(np.eye(1)))
"""NumPy's own named tuples."""
_PLAIN_NORM: Any = np.linalg.norm._implementation
_ASYMMETRY = 1e-6
"""More than rounding explains."""


def _floating(trace: Trace, x: Any) -> Any:
    x = trace.traced(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def hermitian(trace: Trace, a: Any, lower: bool = True) -> Any:
    """A matrix of which one triangle is read, completed if it is not Hermitian. The rules need that: it is a guard."""
    value = np.asarray(trace.values[trace.lift(a)])
    if not value.size:
        return a
    off = np.abs(value - np.conjugate(np.swapaxes(value, -1, -2)))
    if np.max(off) > _ASYMMETRY * np.max(np.abs(value)):
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        return half + np.conjugate(np.swapaxes(half, -1, -2)) + np.real(a) * np.eye(value.shape[-1], dtype=off.dtype)
    apart = np.max(np.abs(a - np.conjugate(np.swapaxes(a, -1, -2)))) > _ASYMMETRY * np.max(np.abs(a))
    trace.decide(trace.lift(apart), "hermitian", False)
    return a


def of_definite(matrix: Any, found: Any) -> Any:
    """What is ``found`` from a matrix that has to be positive definite; NumPy raises if it is not."""
    factor = np.linalg.cholesky(matrix)
    return np.where(np.all(factor[..., :1, :1] > 0), found, np.nan)


def completed(thin: Any, full: Any, axis: int) -> Any:
    """A thin factor with the rows or columns that only the full one has; their derivatives are refused."""
    place = [slice(None)] * full.ndim
    place[axis] = slice(thin.shape[axis], None)
    return np.concatenate([thin, full[tuple(place)]], axis) if thin.shape != full.shape else thin


def with_zeros(r: Any, height: int) -> Any:
    """A triangular factor with rows of zeros below it."""
    *lead, known, width = r.shape
    return np.concatenate([r, np.zeros((*lead, height - known, width), r.dtype)], -2)


@implements(np.linalg.eigh, np.linalg.eigvalsh, named=True)
def _of_triangle(name: str, trace: Trace, a: Any, UPLO: str = "L") -> Any:
    side = UPLO.upper()
    return trace.ruled(name, hermitian(trace, _floating(trace, a), side == "L"), UPLO=side)


@implements(np.linalg.eig)
def _eig(trace: Trace, a: Any) -> Any:
    """NumPy's results are real where all eigenvalues of a real matrix are: that is a guard."""
    a = _floating(trace, a)
    values, vectors = trace.ruled("eig", a)
    if a.dtype.kind != "c" and bool(np.all(np.equal(np.imag(values), 0))):
        values, vectors = np.real(values), np.real(vectors)
    return _EIG(values, vectors)


implements(np.linalg.eigvals)(lambda trace, a: np.linalg.eig(a)[0])


@implements(np.linalg.svd)
def _svd(trace: Trace, a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    a = _floating(trace, a)
    height, width = a.shape[-2:]
    if hermitian:
        return np.linalg.svd._implementation(a, compute_uv=compute_uv, hermitian=True)
    if not compute_uv:
        return np.linalg.svdvals(a)
    thin = trace.ruled("svd", a, full_matrices=False)
    if not full_matrices or height == width:
        return thin
    u, vh = trace.ruled("full_svd", a)
    return _SVD(completed(thin[0], u, -1), thin[1], completed(thin[2], vh, -2))


@implements(np.linalg.qr)
def _qr(trace: Trace, a: Any, mode: str = "reduced") -> Any:
    a = _floating(trace, a)
    height, width = a.shape[-2:]
    if mode not in ("reduced", "complete", "r"):
        raise trace.refuse(f"np.linalg.qr with mode={mode!r} is not supported.", 'Use mode="reduced".')
    factors = trace.ruled("qr", a)
    if mode == "r":
        return factors[1]
    if mode == "reduced" or height <= width:
        return factors
    q, _ = trace.ruled("full_qr", a)
    return _QR(completed(factors[0], q, -1), with_zeros(factors[1], height))


@implements(np.linalg.cholesky)
def _cholesky(trace: Trace, a: Any, /, *, upper: bool = False) -> Any:
    a = hermitian(trace, _floating(trace, a), not upper)
    if not upper:
        return trace.ruled("cholesky", a)
    # Of a Hermitian matrix, the upper factor is the lower one's adjoint.
    return np.conjugate(np.swapaxes(trace.ruled("cholesky", np.conjugate(np.swapaxes(a, -1, -2))), -1, -2))


@implements(np.linalg.pinv)
def _pinv(trace: Trace, a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    a = _floating(trace, a)
    if rcond is None:
        smallest = float(np.finfo(a.dtype).eps) * max(a.shape[-2:])
        rcond = 1e-15 if rtol is np._NoValue else smallest if rtol is None else rtol
    if np.ndim(rcond):
        raise trace.refuse("np.linalg.pinv with a cutoff for each matrix is not supported.", "Pass one number.")
    return trace.ruled("pinv", a, rcond=float(rcond), hermitian=bool(hermitian))


@implements(np.linalg.lstsq)
def _lstsq(trace: Trace, a: Any, b: Any, rcond: Any = None) -> Any:
    """The rank, on which the residuals depend, is a guard."""
    a, b = _floating(trace, a), trace.traced(b)
    height, width = a.shape
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rcond is None else float(rcond)
    values = np.linalg.svdvals(a)
    rank = int(np.count_nonzero(values > max(cutoff, 0.0) * np.max(values)))
    if trace.sizes is not None and rank == width and cutoff <= np.finfo(a.dtype).eps * max(a.shape):
        # A matrix of full rank has one solution: it does not depend on a cutoff that is no expression of sizes.
        cutoff = float(np.finfo(a.dtype).eps)
    solution = trace.ruled("lstsq_solution", a, b, rcond=cutoff)
    residuals: Any = np.zeros(0, values.dtype)
    if rank == width and height > width:
        rest = np.abs(np.matmul(a, solution) - b)
        residuals = np.sum(rest * rest, axis=0, keepdims=b.ndim == 1)
    return solution, residuals, rank, values


@implements(np.linalg.norm)
def _norm(trace: Trace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = _floating(trace, x)
    axes = axes_of(axis, x.ndim)
    is_euclidean = ord is None or (len(axes) == 1 and ord == 2) or (len(axes) == 2 and ord in ("f", "fro"))
    if is_euclidean and (axis is None or len(axes) < 3):
        return _euclidean(trace, x, axes, keepdims)
    if len(axes) > 1 or isinstance(ord, str) or not 1 < ord < math.inf:
        return _PLAIN_NORM(x, ord, axis, keepdims)
    # As at the tip of the Euclidean norm: where all is 0 the derivative is taken to be 0.
    total = np.sum(np.abs(x) ** ord, axis=axes, keepdims=keepdims)
    nothing = np.equal(total, 0)
    return unboxed(np.where(nothing, total, np.where(nothing, total.dtype.type(1), total) ** (1 / ord)))


def _euclidean(trace: Trace, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    square = np.real(x * np.conjugate(x)) if x.dtype.kind == "c" else x * x
    return root(trace, np.sum(square, axis=axes, keepdims=keepdims))


@implements(np.linalg.cond)
def _cond(trace: Trace, x: Any, p: Any = None) -> Any:
    x = _floating(trace, x)
    if p in (None, 2, -2):
        values = np.linalg.svdvals(x)
        largest, smallest = np.max(values, axis=-1), np.min(values, axis=-1)
        result = smallest / largest if p == -2 else largest / smallest
    else:
        result = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
    harmless = np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    return unboxed(np.where(np.logical_and(np.isnan(result), harmless), result.dtype.type(math.inf), result))
