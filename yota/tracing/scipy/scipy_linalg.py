"""Functions and systems of equations of scipy.linalg: by their rules, or as the NumPy functions they amount to."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from yota.tracing.forms import Trace, is_traced, is_tracer, np, records
from yota.tracing.numpy.linalg import hermitian, of_definite

_KINDS = {
    "general": "gen",
    "symmetric": "sym",
    "hermitian": "her",
    "positive definite": "pos",
    "lower triangular": "lower",
    "upper triangular": "upper",
}


def stacked(form: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """``form`` of matrices, for each of those that stacks of them hold."""
    lead = np.broadcast_shapes(*(each.shape[:-2] for each in arrays))
    if not lead:
        return form(*arrays)
    whole = [np.broadcast_to(each, lead + each.shape[-2:]) for each in arrays]
    found = [form(*(each[place] for each in whole)) for place in itertools.product(*map(range, lead))]
    if not isinstance(found[0], tuple):
        return _joined(found, lead)
    parts = [_joined(each, lead) for each in zip(*found, strict=True)]
    kind: Any = type(found[0])
    return kind(*parts) if hasattr(kind, "_fields") else tuple(parts)


def _joined(found: Sequence[Any], lead: tuple[int, ...]) -> Any:
    whole = np.stack(found)
    return np.reshape(whole, lead + whole.shape[1:])


def of_each(form: Callable[..., Any]) -> Callable[..., Any]:
    """``form`` of one matrix of floating-point numbers, for each of those that a stack of them holds too."""

    @functools.wraps(form)
    def call(trace: Trace, a: Any, **keywords: Any) -> Any:
        def one(each: Any) -> Any:
            return form(trace, matrix(trace, form.__name__[1:], each), **keywords)

        a = trace.traced(a)
        return stacked(one, (a,)) if a.ndim > 2 else one(a)

    return call


def matrix(trace: Trace, name: str, a: Any) -> Any:
    """One matrix of floating-point numbers."""
    a = trace.traced(a)
    if a.ndim != 2 or not a.size:
        raise trace.unrecorded(f"scipy.linalg.{name} of anything but one matrix", "Write a loop.")
    return a if a.dtype.kind in "fc" else a.astype(float)


@records("scipy.linalg", "solve")
def _solve(trace: Trace, a: Any, b: Any, lower: bool, assume_a: str | None, transposed: bool) -> Any:
    a, b = np.atleast_2d(trace.traced(a)), np.atleast_1d(trace.traced(b))
    a = _assumed(trace, "solve", a, assume_a, lower)
    found = np.linalg.solve(np.swapaxes(a, -1, -2) if transposed else a, b)
    return of_definite(a, found) if _KINDS.get(assume_a or "gen", assume_a) == "pos" else found


@records("scipy.linalg", "inv")
def _inv(trace: Trace, a: Any, assume_a: str | None = None, lower: bool = False) -> Any:
    a = _assumed(trace, "inv", trace.traced(a), assume_a, lower)
    found = np.linalg.inv(a)
    return of_definite(a, found) if _KINDS.get(assume_a or "gen", assume_a) == "pos" else found


def _assumed(trace: Trace, name: str, a: Any, kind: str | None, lower: bool) -> Any:
    """``a`` as it is read under an assumption: of a symmetric matrix one triangle."""
    kind = _KINDS.get(kind or "gen", kind)
    if kind in (None, "gen"):
        return a
    if kind in ("lower", "upper"):
        return (np.tril if kind == "lower" else np.triu)(a)
    if kind in ("her", "pos") or (kind == "sym" and a.dtype.kind != "c"):
        return hermitian(trace, a, lower)
    if kind == "diagonal":
        return np.triu(np.tril(a))
    if kind == "tridiagonal":
        return np.triu(np.tril(a, 1), -1)
    raise trace.unrecorded(f"scipy.linalg.{name} with assume_a={kind!r}", "Leave it out.")


@records("scipy.linalg", "lstsq")
def _lstsq(trace: Trace, a: Any, b: Any, cond: Any, lapack_driver: Any) -> Any:
    a, b = trace.traced(a), trace.traced(b)
    if a.ndim != 2:
        raise trace.unrecorded("scipy.linalg.lstsq of stacked matrices", "Write a loop.")
    cutoff = float(np.finfo(np.result_type(a.dtype, np.float32)).eps) if cond is None else float(cond)
    found, residuals, rank, singular = np.linalg.lstsq(a, b, cutoff)
    full = residuals.size and b.ndim == 1
    return found, residuals[0] if full else residuals, rank, None if lapack_driver == "gelsy" else singular


@records("scipy.linalg", "norm")
def _norm(trace: Trace, a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    return np.linalg.norm(trace.traced(a), ord, axis, keepdims)


@records("scipy.linalg", "det")
def _det(trace: Trace, a: Any) -> Any:
    a = trace.traced(a)
    return np.linalg.det(a.astype(np.result_type(a.dtype, float), copy=False))


@records("scipy.linalg", "solve_triangular")
def _solve_triangular(
    trace: Trace,
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    **_: Any,
) -> Any:
    if overwrite_b and is_tracer(b) and b.ndim == 1:
        # Code may rely on that the solution stands there.
        b[...] = _solve_triangular(trace, a, b, trans, lower, unit_diagonal)
        return b
    a, b = trace.traced(a), trace.traced(b)
    if a.ndim > 2 and b.ndim == 1:
        b = np.broadcast_to(b[:, None], (*a.shape[:-1], 1))
        return _solve_triangular(trace, a, b, trans, lower, unit_diagonal)[..., 0]
    if a.ndim != 2 or b.ndim not in (1, 2):
        return stacked(lambda a, b: _solve_triangular(trace, a, b, trans, lower, unit_diagonal), (a, b))
    kind = {"N": 0, "T": 1, "C": 2}.get(trans, trans)
    if kind:
        a, lower = (a.T if kind == 1 else np.conjugate(a.T)), not lower
    return trace.ruled("solve_triangular", a, b, lower=bool(lower), unit_diagonal=bool(unit_diagonal))


@records("scipy.linalg", "cholesky")
def _cholesky(trace: Trace, a: Any, lower: bool = False) -> Any:
    """SciPy reads the upper triangle unless told otherwise, NumPy the lower one."""
    a = np.atleast_2d(trace.traced(a))
    return np.linalg.cholesky(a) if lower else _adjoint(np.linalg.cholesky(_adjoint(a)))


def _adjoint(a: Any) -> Any:
    return np.conjugate(np.swapaxes(a, -1, -2))


@records("scipy.linalg", "cho_factor")
def _cho_factor(trace: Trace, a: Any, lower: bool = False) -> Any:
    """The other triangle is that of the matrix, as LAPACK leaves it."""
    a = trace.traced(a)
    return _cholesky(trace, a, lower) + (np.triu(a, 1) if lower else np.tril(a, -1)), lower


@records("scipy.linalg", "logm", "sqrtm", named=True)
def _square(name: str, trace: Trace, A: Any) -> Any:
    return stacked(lambda each: trace.ruled(name, each), (trace.traced(A),))


@records("scipy.linalg", "toeplitz")
def _toeplitz(trace: Trace, c: Any, r: Any = None) -> Any:
    c = _vector(trace, "toeplitz", c)
    r = np.conjugate(c) if r is None else _vector(trace, "toeplitz", r)
    values = np.concatenate([np.flip(c), r[1:]])
    places = np.arange(c.size - 1, -1, -1)[:, None] + np.arange(r.size)[None, :]
    return values[places]


def _vector(trace: Trace, name: str, c: Any) -> Any:
    c = np.atleast_1d(trace.traced(c))
    if c.ndim > 1:
        # Some versions of SciPy flatten such, others take them for batches.
        raise trace.unrecorded(f"scipy.linalg.{name} of arrays with several axes", "Pass vectors.")
    return c


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
    return stacked(lambda each: trace.ruled("expm", each), (a,))


@records("scipy.linalg", "expm_frechet")
def _exponential_along(trace: Trace, A: Any, E: Any, method: Any, compute_expm: bool) -> Any:
    a, e = (_double(trace, each) for each in (A, E))
    along = trace.ruled("_expm_slope", a, e)
    return (_exponential(trace, a), along) if compute_expm else along


@records("scipy.linalg", "solve_toeplitz")
def _solve_toeplitz(trace: Trace, c_or_cr: Any, b: Any) -> Any:
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    return np.linalg.solve(_toeplitz(trace, c, r), trace.traced(b))


@records("scipy.linalg", "signm")
def _sign(trace: Trace, A: Any) -> Any:
    """By the root of the square, which has the sign for its other factor (Higham 2008, theorem 5.1)."""
    a = _double(trace, A)
    root = trace.ruled("sqrtm", np.matmul(a, a))
    return np.linalg.solve(root, a)


@records("scipy.linalg", "fractional_matrix_power")
def _fractional_power(trace: Trace, A: Any, t: Any) -> Any:
    a = _double(trace, A)
    if not is_traced(t) and t == int(t):
        return np.linalg.matrix_power(a, int(t))
    return _exponential(trace, t * trace.ruled("logm", a))


@records("scipy.linalg", "funm")
def _of_eigenvalues(trace: Trace, A: Any, func: Any) -> Any:
    """Of a matrix that has as many eigenvectors as rows."""
    a = _double(trace, A)
    values, vectors = np.linalg.eig(a)
    found = np.matmul(vectors * func(values), np.linalg.inv(vectors))
    return np.real(found) if found.dtype.kind == "c" and a.dtype.kind != "c" else found


@records("scipy.linalg", "matrix_balance")
def _balance(trace: Trace, A: Any, permute: bool, scale: bool) -> Any:
    """By powers of two and an order of rows, which do not change with the matrix."""
    a = trace.traced(A)
    turn = trace.ruled("_balance", a, permute=bool(permute), scale=bool(scale))[1]
    return np.linalg.solve(turn, np.matmul(a, turn)), turn


@records("scipy.linalg", "solve_continuous_lyapunov", "solve_lyapunov", "solve_sylvester", named=True)
def _sylvester(name: str, trace: Trace, a: Any, *rest: Any) -> Any:
    """SciPy computes no solution for real factors and a complex right side."""
    *factors, q = (trace.traced(each) for each in (a, *rest))
    complexes = [each.dtype.kind == "c" for each in factors]
    if not all(complexes) and (any(complexes) or q.dtype.kind == "c"):
        raise trace.unrecorded(
            f"scipy.linalg.{name} of real matrices and complex ones, which SciPy gets wrong,", "Pass all as complex."
        )
    return trace.ruled("solve_sylvester" if len(factors) == 2 else "solve_continuous_lyapunov", *factors, q)


@records("scipy.linalg", "solve_continuous_are", "solve_discrete_are", named=True)
def _riccati(name: str, trace: Trace, a: Any, b: Any, q: Any, r: Any) -> Any:
    """SciPy's solution, and two of Newton's steps, which have its derivatives (Kleinman 1968)."""
    a, b, q, r = (np.atleast_2d(trace.traced(each)) for each in (a, b, q, r))
    # With an input for each state, there is a solution for any sizes of identity matrices.
    more = max(a.shape[0] - b.shape[1], 0)
    inputs = np.pad(b, ((0, 0), (0, more)))
    weights = np.pad(r, ((0, more), (0, more))) + np.diag([0.0] * b.shape[1] + [1.0] * more)
    kind = name.split("_")[1]
    found = trace.ruled(f"_{kind}_riccati", a, inputs, q, weights)
    solve = getattr(sys.modules["scipy.linalg"], f"solve_{kind}_lyapunov")
    back = np.conjugate(b.T)
    for _ in range(2):
        if kind == "continuous":
            gain = np.linalg.solve(r, back @ found)
        else:
            gain = np.linalg.solve(r + back @ found @ b, back @ found @ a)
        cost = q + np.conjugate(gain.T) @ r @ gain
        found = solve(np.conjugate((a - b @ gain).T), -cost if kind == "continuous" else cost)
    return found
