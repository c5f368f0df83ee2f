"""Factorisations of scipy.linalg: eigenvalues, singular values, triangular factors, least squares."""

from __future__ import annotations

from typing import Any

from yota.tracing.functions.decompositions import hermitian
from yota.tracing.functions.scipy.elimination import matrix
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@records("scipy.linalg", "eigh")
def _eigh(trace: Trace, a: Any, b: Any, lower: bool, eigvals_only: bool) -> Any:
    if eigvals_only:
        return _eigvalsh(trace, a, b, lower)
    if b is not None:
        raise trace.refuse("scipy.linalg.eigh with b is not recorded.", "Pass eigvals_only=True.")
    a = hermitian(trace, matrix(trace, "eigh", a), bool(lower))
    return trace.apply(trace.registry.primitive("linalg_eigh"), (a,), {"lower": bool(lower)})


@records("scipy.linalg", "eigvalsh")
def _eigvalsh(trace: Trace, a: Any, b: Any, lower: bool) -> Any:
    a = matrix(trace, "eigvalsh", a)
    if b is None:
        return np.linalg.eigvalsh(a, "L" if lower else "U")
    # As by LAPACK: b = f @ f^H, and the eigenvalues are those of f^-1 @ a @ f^-H.
    factor = np.linalg.cholesky(hermitian(trace, trace.traced(b), bool(lower)))
    half = np.linalg.solve(factor, hermitian(trace, a, bool(lower)))
    return np.linalg.eigvalsh(np.linalg.solve(factor, np.conjugate(half.T)))


@records("scipy.linalg", "eig")
def _eig(trace: Trace, a: Any, right: bool) -> Any:
    """NumPy calls the same routine; SciPy's eigenvalues are complex in any case."""
    a = matrix(trace, "eig", a)
    values, vectors = np.linalg.eig(a)
    values = values.astype(np.result_type(a.dtype, np.complex64))
    return (values, vectors) if right else values


@records("scipy.linalg", "eigvals")
def _eigvals(trace: Trace, a: Any) -> Any:
    return _eig(trace, a, right=False)


@records("scipy.linalg", "svd")
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
def _svdvals(trace: Trace, a: Any) -> Any:
    return np.linalg.svdvals(matrix(trace, "svdvals", a))


@records("scipy.linalg", "qr")
def _qr(trace: Trace, a: Any, mode: str) -> Any:
    a = matrix(trace, "qr", a)
    if mode not in ("economic", "full") or (mode == "full" and a.shape[0] > a.shape[1]):
        raise trace.refuse(f"scipy.linalg.qr with mode={mode!r} is not recorded.", 'Pass mode="economic".')
    return trace.apply(trace.registry.primitive("linalg_qr"), (a,), {"mode": "economic"})


@records("scipy.linalg", "pinv")
def _pinv(trace: Trace, a: Any, rtol: Any) -> Any:
    a = matrix(trace, "pinv", a)
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff)


@records("scipy.linalg", "pinvh")
def _pinvh(trace: Trace, a: Any, rtol: Any, lower: bool) -> Any:
    a = hermitian(trace, matrix(trace, "pinvh", a), bool(lower))
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff, hermitian=True)
