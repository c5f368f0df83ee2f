"""The door to scipy.sparse: matrices by compressed rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from yota.errors import ArgumentError

__all__ = ["compressed_rows"]


def compressed_rows(data: Any, rows: Sequence[int], columns: Sequence[int], shape: tuple[int, int]) -> Any:
    """A ``scipy.sparse.csr_array`` of the entries ``data`` at ``rows`` and ``columns``, which are in order.

    Examples
    --------
    >>> import numpy as np
    >>> compressed_rows(np.array([1.0, 2.0]), [0, 2], [1, 0], (3, 2)).toarray()
    array([[0., 1.],
           [0., 0.],
           [2., 0.]])
    """
    try:
        from scipy.sparse import csr_array
    except ImportError:
        raise ArgumentError("sparse=True gives matrices of scipy.sparse; install it: pip install scipy") from None
    starts = np.searchsorted(rows, np.arange(shape[0] + 1)).astype(np.int32)
    return csr_array((data, np.array(columns, np.int32), starts), shape=shape)
