"""Matrix factorisations whose several results are one array, so that an op on a tape has one result.

Each function needs nothing but `np`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["eig_packed", "eigh_packed", "lstsq_solution", "qr_packed", "slogdet_packed", "svd_packed"]


def eigh_packed(a: Any, *, lower: bool = True) -> Any:
    """Eigenvalues of a Hermitian matrix as the first row, eigenvectors as columns below: shape ``(..., m + 1, m)``."""
    values, vectors = np.linalg.eigh(a, "L" if lower else "U")
    return np.concatenate([values[..., None, :].astype(vectors.dtype), vectors], axis=-2)


def eig_packed(a: Any) -> Any:
    """Eigenvalues as the first row, eigenvectors as columns below: shape ``(..., m + 1, m)``, always complex."""
    values, vectors = np.linalg.eig(a)
    packed = np.concatenate([values[..., None, :], vectors], axis=-2)
    return packed.astype(np.result_type(packed, np.complex64), copy=False)


def svd_packed(a: Any) -> Any:
    """Thin factors side by side, ``[U transposed, s, Vh]``: shape ``(..., k, m + 1 + n)``."""
    left, values, right = np.linalg.svd(a, full_matrices=False)
    column = values[..., None].astype(right.dtype)
    return np.concatenate([np.swapaxes(left, -1, -2), column, right], axis=-1)


def qr_packed(a: Any) -> Any:
    """Thin factors side by side, ``[Q transposed, R]``: shape ``(..., k, m + n)``."""
    left, right = np.linalg.qr(a)
    return np.concatenate([np.swapaxes(left, -1, -2), right], axis=-1)


def slogdet_packed(a: Any) -> Any:
    """Sign and logarithm of the absolute value of the determinant: shape ``(..., 2)``."""
    sign, logarithm = np.linalg.slogdet(a)
    return np.stack([sign, np.asarray(logarithm, sign.dtype)], axis=-1)


def lstsq_solution(a: Any, b: Any, *, rcond: float) -> Any:
    """The least-squares solution of smallest norm."""
    return np.linalg.lstsq(a, b, rcond)[0]
