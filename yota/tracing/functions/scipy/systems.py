"""Systems of linear equations as one op each: sparse ones by factors and iteration, banded ones by LAPACK's names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import Any

from yota.ir.catalog import original
from yota.ir.linear_solvers import Banded, Direct, Factored, Iterative
from yota.tracing.functions.linalg import hermitian
from yota.tracing.functions.scipy.factors import chosen, turned_like
from yota.tracing.functions.scipy.sparsetools import constant, pattern, rows_of
from yota.tracing.implementations import records
from yota.tracing.methods import is_traced, is_tracer
from yota.tracing.state import current, paused
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

_SUPERLU = "scipy.sparse.linalg._dsolve._superlu"


def _named(options: Mapping[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in (options or {}).items())


def system(trace: Trace, solver: Any, data: Any, b: Any, places: tuple[Any, Any], transposed: bool) -> Any:
    """The solution of the system with ``data`` at ``places``, its rows and columns."""
    known = trace.registry.primitive("sparse_solve")
    heads, tails = (constant(trace, each) for each in places)
    return trace.apply(known, (data, b, heads, tails), {"solver": solver, "transposed": transposed})


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


@records(_SUPERLU, "gstrs")
def _triangular(trace: Trace, *_: Any) -> Any:
    raise trace.unrecorded("scipy.sparse.linalg.spsolve_triangular", "Use spsolve.")


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
        return trace.apply(trace.registry.primitive("linear_map"), (rhs,), {"map": Factored(factors, trans)})

    return solve


def _iteration(
    name: str, trace: Trace, A: Any, b: Any, x0: Any = None, *, M: Any = None, **options: Any
) -> tuple[Any, int]:
    sparse = sys.modules["scipy.sparse"]
    if not (sparse.issparse(A) or isinstance(A, np.ndarray)):
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} of an operator", "Pass a matrix.")
    if is_traced([M, getattr(M, "data", None)]):
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} with a traced M", "Leave M out, or pass a plain one.")
    options = {key: value for key, value in options.items() if value is not None}
    if options.pop("callback", None) is not None:
        raise trace.unrecorded(f"scipy.sparse.linalg.{name} with a callback", "Leave it out.")
    # The solution depends on no tolerance; the guard keeps that of the recording.
    options = {key: value if not is_tracer(value) else _guarded(trace, value) for key, value in options.items()}
    form = A.format if sparse.issparse(A) else "dense"
    matrix = (A if sparse.issparse(A) else sparse.csc_array(trace.traced(A))).tocsc()
    matrix.sum_duplicates()
    places = pattern(trace, matrix.indices), rows_of(pattern(trace, matrix.indptr))
    b = trace.traced(b)
    kind = np.result_type(matrix.dtype, b.dtype, np.float32)
    right = np.ravel(b).astype(kind, copy=False)
    solver = Iterative(name, _named(options), M, form)
    found = system(trace, solver, trace.traced(matrix.data).astype(kind, copy=False), right, places, False)
    return np.reshape(found, b.shape), 0


def _guarded(trace: Trace, value: Any) -> float:
    number = float(value._value())
    trace.decide(value._current(), "float", number)
    return number


for _name in ("cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "minres", "qmr", "tfqmr", "gcrotmk"):
    records("scipy.sparse.linalg", _name)(functools.partial(_iteration, _name))


@records(
    "scipy.sparse.linalg._eigen.arpack.arpack", "_SymmetricArpackParams.iterate", "_UnsymmetricArpackParams.iterate"
)
def _iterate(trace: Trace, self: Any) -> None:
    raise trace.unrecorded("an iteration of ARPACK on traced numbers", "Use numpy.linalg.eigh of A.toarray().")


@records("scipy.sparse.linalg", "inv")
def _inverse(trace: Trace, A: Any) -> Any:
    """All elements are in the pattern of the inverse."""
    return type(A)(sys.modules["scipy.sparse.linalg"].spsolve(A.tocsc(), np.eye(A.shape[0])))


_MOST = 2048
"""Rows of a full matrix: what is larger is solved within the band, and factors of it are refused."""


def _full(ab: Any, below: int, above: int) -> Any:
    """The matrix whose diagonals, from number ``above`` over the main one to ``below``, are rows of ``ab``."""
    count = ab.shape[1]
    trace = _trace()
    if count > _MOST:
        raise trace.unrecorded(f"a banded system of {count} rows", f"Take at most {_MOST}.")
    columns = np.arange(count)
    rows = above + columns[:, None] - columns
    inside = (rows >= 0) & (rows <= below + above)
    found = trace.traced(ab)[np.where(inside, rows, 0), np.broadcast_to(columns, rows.shape)]
    return np.where(inside, found, 0.0)


def _band(a: Any, ab: Any, lower: bool) -> Any:
    """Diagonals of a triangular matrix as rows; what lies outside of it stays as it is in ``ab``."""
    count, extent = len(ab), len(a)
    steps, columns = np.arange(count)[:, None], np.arange(extent)
    rows = columns + steps if lower else columns + steps - (count - 1)
    inside = (rows >= 0) & (rows < extent)
    return np.where(inside, a[np.where(inside, rows, 0), np.broadcast_to(columns, rows.shape)], ab)


def _definite(ab: Any, lower: bool) -> Any:
    width = len(ab) - 1
    return _full(ab, width if lower else 0, 0 if lower else width)


def _trace() -> Trace:
    found = current()
    assert found is not None
    return found


def _solved(ab: Any, below: int, above: int, b: Any) -> Any:
    """The solution of a system whose diagonals are rows of ``ab``; a small one is code that a module can hold."""
    trace, count = _trace(), ab.shape[1]
    if count <= _MOST:
        return np.linalg.solve(_full(ab, below, above), b)
    columns = np.repeat(np.arange(count), below + above + 1)
    rows = columns + np.tile(np.arange(-above, below + 1), count)
    inside = np.flatnonzero((rows >= 0) & (rows < count))
    rows, columns = rows[inside], columns[inside]
    data = trace.traced(ab)[constant(trace, above + rows - columns), constant(trace, columns)]
    kind = np.result_type(data.dtype, trace.traced(b).dtype)
    data, right = data.astype(kind, copy=False), trace.traced(b).astype(kind, copy=False)
    return system(trace, Banded(int(below), int(above)), data, right, (rows, columns), False)


def _gbsv(kl: int, ku: int, ab: Any, b: Any, *_: Any, **__: Any) -> Any:
    return ab, None, _solved(ab[kl:], kl, ku, b), 0


def _gtsv(dl: Any, d: Any, du: Any, b: Any, *_: Any, **__: Any) -> Any:
    zero = np.zeros(1)
    ab = np.stack([np.concatenate([zero, du]), d, np.concatenate([dl, zero])])
    return None, d, du, _solved(ab, 1, 1, b), 0


def _ptsv(d: Any, e: Any, b: Any, *_: Any, **__: Any) -> Any:
    # The diagonal below the main one is given.
    return d, e, _gtsv(e, d, np.conjugate(e), b)[3], 0


def _pbsv(ab: Any, b: Any, lower: bool = False, **_: Any) -> Any:
    return ab, _solved(_whole(ab, lower), len(ab) - 1, len(ab) - 1, b), 0


def _whole(ab: Any, lower: bool) -> Any:
    """All diagonals of a Hermitian matrix as rows, of those on one side; of the main one real parts count."""
    width = len(ab) - 1
    main = ab[0 if lower else width]
    main = np.real(main).astype(main.dtype)[None]
    if not width:
        return main
    own = ab[1:] if lower else ab[:width]
    # The diagonal at the same distance on the other side holds the conjugates, elsewhere.
    steps = range(width, 0, -1) if lower else range(1, width + 1)
    other = np.stack([_shifted(np.conjugate(ab[each if lower else width - each]), each, lower) for each in steps])
    return np.concatenate([other, main, own] if lower else [own, main, other])


def _shifted(row: Any, step: int, later: bool) -> Any:
    zeros = np.zeros(step, row.dtype)
    return np.concatenate([zeros, row[:-step]] if later else [row[step:], zeros])


def _pbtrf(ab: Any, lower: bool = False, **_: Any) -> Any:
    full = _definite(ab, lower)
    full = full if lower else np.conjugate(full.T)
    factor = np.linalg.cholesky(full)
    return _band(factor if lower else np.conjugate(factor.T), ab, lower), 0


def _pbtrs(ab: Any, b: Any, lower: bool = False, **_: Any) -> Any:
    factor = _definite(ab, lower)
    other = np.conjugate(factor.T)
    first, last = (factor, other) if lower else (other, factor)
    return np.linalg.solve(last, np.linalg.solve(first, b)), 0


_KNOWN: dict[str, Callable[..., Any]] = {
    "gbsv": _gbsv,
    "gtsv": _gtsv,
    "ptsv": _ptsv,
    "pbsv": _pbsv,
    "pbtrf": _pbtrf,
    "pbtrs": _pbtrs,
}
"""By LAPACK's names without the letter of the dtype; each has SciPy's parameters and results."""


@records("scipy.linalg", "get_lapack_funcs")
def _get_lapack_funcs(trace: Trace, names: Any, arrays: Any = (), **_: Any) -> Any:
    wanted = (names,) if isinstance(names, str) else names
    kind = np.result_type(*(each.dtype for each in arrays), np.float32)
    found = [_of_dtype(trace, each, kind) for each in wanted]
    return found[0] if isinstance(names, str) else found


def _of_dtype(trace: Trace, name: str, kind: Any) -> Callable[..., Any]:
    def call(*args: Any, **keywords: Any) -> Any:
        if name not in _KNOWN:
            raise trace.unrecorded(f"LAPACK's {name}, which is compiled code,", "")
        return _KNOWN[name](*args, **keywords)

    call.dtype = kind  # type: ignore[attr-defined]
    call.typecode = kind.char  # type: ignore[attr-defined]
    call.__name__ = name
    return call


@records("scipy.linalg", "eig_banded")
def _of_band(trace: Trace, a_band: Any, lower: bool, eigvals_only: bool, select: Any, select_range: Any) -> Any:
    band = trace.traced(a_band)
    full = hermitian(trace, _definite(band, bool(lower)), bool(lower))
    if eigvals_only:
        values = np.linalg.eigvalsh(full, "L" if lower else "U")
        return values[chosen(values, select, select_range)]
    return _vectors(trace, full, "_band_vectors", (band,), {"lower": bool(lower)}, select, select_range)


@records("scipy.linalg", "eigh_tridiagonal")
def _tridiagonal(trace: Trace, d: Any, e: Any, eigvals_only: bool, select: Any, select_range: Any) -> Any:
    d, e = trace.traced(d), trace.traced(e)
    band = np.stack([d, np.concatenate([e, np.zeros(1, e.dtype)])])
    if eigvals_only:
        return _of_band(trace, band, True, True, select, select_range)
    return _vectors(trace, _definite(band, True), "_tridiagonal_vectors", (d, e), {}, select, select_range)


def _vectors(
    trace: Trace, full: Any, name: str, given: tuple[Any, ...], static: dict[str, Any], select: Any, limits: Any
) -> Any:
    """Eigenvalues and eigenvectors, with the signs that the routine ``name`` gives them."""
    values, vectors = np.linalg.eigh(full)
    kept = chosen(values, select, limits)
    # LAPACK has another routine for all of them, with other signs.
    part = () if select in ("a", "all", 0) else (kept.start, kept.stop - 1)
    static = {**static, "select": "i" if part else "a", "select_range": part or None}
    known = trace.apply(trace.registry.primitive(name), given, static)[1]
    return values[kept], turned_like(vectors[:, kept], known)
