"""Gaussian elimination of scipy.linalg: triangular factors with the order of rows, and the systems they solve."""

from __future__ import annotations

from typing import Any

from yota.ir.catalog import primitive
from yota.ir.indexing import GATHER, Slice
from yota.ir.semantics import AccessMap
from yota.tracing.functions.scipy.equations import of_each
from yota.tracing.implementations import records
from yota.tracing.methods import is_tracer
from yota.tracing.trace import Trace
from yota.tracing.untyped import np

__all__ = ["matrix", "rows_of"]


def matrix(trace: Trace, name: str, a: Any) -> Any:
    """One matrix of floating-point numbers."""
    a = trace.traced(a)
    if a.ndim != 2 or not a.size:
        raise trace.unrecorded(f"scipy.linalg.{name} of anything but one matrix", "Write a loop.")
    return a if a.dtype.kind in "fc" else a.astype(float)


def _factors(trace: Trace, a: Any) -> Any:
    """The order of rows, the lower and the upper factor."""
    return trace.apply(trace.registry.primitive("linalg_lu"), (a,), {"p_indices": True})


def rows_of(trace: Trace, a: Any, order: Any) -> Any:
    """The rows of ``a`` in an order that is traced."""
    rest = tuple(Slice(0, extent) for extent in a.shape[1:])
    return trace.apply(primitive("getitem"), (a, order), {"index": (GATHER, *rest)})


@records("scipy.linalg", "lu")
@of_each
def _lu(trace: Trace, a: Any, permute_l: bool, p_indices: bool) -> Any:
    a = matrix(trace, "lu", a)
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
    a = matrix(trace, "lu_factor", a)
    _, lower, upper = _factors(trace, a)
    height, width = a.shape
    below = np.tril(lower, -1)
    if width > height:
        below = np.concatenate([below, np.zeros((height, width - height), a.dtype)], axis=1)
    if height > width:
        upper = np.concatenate([upper, np.zeros((height - width, width), a.dtype)], axis=0)
    return below + upper, trace.apply(trace.registry.primitive("_lu_swaps"), (a,))[1]


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
    """The order of rows that swaps one after the other amount to; that of traced ones is found where they came from."""
    if not is_tracer(swaps):
        places = np.arange(count)
        for row, other in enumerate(swaps):
            places[[row, other]] = places[[other, row]]
        return np.argsort(places)
    builder = trace.builder
    item = builder.definition(trace.lift(swaps))
    made = None if item is None or item.access != AccessMap.ITEM else builder.definition(item.operands[0])
    if made is None or made.name != "_lu_swaps":
        raise trace.unrecorded(
            "scipy.linalg.lu_solve with traced pivots that do not come from lu_factor as they are",
            "Pass what scipy.linalg.lu_factor gave.",
        )
    matrix = made.operands[0]
    return _factors(trace, trace.wrap(matrix, trace.values[matrix]))[0]
