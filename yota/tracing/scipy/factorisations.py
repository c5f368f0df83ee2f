"""Factorisations of scipy.linalg: eigenvalues, singular values, orthogonal and triangular factors, pseudoinverses."""

from __future__ import annotations

from typing import Any

from yota.ir.indexing import GATHER, Slice
from yota.ir.semantics import AccessMap
from yota.tracing.forms import Trace, is_tracer, np, primitive, records
from yota.tracing.numpy.linalg import completed, hermitian, with_zeros
from yota.tracing.scipy.scipy_linalg import matrix, of_each


@records("scipy.linalg", "eigh")
@of_each
def _eigh(
    trace: Trace, a: Any, b: Any, lower: bool, eigvals_only: bool, subset_by_index: Any, subset_by_value: Any
) -> Any:
    kept = ("i", subset_by_index) if subset_by_value is None else ("v", subset_by_value)
    kept = kept if kept[1] is not None else ("a", None)
    if eigvals_only:
        values = _eigvalsh(trace, a, b, lower)
        return values[chosen(values, *kept)]
    if kept[0] != "a":
        raise trace.unrecorded("scipy.linalg.eigh with a subset of eigenvectors", "Select from all of them.")
    if b is not None:
        factor, reduced = _reduced(trace, a, b, lower)
        if reduced.dtype.kind == "c":
            raise trace.unrecorded("scipy.linalg.eigh with b and complex eigenvectors", "Pass eigvals_only=True.")
        half = "L" if lower else "U"
        values, vectors = np.linalg.eigh(reduced, half)
        given = [each.astype(float, copy=False) for each in (a, trace.traced(b))]
        known = trace.ruled("_sygvd", *given, uplo=half)[1]
        vectors = np.linalg.solve(factor.T, vectors)
        return values, vectors * np.sign(np.sum(vectors * known, axis=0)).astype(vectors.dtype, copy=False)
    a = hermitian(trace, a, bool(lower))
    return trace.ruled("linalg_eigh", a, lower=bool(lower))


def chosen(values: Any, select: Any, limits: Any) -> slice:
    """Which of the ascending ``values`` a function of SciPy is asked for: how many that are is a guard."""
    if select in ("a", "all", 0):
        return slice(0, len(values))
    if select in ("i", "index", 2):
        return slice(int(limits[0]), int(limits[1]) + 1)
    first, last = (int(np.count_nonzero(values <= limit)) for limit in limits)
    return slice(first, last)


def turned_like(vectors: Any, known: Any) -> Any:
    """Columns of length 1 with the signs of the same ``known`` ones, that another routine gives."""
    along = np.sum(np.conjugate(vectors) * known, axis=0)
    return vectors * (along / np.abs(along))


def _eigvalsh(trace: Trace, a: Any, b: Any, lower: bool) -> Any:
    if b is None:
        return np.linalg.eigvalsh(a, "L" if lower else "U")
    return np.linalg.eigvalsh(_reduced(trace, a, b, lower)[1])


def _reduced(trace: Trace, a: Any, b: Any, lower: bool) -> tuple[Any, Any]:
    """As by LAPACK: the factor of b = f @ f^H, and f^-1 @ a @ f^-H, which has the eigenvalues of both matrices."""
    factor = np.linalg.cholesky(hermitian(trace, trace.traced(b), bool(lower)))
    half = np.linalg.solve(factor, hermitian(trace, a, bool(lower)))
    return factor, np.linalg.solve(factor, np.conjugate(half.T))


@records("scipy.linalg", "eig")
@of_each
def _eig(trace: Trace, a: Any, right: bool, homogeneous_eigvals: bool, left: bool = False) -> Any:
    """SciPy's eigenvalues are complex in any case; left eigenvectors are those of the conjugate transpose."""
    values, vectors = np.linalg.eig(a)
    found = (vectors,) if right else ()
    if left:
        turned, others = np.linalg.eig(np.conjugate(a.T))
        known = trace.ruled("_left_vectors", a, left=True, right=False)[1]
        place = np.argmin(np.abs(np.conjugate(values)[:, None] - turned[None, :]), axis=1)
        others = rows_of(trace, trace.traced(others).T, place).T
        along = np.real(np.sum(np.conjugate(others) * known, axis=0))
        found = (others * np.where(along < 0, -1.0, 1.0), *found)
    values = values.astype(np.result_type(a.dtype, np.complex64))
    if homogeneous_eigvals:
        values = np.stack([values, np.ones(len(a), values.dtype)])
    return (values, *found) if found else values


