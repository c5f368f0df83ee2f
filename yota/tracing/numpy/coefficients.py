"""Polynomials whose coefficients are 0 at an end: only those that stay 0 for all arguments are cut off."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FrameType
from typing import Any

from yota.ir.semantics import JOINS, MOVES, AccessMap
from yota.tracing.forms import Trace, implements, np, primitive, records

_NEGLIGIBLE = 1e-14
"""What `scipy.signal.normalize` takes for 0."""
_PRODUCTS: dict[Any, Callable[[Any, Any], Any]] = {
    primitive("multiply"): np.multiply,
    primitive("convolve"): np.convolve,
}
"""Primitives whose result is 0 where one factor is."""
_LARGEST = 8
"""Rows of a matrix whose characteristic polynomial is computed from its powers."""


def _fixed(trace: Trace, variable: int, known: dict[int, Any]) -> Any:
    """Which elements of a variable are known to depend on no argument."""
    if variable not in known:
        known[variable] = _found_fixed(trace, variable, known)
    return known[variable]


def _found_fixed(trace: Trace, variable: int, known: dict[int, Any]) -> Any:
    op = trace.builder.definition(variable)
    access = op and op.semantics.access
    if op is None or not (access in MOVES or access is AccessMap.ELEMENTWISE or op.primitive in _PRODUCTS):
        return np.full(np.shape(trace.values[variable]), trace.is_constant(variable))
    if access in MOVES:
        count = len(op.operands) if access in JOINS else 2 if access is AccessMap.WRITE else 1
        parts = [_fixed(trace, each, known) for each in op.operands[:count]]
        return op.primitive.function(*parts, *map(trace.values.__getitem__, op.operands[count:]), **dict(op.static))
    parts = [_fixed(trace, each, known) for each in op.operands]
    if op.primitive not in _PRODUCTS:
        return functools.reduce(np.logical_and, parts)
    # A product with 0 is 0, whatever the other factor is.
    (a, may_a), (b, may_b) = (
        (np.where(part, 0, 1), np.where(part & np.equal(trace.values[each], 0), 0, 1))
        for part, each in zip(parts, op.operands, strict=True)
    )
    product = _PRODUCTS[op.primitive]
    return np.equal(product(a, may_b) + product(may_a, b), 0)


def trimmed(trace: Trace, coefficients: Any, trim: str) -> Any:
    """``coefficients`` without zeros at the front (``"f"``) or back (``"b"``) that no argument changes."""
    coefficients = trace.traced(coefficients)
    none = np.equal(coefficients._value(), 0)
    if none.any():
        none &= _fixed(trace, trace.lift(coefficients), {})
    count = len(none)
    first = int(np.argmin(np.append(none, False))) if "f" in trim.lower() else 0
    behind = int(np.argmin(np.append(none[::-1], False))) if "b" in trim.lower() else 0
    return coefficients[first : max(first, count - behind)]


def trims_coefficients(frame: FrameType) -> bool:
    """Whether code of scipy.signal, which cuts off coefficients, runs in a frame or called NumPy there."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("yota.", "numpy.")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith("scipy.signal.")


@records("numpy.lib._polynomial_impl", "trim_zeros")
@records("scipy.signal._polyutils", "_trim_zeros")
def _trim_zeros(trace: Trace, filt: Any, trim: str = "fb") -> Any:
    return trimmed(trace, filt, trim)


@records("scipy.signal", "normalize")
def _normalize(trace: Trace, b: Any, a: Any) -> Any:
    den = trimmed(trace, np.atleast_1d(a), "f")
    num = np.atleast_1d(trace.traced(b)) / den[0]
    if den.ndim != 1 or num.ndim > 2:
        raise ValueError("the numerator has at most two axes, and the denominator one")
    rows = np.atleast_2d(num)
    if np.all(np.abs(rows._value()[:, 0]) <= _NEGLIGIBLE):
        shortest = min(rows.shape[1] - len(trimmed(trace, row, "f")) for row in rows)
        num = num[..., min(shortest, rows.shape[1] - 1) :]
    return num[0] if num.ndim == 2 and len(num) == 1 else num, den / den[0]


@records("numpy.polynomial.polyutils", "trimseq")
def _trimseq(trace: Trace, seq: Any) -> Any:
    found = trimmed(trace, seq, "b")
    return found if len(found) else seq[:1]


@implements(np.polymul)
def _polymul(trace: Trace, a1: Any, a2: Any) -> Any:
    """NumPy's own goes through objects that do not dispatch."""
    one, other = (trimmed(trace, np.atleast_1d(trace.traced(each)), "f") for each in (a1, a2))
    if not one.size or not other.size:
        return trace.constant(np.zeros(1, np.result_type(one, other)))
    return np.convolve(one, other)


@implements(np.poly)
def _poly(trace: Trace, seq_of_zeros: Any) -> Any:
    """Of a small matrix by the method of Faddeev and LeVerrier: equal eigenvalues have no derivatives of their own."""
    matrix = np.atleast_1d(trace.traced(seq_of_zeros))
    small = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] <= _LARGEST and matrix.size
    if not small or matrix.dtype.kind == "c":  # whose coefficients are real or not by what their values are
        return np.poly._implementation(matrix)
    matrix = matrix if matrix.dtype.kind == "f" else matrix.astype(float)
    found, adjugate = [np.ones((), matrix.dtype)], np.eye(len(matrix), dtype=matrix.dtype)
    for order in range(1, len(matrix) + 1):
        adjugate = matrix @ adjugate
        found.append(-np.trace(adjugate) / order)
        adjugate = adjugate + found[-1] * np.eye(len(matrix), dtype=matrix.dtype)
    return np.stack(found)


@implements(np.roots, checked=True)
def _roots(trace: Trace, p: Any) -> Any:
    """A root of 0 moves with the last coefficient; roots stand in NumPy's order, which are 0 behind the others."""
    p = trimmed(trace, np.atleast_1d(trace.traced(p)), "f")
    if len(p) and bool(np.equal(p[0], 0)):
        raise trace.refuse(
            "np.roots of a polynomial whose first coefficient is 0, and is computed from arguments, has a root at "
            "infinity.",
            "Leave the coefficient out: np.roots(p[1:]).",
        )
    if p.dtype.kind not in "fc":
        p = p.astype(float)
    left = trimmed(trace, p, "b")
    count = len(left) - 1
    if count < 1:
        return trace.constant(np.zeros(max(0, len(p) - 1), p.dtype))
    matrix = np.concatenate([np.reshape(-left[1:] / left[0], (1, count)), np.eye(count - 1, count, dtype=p.dtype)])
    roots = np.linalg.eigvals(matrix)
    order: list[int] = []
    for distances in np.abs(np.subtract.outer(np.roots(left._value()), roots._value())):
        distances[order] = np.inf
        order.append(int(np.argmin(distances)))
    roots = roots if order == sorted(order) else roots[np.array(order)]
    return np.concatenate([roots, np.zeros(len(p) - len(left), roots.dtype)])
