"""Functions of numpy.linalg whose result types do not depend on values; each needs only `np`."""

from __future__ import annotations

from typing import Any

import numpy as np


def cofactors(a: Any) -> Any:
    """The cofactor of each element of a matrix, also of singular ones."""
    try:
        return np.linalg.det(a)[..., None, None] * np.swapaxes(np.linalg.inv(a), -1, -2)
    except np.linalg.LinAlgError:
        u, s, vh = np.linalg.svd(a)
    others = [np.prod(np.delete(s, each, -1), axis=-1) for each in range(s.shape[-1])]
    signed = (np.linalg.det(u) * np.linalg.det(vh))[..., None] * np.stack(others, -1)
    # Cofactor matrices multiply; the cofactor matrix of a unitary factor is its conjugate, times its determinant.
    return np.matmul(np.conjugate(u) * signed[..., None, :], np.conjugate(vh))


def eig(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a matrix, always complex."""
    values, vectors = np.linalg.eig(a)
    dtype = np.result_type(values, vectors, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def full_qr(a: Any) -> tuple[Any, Any]:
    """The factors with as many columns of Q as rows."""
    q, r = np.linalg.qr(a, mode="complete")
    return q, r


def full_svd(a: Any) -> tuple[Any, Any]:
    """All singular vectors, from the left and from the right."""
    u, _, vh = np.linalg.svd(a, full_matrices=True)
    return u, vh


def lstsq_solution(a: Any, b: Any, *, rcond: float) -> Any:
    """The least-squares solution of smallest norm."""
    return np.linalg.lstsq(a, b, rcond)[0]
