"""Systems of linear equations of sparse matrices, by SciPy's solvers; factors serve the adjoint too."""

from __future__ import annotations

import importlib
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from yota.errors import DifferentiationError
from yota.ir.callables import original

_LEFT = 1e-2
"""What an iteration may leave of the right-hand side, as a part of it: more is no solution."""
_MOST = 4
"""Of so many matrices factors are kept, each as long as somebody holds the numbers of the matrix."""


@dataclass(frozen=True, slots=True)
class Direct:
    """Factors by SuperLU.

    raises: whether a singular matrix raises; else its solution is not a number.
    """

    options: tuple[tuple[str, Any], ...] = ()
    raises: bool = False

    def __call__(self, data: Any, b: Any, rows: Any, columns: Any, transposed: bool) -> Any:
        """The solution of the system of ``data`` at ``rows`` and ``columns``, sorted by columns, or its transpose."""
        try:
            factors = _kept(self, data, rows, columns, len(b))
        except RuntimeError:
            if self.raises:
                raise
            rank = importlib.import_module("scipy.sparse.linalg").MatrixRankWarning
            warnings.warn("Matrix is exactly singular", rank, stacklevel=2)
            return np.full(b.shape, np.nan, np.result_type(data, b))
        trans = "T" if transposed else "N"
        if np.iscomplexobj(b) and not np.iscomplexobj(data):
            return factors.solve(np.array(b.real), trans) + 1j * factors.solve(np.array(b.imag), trans)
        return factors.solve(np.asarray(b, dtype=data.dtype), trans)

    def step(self, data: Any, rest: Any, rows: Any, columns: Any, largest: float) -> Any:
        """The solution of the transposed system for ``rest``; None where its condition is ``largest``, or worse."""
        count = len(rest)
        most = np.zeros(count)
        np.maximum.at(most, columns, np.abs(data))
        try:
            factors = _kept(self, data, rows, columns, count) if np.all(most) else None
        except RuntimeError:
            factors = None
        if factors is None:
            return None
        scaled = np.abs(data) / most[columns]
        size = np.sqrt(np.max(np.bincount(rows, scaled)) * np.max(np.bincount(columns, scaled)))
        x = np.cos(np.arange(count))
        with np.errstate(all="ignore"):
            for _ in range(3):
                x = x / np.linalg.norm(x)
                x = most * factors.solve(factors.solve((most * x).astype(data.dtype), "T"))
            grown = np.sqrt(np.linalg.norm(x))
        return factors.solve(np.asarray(rest, data.dtype), "T") if size * grown < largest else None

    def factors(self, data: Any, rows: Any, columns: Any, count: int) -> Any:
        """SuperLU's object."""
        kernel = importlib.import_module("scipy.sparse.linalg._dsolve._superlu")
        sparse = importlib.import_module("scipy.sparse")
        pointers = np.zeros(count + 1, dtype=np.intc)
        pointers[1:] = np.cumsum(np.bincount(columns, minlength=count))
        found = [np.ascontiguousarray(data), np.asarray(rows, dtype=np.intc), pointers]
        # While a trace runs, what records stands in the place of the compiled function.
        return original(kernel.gstrf)(
            count, len(data), *found, csc_construct_func=sparse.csc_array, ilu=False, options=dict(self.options)
        )


_factors: list[tuple[Any, Direct, tuple[Any, ...], Any]] = []
_lock = threading.Lock()


def _kept(solver: Direct, data: Any, rows: Any, columns: Any, count: int) -> Any:
    """The factors of a matrix; the same matrix may come again, for an adjoint or at the next call."""
    given = (data, rows, columns)
    with _lock:
        _factors[:] = [entry for entry in _factors if entry[0]() is not None][-_MOST:]
        known = list(_factors)
    for _, own, held, found in known:
        pairs = zip(held, given, strict=True)
        if own == solver and all(one.dtype == other.dtype and np.array_equal(one, other) for one, other in pairs):
            return found
    found = solver.factors(data, rows, columns, count)
    with _lock:
        _factors.append((weakref.ref(data), solver, tuple(map(np.array, given)), found))
    return found


