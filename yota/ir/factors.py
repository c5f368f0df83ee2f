"""Functions of numpy.linalg in a form whose types do not depend on values; each needs nothing but `np`."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["eig", "lstsq_solution"]


def eig(a: Any) -> tuple[Any, Any]:
    """Eigenvalues and eigenvectors of a matrix, complex in any case."""
    values, vectors = np.linalg.eig(a)
    dtype = np.result_type(values, vectors, np.complex64)
    return values.astype(dtype, copy=False), vectors.astype(dtype, copy=False)


def lstsq_solution(a: Any, b: Any, *, rcond: float) -> Any:
    """The least-squares solution of smallest norm."""
    return np.linalg.lstsq(a, b, rcond)[0]
