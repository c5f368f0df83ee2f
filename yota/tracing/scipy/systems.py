"""Systems of linear equations of sparse matrices, as one op each: by factors and by iteration."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from yota.ir.linear_solvers import Direct, Factored, Iterative
from yota.tracing.forms import Trace, current, is_traced, is_tracer, np, original, paused, records
from yota.tracing.scipy.sparsetools import constant, pattern, rows_of

_SUPERLU = "scipy.sparse.linalg._dsolve._superlu"


def _named(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in (options or {}).items())


def system(trace: Trace, solver: Any, data: Any, b: Any, places: tuple[Any, Any], transposed: bool) -> Any:
    """The solution of the system with ``data`` at ``places``, its rows and columns."""
    heads, tails = (constant(trace, each) for each in places)
    return trace.ruled("sparse_solve", data, b, heads, tails, solver=solver, transposed=transposed)


@records(_SUPERLU, "gssv")
def _solve(
    trace: Trace, n: int, nnz: int, data: Any, indices: Any, pointers: Any, b: Any, csc: int, options: Any = None
) -> tuple[Any, int]:
    """A matrix in compressed rows is the transpose of one in compressed columns."""
    major = rows_of(pattern(trace, pointers))
    minor = pattern(trace, indices)[: len(major)]
    places = (minor, major) if csc else (major, minor)
    return system(trace, Direct(_named(options)), data[: len(major)], b, places, not csc), 0


@records(_SUPERLU, "gstrf", always=True)
def _factor(
    trace: Trace, n: int, nnz: int, data: Any, indices: Any, pointers: Any, *, options: Any = None, **kind: Any
) -> Any:
    if kind.get("ilu"):
        if is_traced(data):
            raise trace.unrecorded("scipy.sparse.linalg.spilu of traced numbers", "Use splu, or plain numbers.")
        return original(sys.modules[_SUPERLU].gstrf)(n, nnz, data, indices, pointers, options=options, **kind)
    return _Factors(trace, n, data, indices, pointers, Direct(_named(options), raises=True))


@records("scipy.sparse.linalg", "spsolve")
def _spsolve(trace: Trace, A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """All elements are in the pattern of the solution for a sparse matrix."""
    sparse = sys.modules["scipy.sparse"]
    own = original(sparse.linalg.spsolve)
    if not sparse.issparse(b) or b.ndim < 2 or b.shape[1] == 1:
        return own(A, b, permc_spec, use_umfpack)
    form = type(A) if sparse.issparse(A) and A.format in ("csc", "csr") else sparse.csc_array
    return form(own(A, b.toarray(), permc_spec, use_umfpack))


@records("scipy.sparse.linalg", "spsolve_triangular")
def _triangular(trace: Trace, A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False) -> Any:
    sparse = sys.modules["scipy.sparse"]
    diagonal = A.diagonal()
    if unit_diagonal:
        A = A + sparse.diags_array(1.0 - diagonal)
    elif bool(np.any(diagonal == 0)):
        raise np.linalg.LinAlgError("A is singular: zero entry on diagonal.")
    return sparse.linalg.spsolve(sparse.csc_array(A), b, permc_spec="NATURAL")


class _Factors:
    """SuperLU's object of a matrix while a function is traced."""

    def __init__(self, trace: Trace, n: int, data: Any, indices: Any, pointers: Any, solver: Direct) -> None:
        self.shape = (n, n)
        self._major = rows_of(pattern(trace, pointers))
        self._minor = pattern(trace, indices)[: len(self._major)]
        self._data, self._solver, self._trace = data[: len(self._major)], solver, trace
        plain = self._data._value() if is_tracer(self._data) else self._data
        with paused():
            solver(plain, np.zeros(n, plain.dtype), self._minor, self._major, False)

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """See `scipy.sparse.linalg.SuperLU.solve`."""
        trace = current() or self._trace
        data = np.conjugate(self._data) if trans == "H" else self._data
        places = (self._minor, self._major) if trans == "N" else (self._major, self._minor)
        return system(trace, self._solver, data, rhs, places, trans != "N")

    def __getattr__(self, name: str) -> Any:
        raise self._trace.refuse(f"{name} of SuperLU's object is not recorded.", "Use its solve().")


def solved_by(factors: Any) -> Callable[..., Any]:
    """What records ``solve`` of SuperLU's object from outside of the function."""

    def solve(rhs: Any, trans: str = "N") -> Any:
        trace = current()
        if trace is None or not is_traced(rhs):
            return factors.solve(rhs, trans)
        return trace.ruled("linear_map", rhs, map=Factored(factors, trans))

    return solve


def iteration(trace: Trace, A: Any, b: Any) -> tuple[Any, Any, tuple[Any, Any], str]:
    """Of a system that an iteration solves: the numbers, the right-hand side, the places and the form of the matrix."""
    sparse = sys.modules["scipy.sparse"]
    form = A.format if sparse.issparse(A) else "dense"
    matrix = (A if sparse.issparse(A) else sparse.csc_array(trace.traced(A))).tocsc()
    matrix.sum_duplicates()
    places = pattern(trace, matrix.indices), rows_of(pattern(trace, matrix.indptr))
    kind = np.result_type(matrix.dtype, b.dtype, np.float32)
    right = np.ravel(b).astype(kind, copy=False)
    return trace.traced(matrix.data).astype(kind, copy=False), right, places, form


def iterative(name: str, trace: Trace, M: Any, options: Mapping[str, Any], form: str = "") -> Iterative:
    """The iteration with its options; what it cannot have at each run of a tape is refused."""
    products = M.matvec(np.ones(M.shape[1])) if hasattr(M, "matvec") else getattr(M, "data", None)
    if is_traced([M, products]):
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} with a traced M", "Leave M out, or pass a plain one.")
    options = {key: value for key, value in options.items() if value is not None}
    if options.pop("callback", None) is not None:
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} with a callback", "Leave it out.")
    # The solution depends on no tolerance; the guard keeps that of the recording.
    return Iterative(name, _named({key: _guarded(trace, each) for key, each in options.items()}), M, form)


def _guarded(trace: Trace, value: Any) -> Any:
    if not is_tracer(value):
        return value
    number = float(value._value())
    trace.decide(value._current(), "float", number)
    return number


@records(
    "scipy.sparse.linalg._eigen.arpack.arpack", "_SymmetricArpackParams.iterate", "_UnsymmetricArpackParams.iterate"
)
def _iterate(trace: Trace, self: Any) -> None:
    raise trace.unrecorded("an iteration of ARPACK on traced numbers", "Use numpy.linalg.eigh of A.toarray().")


@records("scipy.sparse.linalg", "inv")
def _inverse(trace: Trace, A: Any) -> Any:
    """All elements are in the pattern of the inverse."""
    return type(A)(sys.modules["scipy.sparse.linalg"].spsolve(A.tocsc(), np.eye(A.shape[0])))
