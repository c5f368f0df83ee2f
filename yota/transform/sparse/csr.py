"""Access to scipy.sparse: matrices in CSR format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from yota.errors import ArgumentError

_Places: TypeAlias = "Sequence[int] | np.ndarray"


def library() -> Any:
    """``scipy.sparse``."""
    try:
        import scipy.sparse
    except ImportError:
        raise ArgumentError("sparse=True gives matrices of scipy.sparse; install it: pip install scipy") from None
    return scipy.sparse


def csgraph() -> Any:
    """``scipy.sparse.csgraph``."""
    import scipy.sparse.csgraph

    return scipy.sparse.csgraph


@dataclass(frozen=True, slots=True, eq=False)
class CompressedRows:
    """Positions of the entries of a sparse matrix, in CSR format.

    columns: the column of each entry, row by row.
    starts: start of each row among the entries, and the end of the last row.
    """

    shape: tuple[int, int]
    columns: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, rows: _Places, columns: _Places, shape: tuple[int, int]) -> CompressedRows:
        """The positions of entries at ``rows`` and ``columns``, which are sorted."""
        starts = np.searchsorted(rows, np.arange(shape[0] + 1))
        kind = np.int32 if max(len(columns), *shape) < 1 << 31 else np.int64
        return cls(shape, np.asarray(columns, kind), starts.astype(kind))

    def matrix(self, data: Any) -> Any:
        """A ``scipy.sparse.csr_array`` of the entries ``data``, with its own copy of the pattern.

        >>> import numpy as np
        >>> CompressedRows.of([0, 2], [1, 0], (3, 2)).matrix(np.array([1.0, 2.0])).toarray()
        array([[0., 1.],
               [0., 0.],
               [2., 0.]])
        """
        return library().csr_array((data, self.columns.copy(), self.starts.copy()), shape=self.shape)
