"""Banded systems and matrices of SciPy, Hessenberg forms, and routines of LAPACK and BLAS by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yota.ir.linear_solvers import Banded
from yota.tracing.forms import Trace, current, np, records
from yota.tracing.numpy.linalg import hermitian, of_definite
from yota.tracing.scipy.factorisations import chosen, turned_like
from yota.tracing.scipy.scipy_linalg import matrix
from yota.tracing.scipy.sparsetools import constant
from yota.tracing.scipy.systems import system

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


def _solved(ab: Any, below: int, above: int, b: Any, *, positive: bool = False) -> Any:
    """The solution of a system whose diagonals are rows of ``ab``; a small one is code that a module can hold."""
    trace, count = _trace(), ab.shape[1]
    if count <= _MOST:
        full = _full(ab, below, above)
        found = np.linalg.solve(full, b)
        return of_definite(full, found) if positive else found
    columns = np.repeat(np.arange(count), below + above + 1)
    rows = columns + np.tile(np.arange(-above, below + 1), count)
    inside = np.flatnonzero((rows >= 0) & (rows < count))
    rows, columns = rows[inside], columns[inside]
    data = trace.traced(ab)[constant(trace, above + rows - columns), constant(trace, columns)]
    kind = np.result_type(data.dtype, trace.traced(b).dtype)
    data, right = data.astype(kind, copy=False), trace.traced(b).astype(kind, copy=False)
    return system(trace, Banded(int(below), int(above), positive), data, right, (rows, columns), False)


def _tridiagonal_solved(below: Any, main: Any, above: Any, b: Any, *, positive: bool = False) -> Any:
    zero = np.zeros(1)
    ab = np.stack([np.concatenate([zero, above]), main, np.concatenate([below, zero])])
    return _solved(ab, 1, 1, b, positive=positive)


def _positive_solved(ab: Any, lower: bool, b: Any) -> Any:
    return _solved(_whole(ab, lower), len(ab) - 1, len(ab) - 1, b, positive=True)


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


def _potrs(c: Any, b: Any, lower: bool = False, **_: Any) -> Any:
    factor = (np.tril if lower else np.triu)(c)
    other = np.conjugate(factor.T)
    first, last = (factor, other) if lower else (other, factor)
    return np.linalg.solve(last, np.linalg.solve(first, b)), 0


_KNOWN: dict[str, Callable[..., Any]] = {
    "gbsv": lambda kl, ku, ab, b, *_, **__: (ab, None, _solved(ab[kl:], kl, ku, b), 0),
    "gtsv": lambda dl, d, du, b, *_, **__: (None, d, du, _tridiagonal_solved(dl, d, du, b), 0),
    # The diagonal below the main one is given.
    "ptsv": lambda d, e, b, *_, **__: (d, e, _tridiagonal_solved(e, d, np.conjugate(e), b, positive=True), 0),
    "pbsv": lambda ab, b, lower=False, **_: (ab, _positive_solved(ab, lower, b), 0),
    "pbtrf": _pbtrf,
    "pbtrs": lambda ab, b, lower=False, **_: _potrs(_definite(ab, lower), b, lower),
    "potrs": _potrs,
    "nrm2": np.linalg.norm,
    "swap": lambda x, y: (np.copy(y), np.copy(x)),
}
"""By the names of LAPACK and BLAS without the letter of the dtype; each has SciPy's parameters and results."""


@records("scipy.linalg", "get_lapack_funcs", "get_blas_funcs")
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
    known = trace.ruled(name, *given, **static)[1]
    return values[kept], turned_like(vectors[:, kept], known)


@records("scipy.linalg", "hessenberg")
def _hessenberg(trace: Trace, a: Any, calc_q: bool = False) -> Any:
    """By Householder's reflections, as LAPACK has them."""
    h = matrix(trace, "hessenberg", a)
    q: Any = np.eye(len(h), dtype=h.dtype)
    for column in range(len(h) - (1 if h.dtype.kind == "c" else 2)):
        x = h[column + 1 :, column]
        if bool(np.all(x[1:] == 0) & (np.imag(x[0]) == 0)):
            raise trace.refuse(
                "a column of the matrix is reduced already, and the signs of scipy.linalg.hessenberg jump there.",
                "Choose another matrix.",
            )
        turned = -np.copysign(np.linalg.norm(x), np.real(x[0]))
        factor = np.conjugate((turned - x[0]) / turned)
        v = np.concatenate([np.zeros(column + 1), np.ones(1), x[1:] / (x[0] - turned)])
        h = h - factor * v[:, None] * (np.conjugate(v) @ h)
        h, q = (each - np.conjugate(factor) * (each @ v)[:, None] * np.conjugate(v) for each in (h, q))
    h = np.triu(h, -1)
    return (h, q) if calc_q else h
