"""Factorisations of scipy.linalg: eigenvalues, singular values, orthogonal factors, pseudoinverses."""

from __future__ import annotations

from typing import Any

from yota.tracing.functions.decompositions import hermitian
from yota.tracing.functions.scipy.elimination import matrix, rows_of
from yota.tracing.functions.scipy.equations import of_each
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@records("scipy.linalg", "eigh")
@of_each
def _eigh(trace: Trace, a: Any, b: Any, lower: bool, eigvals_only: bool) -> Any:
    if eigvals_only:
        return _eigvalsh(trace, a, b=b, lower=lower)
    if b is not None:
        raise trace.unrecorded("scipy.linalg.eigh with b", "Pass eigvals_only=True.")
    a = hermitian(trace, matrix(trace, "eigh", a), bool(lower))
    return trace.apply(trace.registry.primitive("linalg_eigh"), (a,), {"lower": bool(lower)})


@records("scipy.linalg", "eigvalsh")
@of_each
def _eigvalsh(trace: Trace, a: Any, b: Any, lower: bool) -> Any:
    a = matrix(trace, "eigvalsh", a)
    if b is None:
        return np.linalg.eigvalsh(a, "L" if lower else "U")
    # As by LAPACK: b = f @ f^H, and the eigenvalues are those of f^-1 @ a @ f^-H.
    factor = np.linalg.cholesky(hermitian(trace, trace.traced(b), bool(lower)))
    half = np.linalg.solve(factor, hermitian(trace, a, bool(lower)))
    return np.linalg.eigvalsh(np.linalg.solve(factor, np.conjugate(half.T)))


@records("scipy.linalg", "eig")
@of_each
def _eig(trace: Trace, a: Any, right: bool) -> Any:
    """NumPy calls the same routine; SciPy's eigenvalues are complex in any case."""
    a = matrix(trace, "eig", a)
    values, vectors = np.linalg.eig(a)
    values = values.astype(np.result_type(a.dtype, np.complex64))
    return (values, vectors) if right else values


@records("scipy.linalg", "eigvals")
@of_each
def _eigvals(trace: Trace, a: Any) -> Any:
    return _eig(trace, a, right=False)


@records("scipy.linalg", "svd")
@of_each
def _svd(trace: Trace, a: Any, full_matrices: bool, compute_uv: bool) -> Any:
    a = matrix(trace, "svd", a)
    if not compute_uv:
        return np.linalg.svdvals(a)
    if full_matrices and a.shape[0] != a.shape[1]:
        raise trace.refuse(
            "scipy.linalg.svd gives singular vectors of 0 that are not determined, and have no derivative.",
            "Pass full_matrices=False.",
        )
    return trace.apply(trace.registry.primitive("linalg_svd"), (a,), {"full_matrices": False})


@records("scipy.linalg", "svdvals")
@of_each
def _svdvals(trace: Trace, a: Any) -> Any:
    return np.linalg.svdvals(matrix(trace, "svdvals", a))


@records("scipy.linalg", "qr")
@of_each
def _qr(trace: Trace, a: Any, mode: str, pivoting: bool) -> Any:
    a = matrix(trace, "qr", a)
    if mode not in ("economic", "full", "r") or (mode != "economic" and a.shape[0] > a.shape[1]):
        raise trace.unrecorded(f"scipy.linalg.qr with mode={mode!r}", 'Pass mode="economic".')
    order = None
    if pivoting:
        order = trace.apply(trace.registry.primitive("_qr_order"), (a,), {"mode": "r", "pivoting": True})[1]
        a = rows_of(trace, a.T, order).T
    q, r = trace.apply(trace.registry.primitive("linalg_qr"), (a,), {"mode": "economic"})
    return ((r,) if mode == "r" else (q, r)) + (() if order is None else (order,))


@records("scipy.linalg", "rq")
@of_each
def _rq(trace: Trace, a: Any, mode: str) -> Any:
    """From the other factorisation of the matrix with its axes from back to front, transposed."""
    a = matrix(trace, "rq", a)
    if (
        mode not in ("economic", "full", "r")
        or a.shape[0] > a.shape[1]
        or (mode != "economic" and a.shape[0] < a.shape[1])
    ):
        raise trace.unrecorded(f"scipy.linalg.rq of this shape with mode={mode!r}", 'Pass mode="economic".')
    known = trace.registry.primitive("linalg_qr")
    q, r = trace.apply(known, (np.conjugate(np.flip(a, (0, 1)).T),), {"mode": "economic"})
    r = np.flip(np.conjugate(r.T), (0, 1))
    return r if mode == "r" else (r, np.flip(np.conjugate(q.T), (0, 1)))


@records("scipy.linalg", "qr_multiply")
def _qr_multiply(trace: Trace, a: Any, c: Any, mode: str, conjugate: bool) -> Any:
    a, c = matrix(trace, "qr_multiply", a), trace.traced(c)
    if a.shape[0] < a.shape[1] or mode not in ("left", "right"):
        raise trace.unrecorded("scipy.linalg.qr_multiply of a wide matrix", "Multiply with q of qr.")
    q, r = trace.apply(trace.registry.primitive("linalg_qr"), (a,), {"mode": "economic"})
    q = np.conjugate(q) if conjugate else q
    return (np.matmul(q, c) if mode == "left" else np.matmul(c, q)), r


@records("scipy.linalg", "pinv")
@of_each
def _pinv(trace: Trace, a: Any, rtol: Any) -> Any:
    a = matrix(trace, "pinv", a)
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff)


@records("scipy.linalg", "pinvh")
@of_each
def _pinvh(trace: Trace, a: Any, rtol: Any, lower: bool) -> Any:
    a = hermitian(trace, matrix(trace, "pinvh", a), bool(lower))
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff, hermitian=True)