@dataclass(frozen=True, slots=True)
class Banded:
    """Elimination within a band, by LAPACK.

    below, above: how many diagonals there are beside the main one.
    """

    below: int
    above: int
    positive: bool = False

    def __call__(self, data: Any, b: Any, rows: Any, columns: Any, transposed: bool) -> Any:
        """As `Direct`."""
        below, above = (self.above, self.below) if transposed else (self.below, self.above)
        rows, columns = (columns, rows) if transposed else (rows, columns)
        band = np.zeros((below + above + 1, len(b)), data.dtype)
        band[above + rows - columns, columns] = data
        scipy_linalg = importlib.import_module("scipy.linalg")
        if self.positive:
            return original(scipy_linalg.solveh_banded)(band[above:], b, lower=True, check_finite=False)
        solve_banded = original(scipy_linalg.solve_banded)
        return solve_banded((below, above), band, b, check_finite=False)


@dataclass(frozen=True, slots=True, eq=False)
class Iterative:
    """One of SciPy's iterations.

    preconditioner: an approximate inverse, or None.
    """

    name: str
    options: tuple[tuple[str, Any], ...]
    preconditioner: Any
    form: str

    def __call__(self, data: Any, b: Any, rows: Any, columns: Any, transposed: bool) -> Any:
        """As `Direct`."""
        matrix = self.matrix(data, len(b), rows, columns, transposed)
        if b.ndim == 1:
            return self.run(matrix, b, transposed)
        return np.stack([self.run(matrix, column, transposed) for column in b.T], axis=1)

    def matrix(self, data: Any, count: int, rows: Any, columns: Any, transposed: bool) -> Any:
        """The matrix as SciPy was given it, or its transpose."""
        sparse = importlib.import_module("scipy.sparse")
        matrix = sparse.csc_array((data, (rows, columns)), shape=(count, count))
        matrix = matrix.T if transposed else matrix
        return matrix.toarray("C") if self.form == "dense" else matrix.asformat(self.form)

    def attempt(self, matrix: Any, b: Any, transposed: bool) -> tuple[Any, int]:
        """What SciPy gives, whether it converged or not."""
        solver = importlib.import_module("scipy.sparse.linalg")
        near = self.preconditioner
        if near is not None and transposed:
            near = solver.aslinearoperator(near).T
        given = {} if near is None else {"M": near}
        found: tuple[Any, int] = original(getattr(solver, self.name))(matrix, b, **given, **dict(self.options))
        return found

    def run(self, matrix: Any, b: Any, transposed: bool) -> Any:
        """The solution by a matrix or an operator."""
        (found, info), options = self.attempt(matrix, b, transposed), dict(self.options)
        # Of a singular matrix minres gives what leaves least, and does not tell.
        left = np.linalg.norm(matrix @ found - options.get("shift", 0.0) * found - b)
        allowed = max(_LEFT, 10 * options.get("rtol", 0.0)) * np.linalg.norm(b) + 10 * options.get("atol", 0.0)
        if info or not left <= allowed:
            raise unconverged(f"scipy.sparse.linalg.{self.name}", f" (info {info})")
        return found


def unconverged(name: str, how: str = "") -> DifferentiationError:
    """The error for the derivative of an iteration that ended before."""
    return DifferentiationError(
        f"{name} did not converge{how}, and its result has no derivative; "
        "allow more iterations by maxiter, or pass a preconditioner M"
    )


def solve(data: Any, b: Any, heads: Any, tails: Any, *, solver: Any, transposed: bool) -> Any:
    """The solution for a matrix with ``data`` at ``heads``, ``tails``, sorted by columns (rows if ``transposed``)."""
    if heads.strides == (0,):  # its type is asked for, by operands that are no system
        return np.zeros(b.shape, np.result_type(data, b))
    rows, columns = (tails, heads) if transposed else (heads, tails)
    return solver(np.asarray(data), np.asarray(b), rows, columns, transposed)


@dataclass(frozen=True)
class Factored:
    """Solutions by SuperLU's factors of a matrix from outside, as a linear map; if ``conjugated``, by its conjugate."""

    factors: Any
    trans: str = "N"
    conjugated: bool = False

    def __call__(self, x: Any) -> Any:
        """The solution for the right-hand side ``x``."""
        if self.conjugated:
            return np.conjugate(self.factors.solve(np.conjugate(x), self.trans))
        return self.factors.solve(np.ascontiguousarray(x), self.trans)

    @property
    def pull(self) -> Factored:
        """The adjoint map."""
        trans = {"N": "T" if self.conjugated else "H", "H": "N", "T": "N"}[self.trans]
        return Factored(self.factors, trans, self.trans == "T")


def mapped(x: Any, *, map: Callable[[Any], Any]) -> Any:
    """What a linear map gives."""
    return map(x)