@records("scipy.linalg", "eigvals")
@of_each
def _eigvals(trace: Trace, a: Any, b: Any, homogeneous_eigvals: bool) -> Any:
    if b is None:
        return _eig(trace, a, right=False, homogeneous_eigvals=homogeneous_eigvals)
    if homogeneous_eigvals:
        raise trace.unrecorded("scipy.linalg.eigvals with b and homogeneous_eigvals", "Leave one of them out.")
    a, b = matrix(trace, "eigvals", a), matrix(trace, "eigvals", b)
    values = _eig(trace, np.linalg.solve(b, a), right=False, homogeneous_eigvals=False)
    # In the order of LAPACK's routine for two matrices.
    order = trace.ruled("_pencil", a, b)
    return rows_of(trace, values, np.argmin(np.abs(order[:, None] - values[None, :]), axis=1))


@records("scipy.linalg", "svd")
@of_each
def _svd(trace: Trace, a: Any, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        return np.linalg.svdvals(a)
    u, s, vh = trace.ruled("linalg_svd", a, full_matrices=False)
    if full_matrices and a.shape[0] != a.shape[1]:
        left, right = trace.ruled("full_svd", a)
        u, vh = completed(u, left, -1), completed(vh, right, -2)
    return u, s, vh


@records("scipy.linalg", "qr")
@of_each
def _qr(trace: Trace, a: Any, mode: str, pivoting: bool) -> Any:
    if mode not in ("economic", "full", "r"):
        raise trace.unrecorded(f"scipy.linalg.qr with mode={mode!r}", 'Pass mode="economic".')
    q, r, *order = _thin(trace, a, pivoting)
    if mode != "economic" and a.shape[0] > a.shape[1]:
        r = with_zeros(r, a.shape[0])
        if mode == "full":
            q = completed(q, trace.ruled("full_qr", a)[0], -1)
    return (r, *order) if mode == "r" else (q, r, *order)


def _thin(trace: Trace, a: Any, pivoting: bool) -> tuple[Any, ...]:
    """The thin factors, and with pivoting the order of columns."""
    order = ()
    if pivoting:
        order = trace.ruled("_qr_order", a, mode="r", pivoting=True)[1:]
        a = rows_of(trace, a.T, *order).T
    return (*trace.ruled("linalg_qr", a, mode="economic"), *order)


@records("scipy.linalg", "schur")
@of_each
def _schur(trace: Trace, a: Any, output: str, sort: Any) -> Any:
    """From the eigenvectors, in the order of LAPACK's eigenvalues: the unitary factor of these."""
    if output in ("complex", "c"):
        a = a.astype(np.result_type(a.dtype, np.complex64))
    t, z = trace.ruled("_schur", a, output=output)
    values, vectors = np.linalg.eig(a)
    if sort is not None or (values.dtype.kind == "c" and a.dtype.kind != "c"):
        what = "scipy.linalg.schur with sort, or of a real matrix with complex eigenvalues"
        raise trace.unrecorded(what, 'Leave sort out, and pass output="complex".')
    order = np.argmin(np.abs(np.diag(t)[:, None] - values), axis=1)
    z = turned_like(np.linalg.qr(rows_of(trace, vectors.T, order).T)[0], z)
    return np.triu(np.conjugate(z.T) @ a @ z), z


@records("scipy.linalg", "ldl")
def _ldl(trace: Trace, A: Any, lower: bool, hermitian: bool) -> Any:
    """LAPACK's factors, and two of Newton's steps from there, with LAPACK's exchange of rows."""
    a = matrix(trace, "ldl", A)
    turn = np.conjugate if hermitian else np.array
    static = {"lower": bool(lower), "hermitian": bool(hermitian)}
    factor, d, perm = trace.ruled("_ldl", a, **static)
    side, ones, blocks = (np.tril if lower else np.triu), np.eye(len(a), dtype=a.dtype), d != 0
    part = side(a, -1 if lower else 1)
    a = part + turn(part.T) + np.diag(np.real(np.diag(a)) if hermitian else np.diag(a))
    a, factor = (rows_of(trace, each, perm) for each in (a, factor))
    a = rows_of(trace, a.T, perm).T
    for _ in range(2):
        rest = np.linalg.solve(factor, turn(np.linalg.solve(factor, turn(a.T)).T))
        d = np.where(blocks | (ones == 1), rest, 0.0)
        off = side(np.where(blocks, 0.0, rest), -1 if lower else 1)
        factor = factor @ (ones + np.linalg.solve(d.T, off.T).T)
    return rows_of(trace, factor, np.argsort(perm)), d, perm


@records("scipy.linalg", "rq")
@of_each
def _rq(trace: Trace, a: Any, mode: str) -> Any:
    """From the other factorisation of the matrix with its axes from back to front, transposed."""
    height, width = a.shape
    if mode not in ("economic", "full", "r") or height > width or (mode == "full" and height < width):
        raise trace.unrecorded(f"scipy.linalg.rq of this shape with mode={mode!r}", 'Pass mode="economic".')
    q, r = trace.ruled("linalg_qr", np.conjugate(np.flip(a, (0, 1)).T), mode="economic")
    r = np.flip(np.conjugate(r.T), (0, 1))
    if mode == "r":
        return np.concatenate([np.zeros((height, width - height), r.dtype), r], axis=1)
    return r, np.flip(np.conjugate(q.T), (0, 1))


@records("scipy.linalg", "qr_multiply")
def _qr_multiply(trace: Trace, a: Any, c: Any, mode: str, pivoting: bool, conjugate: bool) -> Any:
    a, c = matrix(trace, "qr_multiply", a), trace.traced(c)
    if a.shape[0] < a.shape[1] or mode not in ("left", "right"):
        raise trace.unrecorded("scipy.linalg.qr_multiply of a wide matrix", "Multiply with q of qr.")
    if c.dtype.kind == "c" != a.dtype.kind:
        what = "scipy.linalg.qr_multiply of a real matrix and a complex one, whose imaginary part SciPy drops,"
        raise trace.unrecorded(what, "Multiply with q of qr.")
    q, *rest = _thin(trace, a, pivoting)
    q = np.conjugate(q) if conjugate else q
    return ((np.matmul(q, c) if mode == "left" else np.matmul(c, q)), *rest)


@records("scipy.linalg", "pinv", "pinvh")
@of_each
def _pinv(trace: Trace, a: Any, rtol: Any, lower: bool | None = None) -> Any:
    """With ``lower``, of a Hermitian matrix of which one triangle is read."""
    cutoff = float(np.finfo(a.dtype).eps) * max(a.shape) if rtol is None else float(rtol)
    if lower is None:
        return np.linalg.pinv(a, rcond=cutoff)
    return np.linalg.pinv(hermitian(trace, a, bool(lower)), rcond=cutoff, hermitian=True)


def _factors(trace: Trace, a: Any) -> Any:
    """The order of rows, the lower and the upper factor."""
    return trace.ruled("linalg_lu", a, p_indices=True)


def rows_of(trace: Trace, a: Any, order: Any) -> Any:
    """The rows of ``a`` in an order that is traced."""
    rest = tuple(Slice(0, extent) for extent in a.shape[1:])
    return trace.apply(primitive("getitem"), (a, order), {"index": (GATHER, *rest)})


@records("scipy.linalg", "lu")
@of_each
def _lu(trace: Trace, a: Any, permute_l: bool, p_indices: bool) -> Any:
    order, lower, upper = _factors(trace, a)
    if permute_l:
        return rows_of(trace, lower, order), upper
    if p_indices:
        return order, lower, upper
    ones = np.equal(order[:, None], np.arange(a.shape[0])).astype(np.zeros(0, a.dtype).real.dtype)
    return ones, lower, upper


@records("scipy.linalg", "lu_factor")
@of_each
def _lu_factor(trace: Trace, a: Any) -> Any:
    _, lower, upper = _factors(trace, a)
    height, width = a.shape
    below = np.tril(lower, -1)
    if width > height:
        below = np.concatenate([below, np.zeros((height, width - height), a.dtype)], axis=1)
    if height > width:
        upper = np.concatenate([upper, np.zeros((height - width, width), a.dtype)], axis=0)
    return below + upper, trace.ruled("_lu_swaps", a)[1]


@records("scipy.linalg", "lu_solve")
def _lu_solve(trace: Trace, lu_and_piv: Any, b: Any, trans: int) -> Any:
    lu, swaps = lu_and_piv
    lu, b = matrix(trace, "lu_solve", lu), trace.traced(b)
    if b.ndim not in (1, 2):
        raise trace.unrecorded("scipy.linalg.lu_solve of stacked right-hand sides", "Write a loop.")
    if trans not in (0, 1, 2):
        raise ValueError(f"Illegal value trans={trans}; must be 0, 1 or 2.")
    # Row number back[i] of the matrix is row number i of the product of the factors.
    order = _order(trace, swaps, len(lu))
    solve = trace.registry.primitive("solve_triangular")
    if not trans:
        b = rows_of(trace, b, np.argsort(order))
        b = trace.apply(solve, (lu, b), {"lower": True, "unit_diagonal": True})
        return trace.apply(solve, (lu, b), {"lower": False, "unit_diagonal": False})
    turned = lu.T if trans == 1 else np.conjugate(lu.T)
    b = trace.apply(solve, (turned, b), {"lower": True, "unit_diagonal": False})
    b = trace.apply(solve, (turned, b), {"lower": False, "unit_diagonal": True})
    return rows_of(trace, b, order)


def _order(trace: Trace, swaps: Any, count: int) -> Any:
    """The order of rows that swaps amount to: where traced ones came from; other traced ones are guards."""
    if is_tracer(swaps):
        builder = trace.builder
        item = builder.definition(trace.lift(swaps))
        made = None if item is None or item.access != AccessMap.ITEM else builder.definition(item.operands[0])
        if made is not None and made.name == "_lu_swaps":
            matrix = made.operands[0]
            return _factors(trace, trace.wrap(matrix, trace.values[matrix]))[0]
    places = np.arange(count)
    for row, other in enumerate(map(int, swaps)):
        places[[row, other]] = places[[other, row]]
    return np.argsort(places)
