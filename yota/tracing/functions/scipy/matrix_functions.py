"""Functions of a square matrix by its exponential, the polar decomposition, and matrices made of vectors, SciPy's."""

from __future__ import annotations

import sys
from typing import Any

from yota.tracing.functions.scipy.equations import stacked
from yota.tracing.implementations import records
from yota.tracing.methods import is_traced
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


def _double(trace: Trace, a: Any) -> Any:
    """``a`` in double precision, in which some functions compute whatever they are given."""
    a = trace.traced(a)
    return a.astype(np.result_type(a.dtype, float), copy=False)


@records("scipy.linalg", "expm")
def _exponential(trace: Trace, A: Any) -> Any:
    a = trace.traced(A)
    a = a if a.ndim else _double(trace, a)
    a = np.atleast_2d(a)
    a = a if a.dtype.kind in "fc" else a.astype(float)
    known = trace.registry.primitive("expm")
    return stacked(lambda each: trace.apply(known, (each,)), (a,))


@records("scipy.linalg", "expm_frechet")
def _exponential_along(trace: Trace, A: Any, E: Any, method: Any, compute_expm: bool) -> Any:
    a, e = (_double(trace, each) for each in (A, E))
    along = trace.apply(trace.registry.primitive("_expm_slope"), (a, e))
    return (_exponential(trace, a), along) if compute_expm else along


@records("scipy.linalg", "convolution_matrix")
def _convolution_matrix(trace: Trace, a: Any, n: int, mode: str = "full") -> Any:
    a = trace.traced(a)
    if n <= 0 or mode not in ("full", "valid", "same"):
        raise ValueError("n must be a positive integer, and mode 'full', 'valid' or 'same'")
    extent = a.shape[-1]
    places = np.arange(extent + n - 1)[:, None] - np.arange(n)[None, :]
    inside = (places >= 0) & (places < extent)
    whole = np.where(inside, a[..., np.where(inside, places, 0)], a.dtype.type(0))
    cut = {"full": 0, "same": min(n, extent) - 1, "valid": 2 * (min(n, extent) - 1)}[mode]
    return whole[..., cut // 2 : whole.shape[-2] - (cut - cut // 2), :]


def _toeplitz(trace: Trace, c_or_cr: Any) -> Any:
    module = sys.modules["scipy.linalg"]
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return module.toeplitz(trace.traced(c)) if r is None else module.toeplitz(trace.traced(c), r)


@records("scipy.linalg", "solve_toeplitz")
def _solve_toeplitz(trace: Trace, c_or_cr: Any, b: Any) -> Any:
    return np.linalg.solve(_toeplitz(trace, c_or_cr), trace.traced(b))


@records("scipy.linalg", "signm")
def _sign(trace: Trace, A: Any) -> Any:
    """By the root of the square, which has the sign for its other factor (Higham 2008, theorem 5.1)."""
    a = _double(trace, A)
    root = trace.apply(trace.registry.primitive("sqrtm"), (np.matmul(a, a),))
    return np.linalg.solve(root, a)


@records("scipy.linalg", "fractional_matrix_power")
def _fractional_power(trace: Trace, A: Any, t: Any) -> Any:
    a = _double(trace, A)
    if not is_traced(t) and t == int(t):
        return np.linalg.matrix_power(a, int(t))
    return _exponential(trace, t * trace.apply(trace.registry.primitive("logm"), (a,)))


@records("scipy.linalg", "funm")
def _of_eigenvalues(trace: Trace, A: Any, func: Any) -> Any:
    """Of a matrix that has as many eigenvectors as rows."""
    a = _double(trace, A)
    values, vectors = np.linalg.eig(a)
    found = np.matmul(vectors * func(values), np.linalg.inv(vectors))
    return np.real(found) if found.dtype.kind == "c" and a.dtype.kind != "c" else found
