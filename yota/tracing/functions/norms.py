"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import math
from typing import Any

from yota.tracing.implementations import implements
from yota.tracing.trace import Trace
from yota.tracing.untyped import np


@implements(np.linalg.norm)
def _norm(trace: Trace, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = _floating(trace, x)
    if axis is None:
        if ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1):
            return _euclidean(trace, x, tuple(range(x.ndim)), keepdims)
        if x.ndim not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    axes = tuple(range(x.ndim)) if axis is None else _pair(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(trace, x, ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(trace, x, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _pair(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes in the order given: rows and columns of a matrix."""
    return tuple(np.lib.array_utils.normalize_axis_tuple(axis, ndim))


def _floating(trace: Trace, x: Any) -> Any:
    x = trace.traced(x)
    return x if x.dtype.kind in "fc" else x.astype(float)


def _euclidean(trace: Trace, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    square = np.real(x * np.conjugate(x)) if x.dtype.kind == "c" else x * x
    return _root(trace, np.sum(square, axis=axes, keepdims=keepdims))


def _root(trace: Trace, square: Any) -> Any:
    """The square root of a sum of squares; at 0, the tip of a cone, its derivative is taken to be 0."""
    return trace.apply(trace.registry.primitive("_root"), (square,))


def _vector_norm(trace: Trace, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return _euclidean(trace, x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    size = np.abs(x)
    if ord in (math.inf, -math.inf):
        return (np.max if ord > 0 else np.min)(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum(np.not_equal(x, 0).astype(size.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axes, keepdims=keepdims)
    if ord < 1:
        return np.sum(size**ord, axis=axes, keepdims=keepdims) ** (1 / ord)
    # As at the tip of the Euclidean norm: where all is 0 the derivative is taken to be 0.
    total = np.sum(size**ord, axis=axes, keepdims=keepdims)
    nothing = np.equal(total, 0)
    return np.where(nothing, total, np.where(nothing, total.dtype.type(1), total) ** (1 / ord))


def _matrix_norm(trace: Trace, x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes
    if row == column:
        raise ValueError("Duplicate axes given.")
    if ord in (None, "f", "fro"):
        return _euclidean(trace, x, axes, keepdims)
    if ord in (2, -2, "nuc"):
        values = np.linalg.svdvals(np.moveaxis(x, axes, (-2, -1)))
        reduction = np.sum if ord == "nuc" else np.max if ord == 2 else np.min
        result = reduction(values, axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        summed, kept = (row, column) if abs(ord) == 1 else (column, row)
        sums = np.sum(np.abs(x), axis=summed)
        result = (np.max if ord > 0 else np.min)(sums, axis=kept - (kept > summed))
    else:
        raise ValueError("Invalid norm order for matrices.")
    if not keepdims:
        return result
    return np.reshape(result, tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape)))


@implements(np.linalg.cond)
def _cond(trace: Trace, x: Any, p: Any = None) -> Any:
    x = _floating(trace, x)
    if p in (None, 2, -2):
        values = np.linalg.svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        result = smallest / largest if p == -2 else largest / smallest
    else:
        result = np.linalg.norm(x, p, axis=(-2, -1)) * np.linalg.norm(np.linalg.inv(x), p, axis=(-2, -1))
    harmless = np.logical_not(np.any(np.isnan(x), axis=(-2, -1)))
    return np.where(np.logical_and(np.isnan(result), harmless), result.dtype.type(math.inf), result)


@implements(np.linalg.matrix_rank)
def _matrix_rank(trace: Trace, A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    A = _floating(trace, A)
    if A.ndim < 2:
        return np.astype(np.any(np.not_equal(A, 0)), int)
    values = np.abs(np.linalg.eigvalsh(A)) if hermitian else np.linalg.svdvals(A)
    if tol is None:
        scale = max(A.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
        tol = np.max(values, axis=-1, keepdims=True) * scale
    else:
        tol = np.asarray(tol)[..., None]
    return np.count_nonzero(values > tol, axis=-1)
