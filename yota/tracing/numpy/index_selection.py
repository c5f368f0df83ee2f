"""Elements by their places: where, take, diagonals, repetitions, recorded as indexing."""

from __future__ import annotations

from typing import Any

from yota.ir.catalog import primitive
from yota.rules.language.statics import axes_of
from yota.tracing.implementations import implements
from yota.tracing.memory import laid_as
from yota.tracing.trace import Trace
from yota.tracing.untyped import np
from yota.tracing.views import Look, derived


@implements(np.where)
def _where(trace: Trace, condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return np.nonzero(condition)
    condition = trace.traced(condition)
    if condition.dtype.kind != "b":
        condition = np.not_equal(condition, 0)
    return trace.apply(primitive("where"), (condition, x, y))


@implements(np.nonzero)
def _nonzero(trace: Trace, a: Any) -> Any:
    """Positions of the true elements; their number is a guard, since it is a shape on the tape."""
    mask = np.ravel(a if a.dtype.kind == "b" else np.not_equal(a, 0))
    count = int(np.sum(mask))
    if count in (0, mask.size):
        return tuple(np.nonzero(np.full(a.shape, bool(count))))
    positions = trace.apply(primitive("flatnonzero"), (mask,))
    return tuple(np.unravel_index(positions, a.shape)) if a.ndim > 1 else (positions,)


@implements(np.unravel_index)
def _unravel_index(trace: Trace, indices: Any, shape: Any, order: str = "C") -> Any:
    results: list[Any] = []
    for extent in reversed(shape):
        results.append(indices % extent)
        indices = indices // extent
    return tuple(results[::-1])


@implements(np.ravel_multi_index)
def _ravel_multi_index(trace: Trace, multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    extents = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    modes = mode if isinstance(mode, tuple) else (mode,) * len(extents)
    result: Any = 0
    pairs = list(zip(multi_index, extents, modes, strict=True))
    for places, extent, each in pairs if order == "C" else reversed(pairs):
        if each == "raise" and bool(np.any((places < 0) | (places >= extent))):
            raise ValueError("invalid entry in coordinates array")
        if each != "raise":
            places = np.remainder(places, extent) if each == "wrap" else np.clip(places, 0, extent - 1)
        result = result * extent + places
    return result


@implements(np.take)
def _take(trace: Trace, a: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    a = trace.traced(a)
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    axis = axes_of(axis, a.ndim)[0]
    if getattr(getattr(indices, "dtype", None), "kind", "") == "b":
        indices = indices.astype(int)  # positions 0 and 1, and no mask
    if mode != "raise":
        indices = trace.traced(indices)
        indices = indices % a.shape[axis] if mode == "wrap" else np.clip(indices, 0, a.shape[axis] - 1)
    return a[(slice(None),) * axis + (indices,)]


def along_axis(shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """The index by which ``indices`` select along ``axis`` of an array of ``shape``, the other axes being matched."""
    if indices.ndim != len(shape):
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return tuple(
        indices if position == axis else np.arange(extent).reshape((-1,) + (1,) * (len(shape) - position - 1))
        for position, extent in enumerate(shape)
    )


@implements(np.diagonal)
def _diagonal(trace: Trace, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return diagonal(trace.traced(a), offset, axis1, axis2)


def diagonal(a: Any, offset: int, axis1: int, axis2: int, *, writeable: bool = False) -> Any:
    """A view of a diagonal, as its last axis."""
    axis1, axis2 = axes_of(axis1, a.ndim)[0], axes_of(axis2, a.ndim)[0]
    rest = [axis for axis in range(a.ndim) if axis not in (axis1, axis2)]
    a = np.transpose(a, (*rest, axis1, axis2))
    rows = np.arange(max(0, min(a.shape[-2] + min(offset, 0), a.shape[-1] - max(offset, 0)))) - min(offset, 0)
    place = (..., rows, rows + offset)

    def overwritten(base: Any, value: Any) -> Any:
        whole = base.copy("K")
        whole[place] = value
        return whole

    def read(base: Any) -> Any:
        found = base[place]
        # The view lies between the other elements, and so may be copied where it is reshaped.
        strides = np.diagonal(base._value(), offset, -2, -1).strides
        found._trace.values[found._variable] = laid_as(found._value(), strides)
        return found

    return derived(a, Look(read, overwritten if writeable else None))


@implements(np.diag)
def _diag(trace: Trace, v: Any, k: int = 0) -> Any:
    v = trace.traced(v)
    if v.ndim == 2:
        return np.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = v.shape[0] + abs(k)
    rows = np.arange(v.shape[0]) - min(k, 0)
    result = trace.constant(np.zeros((size, size), v.dtype))
    result[rows, rows + k] = v
    return result


@implements(np.diagflat)
def _diagflat(trace: Trace, v: Any, k: int = 0) -> Any:
    return np.diag(np.ravel(trace.traced(v)), k)


@implements(np.repeat)
def _repeat(trace: Trace, a: Any, repeats: Any, axis: Any = None) -> Any:
    if axis is None or not a.ndim:
        a, axis = np.ravel(a), 0
    positions = np.repeat(np.arange(a.shape[axis]), repeats)
    axis = axis % a.ndim
    times = len(positions) // max(a.shape[axis], 1)
    if times > 0 and np.size(repeats) == 1:
        # The adjoint of a broadcast is a sum, which costs less than adding at places.
        spread = np.broadcast_to(np.expand_dims(a, axis + 1), (*a.shape[: axis + 1], times, *a.shape[axis + 1 :]))
        return np.reshape(spread, (*a.shape[:axis], len(positions), *a.shape[axis + 1 :]))
    return np.take(a, positions, axis=axis)
