"""Factorisations of scipy.linalg: eigenvalues, singular values, triangular factors, least squares."""

from __future__ import annotations

from typing import Any

from yota.tracing.functions.decompositions import hermitian
from yota.tracing.implementations import records
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_HARMLESS = ("overwrite_a", "overwrite_b", "check_finite", "lapack_driver", "driver", "lwork", "turbo")
"""Keywords that do not change what is computed."""


def _matrix(trace: Trace, name: str, a: Any, keywords: dict[str, Any]) -> Any:
    """A matrix of floating-point numbers, where no keyword asks for something else."""
    asked = [
        key for key, value in keywords.items() if key not in _HARMLESS and value is not None and value is not False
    ]
    a = trace.traced(a)
    if asked or a.ndim != 2:
        what = f"with {', '.join(asked)}" if asked else "of anything but one matrix"
        raise trace.refuse(f"scipy.linalg.{name} {what} is not recorded.", f"Use np.linalg or one plain {name}(a).")
    return a if a.dtype.kind in "fc" else a.astype(float)


@records("scipy.linalg", "eigh")
def _eigh(
    trace: Trace, a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, **keywords: Any
) -> Any:
    if eigvals_only and b is not None:
        return _eigvalsh(trace, a, b, lower=lower, **keywords)
    a = _matrix(trace, "eigh", a, {"b": b, **keywords})
    if eigvals_only:
        return np.linalg.eigvalsh(a, "L" if lower else "U")
    a = hermitian(trace, a, bool(lower))
    return trace.apply(trace.registry.primitive("linalg_eigh"), (a,), {"lower": bool(lower)})


@records("scipy.linalg", "eigvalsh")
def _eigvalsh(trace: Trace, a: Any, b: Any = None, *, lower: bool = True, **keywords: Any) -> Any:
    if b is not None and keywords.get("type", 1) == 1:
        # As by LAPACK: b = f @ f^H, and the eigenvalues are those of f^-1 @ a @ f^-H.
        whole = hermitian(trace, _matrix(trace, "eigvalsh", a, {**keywords, "type": None}), bool(lower))
        factor = np.linalg.cholesky(hermitian(trace, trace.traced(b), bool(lower)))
        half = np.linalg.solve(factor, whole)
        return np.linalg.eigvalsh(np.linalg.solve(factor, np.conjugate(half.T)))
    return np.linalg.eigvalsh(_matrix(trace, "eigvalsh", a, {"b": b, **keywords}), "L" if lower else "U")


@records("scipy.linalg", "eig")
def _eig(trace: Trace, a: Any, b: Any = None, left: bool = False, right: bool = True, **keywords: Any) -> Any:
    """NumPy calls the same routine; SciPy's eigenvalues are complex in any case."""
    a = _matrix(trace, "eig", a, {"b": b, "left": left, **keywords})
    values, vectors = np.linalg.eig(a)
    values = values.astype(np.result_type(a.dtype, np.complex64))
    return (values, vectors) if right else values


@records("scipy.linalg", "eigvals")
def _eigvals(trace: Trace, a: Any, b: Any = None, **keywords: Any) -> Any:
    return _eig(trace, a, b, right=False, **keywords)


@records("scipy.linalg", "svd")
def _svd(trace: Trace, a: Any, full_matrices: bool = True, compute_uv: bool = True, **keywords: Any) -> Any:
    a = _matrix(trace, "svd", a, keywords)
    if not compute_uv:
        return np.linalg.svdvals(a)
    if full_matrices and a.shape[0] != a.shape[1]:
        raise trace.refuse(
            "scipy.linalg.svd gives singular vectors of 0 that are not determined, and have no derivative.",
            "Pass full_matrices=False.",
        )
    return trace.apply(trace.registry.primitive("linalg_svd"), (a,), {"full_matrices": False})


@records("scipy.linalg", "svdvals")
def _svdvals(trace: Trace, a: Any, **keywords: Any) -> Any:
    return np.linalg.svdvals(_matrix(trace, "svdvals", a, keywords))


@records("scipy.linalg", "qr")
def _qr(trace: Trace, a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", **keywords: Any) -> Any:
    a = _matrix(trace, "qr", a, keywords)
    if mode not in ("economic", "full") or (mode == "full" and a.shape[0] > a.shape[1]):
        raise trace.refuse(f"scipy.linalg.qr with mode={mode!r} is not recorded.", 'Pass mode="economic".')
    return trace.apply(trace.registry.primitive("linalg_qr"), (a,), {"mode": "economic"})


@records("scipy.linalg", "pinv")
def _pinv(trace: Trace, a: Any, *, atol: Any = None, rtol: Any = None, **keywords: Any) -> Any:
    a = _matrix(trace, "pinv", a, {"atol": atol, **keywords})
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff)


@records("scipy.linalg", "pinvh")
def _pinvh(trace: Trace, a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, **keywords: Any) -> Any:
    a = hermitian(trace, _matrix(trace, "pinvh", a, {"atol": atol, **keywords}), bool(lower))
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    return np.linalg.pinv(a, rcond=cutoff, hermitian=True)
